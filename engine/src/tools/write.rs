//! Writes a whole file.

use async_trait::async_trait;
use ropewalk_config::settings::Permission;
use ropewalk_schemas::RepoPath;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::workbench::Workbench;
use super::{arguments, path, path_of, plain_schema_of};
use crate::tool::{Effect, FileChange, Tool, ToolContext, ToolFailure, ToolOutput};

/// Writes a file.
pub(super) struct Write {
    workbench: Workbench,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// the file, relative to the repository
    #[serde(default)]
    path: Option<String>,
    /// all that the file is to hold
    #[serde(default)]
    content: Option<String>,
    /// several files, in the place of `path` and `content`: all are written or none
    #[serde(default)]
    #[schemars(length(min = 1, max = 20))]
    files: Vec<Content>,
}

// A file as it is to be.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Content {
    path: String,
    content: String,
}

impl Arguments {
    /// Returns the files, in whichever of the two forms they were given.
    fn files(self) -> Result<Vec<Content>, ToolFailure> {
        match (self.path, self.content, self.files) {
            (Some(path), Some(content), files) if files.is_empty() => {
                Ok(vec![Content { path, content }])
            }
            (None, None, files) if !files.is_empty() => Ok(files),
            _ => Err(ToolFailure::refused(
                "give either `path` and `content`, or `files` with a `path` and a `content` each",
            )),
        }
    }
}

impl Write {
    pub(super) fn new(workbench: Workbench) -> Self {
        Self { workbench }
    }

    /// Puts back what was written before a file that could not be, the latest first, and removes the directories that were
    /// `made` for it; what cannot be put back either is told of.
    fn take_back(
        &self,
        mut written: Vec<WrittenFile<'_>>,
        made: &[RepoPath],
        failure: &ToolFailure,
    ) -> Result<ToolOutput, ToolFailure> {
        written.reverse();
        let stays = |file: &WrittenFile<'_>| {
            let back = self.workbench.restore(file.path, file.before.as_deref());
            back.is_err()
        };
        written.retain(stays);
        for directory in made.iter().rev() {
            let files = self.workbench.files();
            // What is left of it is empty, and so nothing that git knows of, or holds what somebody else wrote meanwhile.
            files.remove_empty_directory(directory).ok();
        }
        if written.is_empty() {
            let told = format!("{failure}; nothing was written");
            return Err(ToolFailure::refused(told));
        }
        let left: Vec<String> = written
            .iter()
            .map(|file| format!("`{}`", file.path))
            .collect();
        let told = format!(
            "{failure}; what was written to {} could not be taken back",
            left.join(", ")
        );
        Ok(changing(ToolOutput::error(told), &written))
    }
}

#[async_trait]
impl Tool for Write {
    fn name(&self) -> &'static str {
        "write"
    }

    fn description(&self) -> &'static str {
        "Writes a whole file, or several with `files`, making them and their directories if need be. Only the files of \
         the task can be written; an existing file has to be read first."
    }

    fn parameters(&self) -> Value {
        plain_schema_of::<Arguments>()
    }

    fn permission(&self) -> Option<Permission> {
        Some(Permission::Write)
    }

    fn subjects(&self, arguments: &Value) -> Vec<String> {
        let files = arguments["files"].as_array().into_iter().flatten();
        files.chain([arguments]).flat_map(path_of).collect()
    }

    fn concurrency_safe(&self) -> bool {
        false
    }

    async fn execute(&self, value: Value, _: &ToolContext) -> Result<ToolOutput, ToolFailure> {
        let wanted: Arguments = arguments(value)?;
        let mut files = Vec::new();
        for file in wanted.files()? {
            files.push((path(&file.path)?, file.content));
        }
        let _turn = self.workbench.turn(files.iter().map(|(path, _)| path));
        for (path, _) in &files {
            self.workbench.admit_write(path)?;
        }
        let (mut written, mut made) = (Vec::new(), Vec::new());
        for (path, content) in &files {
            made.extend(self.workbench.absent_above(path));
            // What cannot be read could not be put back.
            let step = self.workbench.read(path).and_then(|before| {
                let is_changed = self.workbench.write(path, content.as_bytes())?;
                Ok((before, is_changed))
            });
            match step {
                Ok((before, is_changed)) => written.push(WrittenFile {
                    path,
                    content,
                    before,
                    is_changed,
                }),
                Err(failure) => return self.take_back(written, &made, &failure),
            }
        }
        let told = written.iter().map(|file| {
            let lines = file.content.lines().count();
            format!("wrote `{}`, {lines} lines", file.path)
        });
        let told = told.collect::<Vec<_>>().join("\n");
        Ok(changing(ToolOutput::text(told), &written))
    }
}

/// A file that a call wrote.
struct WrittenFile<'a> {
    path: &'a RepoPath,
    content: &'a str,
    /// None where it was not there.
    before: Option<Vec<u8>>,
    /// Whether it holds something else now.
    is_changed: bool,
}

impl WrittenFile<'_> {
    fn change(&self) -> Option<FileChange> {
        let before = self.before.as_deref().unwrap_or_default();
        let before = String::from_utf8_lossy(before);
        let change = || FileChange::between(self.path, &before, self.content);
        self.is_changed.then(change)
    }
}

/// Says of an answer what the files come to that a call wrote.
fn changing(output: ToolOutput, written: &[WrittenFile<'_>]) -> ToolOutput {
    let changes: Vec<FileChange> = written.iter().filter_map(WrittenFile::change).collect();
    let effect = if changes.is_empty() {
        Effect::Nothing
    } else {
        Effect::Changed
    };
    output.with_effect(effect).with_changes(changes)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use serde_json::json;

    use crate::tools::read::Read;
    use crate::tools::workbench::tests::{Bench, repo_path};

    #[tokio::test]
    async fn a_new_file_of_the_task_is_made_with_its_directories() {
        let bench = Bench::new(&[], &["a/b/c.txt"]);
        let write = Write::new(bench.workbench.clone());
        let call = |text: &str| json!({ "path": "a/b/c.txt", "content": text });
        let output = bench.run(&write, call("one\ntwo\n")).await;
        assert_eq!(output.text, "wrote `a/b/c.txt`, 2 lines");
        assert_eq!(bench.content("a/b/c.txt").as_deref(), Some("one\ntwo\n"));
        // Its own write counts as a reading.
        assert!(!bench.run(&write, call("three")).await.is_error);
    }

    #[tokio::test]
    async fn several_files_are_written_at_once_or_none_is() {
        let bench = Bench::new(&[], &["a", "b"]);
        let write = Write::new(bench.workbench.clone());
        let files = |names: [&str; 2]| {
            let files = names.map(|name| json!({ "path": name, "content": "x\n" }));
            json!({ "files": files })
        };
        let refused = bench.run(&write, files(["a", "theirs"])).await;
        assert!(
            refused.is_error && refused.text.contains("`theirs`"),
            "{}",
            refused.text
        );
        assert_eq!(bench.content("a"), None);
        let output = bench.run(&write, files(["a", "b"])).await;
        assert_eq!(output.text, "wrote `a`, 1 lines\nwrote `b`, 1 lines");
        assert_eq!(bench.content("b").as_deref(), Some("x\n"));
        let both =
            json!({ "path": "a", "content": "y", "files": [{ "path": "b", "content": "y" }] });
        let refused = bench.run(&write, both).await;
        assert!(
            refused.is_error && refused.text.contains("either"),
            "{}",
            refused.text
        );
    }

    #[tokio::test]
    async fn files_are_as_they_were_where_one_of_them_cannot_be_written() {
        let bench = Bench::new(
            &[("d", "x"), ("old", "before\n"), ("kept/theirs", "x")],
            &["old", "new", "a/b/new", "a/new", "kept/c/new", "d/b"],
        );
        let write = Write::new(bench.workbench.clone());
        let read = Read::new(bench.workbench.clone());
        bench.run(&read, json!({ "path": "old" })).await;
        let files = |names: &[&str]| {
            let files = names.iter();
            let files = files.map(|name| json!({ "path": name, "content": "after\n" }));
            json!({ "files": files.collect::<Vec<_>>() })
        };
        let refused = bench.run(&write, files(&["old", "new", "d/b"])).await;
        assert!(
            refused.is_error && refused.text.ends_with("; nothing was written"),
            "{}",
            refused.text
        );
        assert!(refused.text.contains("`d` is"), "{}", refused.text);
        assert_eq!(bench.content("old").as_deref(), Some("before\n"));
        assert_eq!(bench.content("new"), None);
        let deep = ["a/b/new", "a/new", "kept/c/new", "d/b"];
        let refused = bench.run(&write, files(&deep)).await;
        assert!(refused.is_error, "{}", refused.text);
        let is_there = ["a", "kept/c", "kept"].map(|directory| {
            let slot = bench.directory.path().join("slot");
            slot.join(directory).exists()
        });
        assert_eq!(is_there, [false, false, true]);
        // What was read is known still.
        let output = bench.run(&write, files(&["old", "new"])).await;
        assert!(!output.is_error, "{}", output.text);
        assert_eq!(bench.content("old").as_deref(), Some("after\n"));
    }

    #[test]
    fn what_cannot_be_taken_back_is_told_with_its_change() {
        let bench = Bench::new(&[("d", "x")], &["d/b"]);
        let write = Write::new(bench.workbench.clone());
        let path = repo_path("d/b");
        let written = WrittenFile {
            path: &path,
            content: "after\n",
            before: Some(b"before\n".to_vec()),
            is_changed: true,
        };
        let failure = ToolFailure::refused("the disk is full");
        let told = write.take_back(vec![written], &[], &failure).unwrap();
        assert!(told.is_error && told.text.contains("`d/b`"), "{told:?}");
        assert_eq!((told.effect, told.changes.len()), (Effect::Changed, 1));
    }

    #[tokio::test]
    async fn a_file_of_somebody_else_is_not_touched() {
        let bench = Bench::new(&[("theirs", "kept")], &["mine"]);
        let write = Write::new(bench.workbench.clone());
        for path in ["theirs", "new", "../mine", "mine/../theirs"] {
            let output = bench
                .run(&write, json!({ "path": path, "content": "x" }))
                .await;
            assert!(output.is_error, "{path}");
        }
        assert_eq!(bench.content("theirs").as_deref(), Some("kept"));
        assert_eq!(bench.content("new"), None);
    }

    #[tokio::test]
    async fn a_file_has_to_be_known_as_it_is_before_it_is_overwritten() {
        let bench = Bench::new(&[("a", "old")], &["a"]);
        let (read, write) = (
            Read::new(bench.workbench.clone()),
            Write::new(bench.workbench.clone()),
        );
        let call = json!({ "path": "a", "content": "new" });
        let unread = bench.run(&write, call.clone()).await;
        assert!(unread.text.contains("read it first"), "{}", unread.text);
        bench.run(&read, json!({ "path": "a" })).await;
        bench.touch("a", Duration::from_secs(2));
        let stale = bench.run(&write, call.clone()).await;
        assert!(stale.text.contains("re-read"), "{}", stale.text);
        assert_eq!(bench.content("a").as_deref(), Some("old"));
        bench.run(&read, json!({ "path": "a" })).await;
        // In the same second as well.
        let other = bench.beside(&["a"]);
        let theirs = json!({ "path": "a", "content": "theirs" });
        bench
            .run(&Read::new(other.clone()), json!({ "path": "a" }))
            .await;
        assert!(!bench.run(&Write::new(other), theirs).await.is_error);
        let stale = bench.run(&write, call.clone()).await;
        assert!(stale.text.contains("re-read"), "{}", stale.text);
        assert_eq!(bench.content("a").as_deref(), Some("theirs"));
        bench.run(&read, json!({ "path": "a" })).await;
        assert!(!bench.run(&write, call).await.is_error);
        assert_eq!(bench.content("a").as_deref(), Some("new"));
    }
}
