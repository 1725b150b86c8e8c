//! Looks up the history behind the commit that a job reads: the log, one commit, who wrote which lines.

use async_trait::async_trait;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::{CommitId, RepoPath};
use ropewalk_workspace::GitError;
use ropewalk_workspace::clone::HistoryPart;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{ReadableHistory, arguments, path, plain_schema_of};
use crate::tool::{Keep, Tool, ToolContext, ToolFailure, ToolOutput};

/// So many commits are listed when the call does not say how many.
const COMMITS: usize = 20;
/// The most commits that are listed.
const MOST_COMMITS: usize = 200;
/// So many lines are blamed when the call does not say where to end.
const LINES: usize = 100;

/// Looks up history.
pub(super) struct History {
    of: ReadableHistory,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    action: Action,
    /// the file or directory, relative to the repository
    #[serde(default)]
    path: Option<String>,
    /// the id of a commit, or its beginning
    #[serde(default)]
    commit: Option<String>,
    /// how many commits to list
    #[serde(default)]
    #[schemars(range(min = 1, max = MOST_COMMITS))]
    count: Option<usize>,
    /// the first line
    #[serde(default)]
    #[schemars(range(min = 1))]
    from: Option<usize>,
    /// the last line
    #[serde(default)]
    #[schemars(range(min = 1))]
    to: Option<usize>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    Log,
    Show,
    Blame,
}

impl History {
    pub(super) fn new(of: ReadableHistory) -> Self {
        Self { of }
    }

    /// Returns the part of the history that a call asks for; of what is left out there is nothing.
    fn part<'a>(&'a self, path: Option<&'a RepoPath>) -> Result<HistoryPart<'a>, ToolFailure> {
        let without = self.of.without.as_ref();
        let hidden = path.zip(without).filter(|(path, without)| {
            let rest = path.as_str().strip_prefix(without.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        match hidden {
            Some((path, _)) => Err(ToolFailure::refused(format!("there is no `{path}` here"))),
            None => Ok(HistoryPart { path, without }),
        }
    }

    /// Finds a commit by its id or the beginning of it. Only what lies behind the base is shown: the clone also holds
    /// work that was not accepted.
    async fn find(&self, commit: &str) -> Result<CommitId, ToolFailure> {
        let unknown = || {
            ToolFailure::refused(format!(
                "there is no commit `{commit}` in the history; `log` lists the ids"
            ))
        };
        let is_id =
            (4..=64).contains(&commit.len()) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_id {
            return Err(unknown());
        }
        let found = self
            .of
            .clone
            .resolve(commit)
            .await
            .map_err(|error| git(&error))?;
        let found = found.ok_or_else(unknown)?;
        let behind = self.of.clone.is_ancestor(&found, &self.of.base).await;
        if behind.map_err(|error| git(&error))? {
            Ok(found)
        } else {
            Err(unknown())
        }
    }

    async fn log(&self, wanted: &Arguments, part: HistoryPart<'_>) -> Result<String, ToolFailure> {
        let count = wanted.count.unwrap_or(COMMITS);
        let lines = self.of.clone.log_lines(&self.of.base, part, count).await;
        lines.map_err(|error| git(&error))
    }

    async fn show(&self, wanted: &Arguments, part: HistoryPart<'_>) -> Result<String, ToolFailure> {
        let Some(commit) = wanted.commit.as_deref() else {
            return Err(ToolFailure::refused("`show` needs `commit`"));
        };
        let commit = self.find(commit).await?;
        let shown = self.of.clone.show_commit(&commit, part).await;
        let shown = shown.map_err(|error| git(&error))?;
        let note = "\n[a part was left out; name a `path` to see less of the commit]\n";
        Ok(format!(
            "{}{}",
            shown.text,
            if shown.truncated { note } else { "" }
        ))
    }

    async fn blame(
        &self,
        wanted: &Arguments,
        part: HistoryPart<'_>,
    ) -> Result<String, ToolFailure> {
        let Some(path) = part.path else {
            return Err(ToolFailure::refused("`blame` needs `path`"));
        };
        let first = wanted.from.unwrap_or(1);
        let last = wanted.to.unwrap_or(first + LINES - 1).max(first);
        let blamed = self
            .of
            .clone
            .blame_lines(&self.of.base, path, (first, last))
            .await;
        blamed.map_err(|error| git(&error))
    }
}

/// Tells the model what git refused.
fn git(error: &GitError) -> ToolFailure {
    ToolFailure::refused(match error {
        GitError::Failed { reason, .. } => reason.clone(),
        other => Words::of(other).to_string(),
    })
}

#[async_trait]
impl Tool for History {
    fn name(&self) -> &'static str {
        "history"
    }

    fn description(&self) -> &'static str {
        "Looks up the history of the repository: `log` lists the newest commits, of one `path` if you name it; `show` shows \
         one `commit` with its difference; `blame` says which commit wrote the lines `from` to `to` of a `path`."
    }

    fn parameters(&self) -> Value {
        plain_schema_of::<Arguments>()
    }

    fn concurrency_safe(&self) -> bool {
        true
    }

    fn keep(&self) -> Keep {
        Keep::Ends
    }

    async fn execute(&self, value: Value, _: &ToolContext) -> Result<ToolOutput, ToolFailure> {
        let wanted: Arguments = arguments(value)?;
        let path = wanted.path.as_deref().map(path).transpose()?;
        let part = self.part(path.as_ref())?;
        let text = match wanted.action {
            Action::Log => self.log(&wanted, part).await?,
            Action::Show => self.show(&wanted, part).await?,
            Action::Blame => self.blame(&wanted, part).await?,
        };
        Ok(ToolOutput::text(if text.is_empty() {
            "[nothing]".to_owned()
        } else {
            text
        }))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;

    use ropewalk_workspace::clone::FileChange;
    use ropewalk_workspace::commit::NewCommit;
    use ropewalk_workspace::{
        CommitMessage, Environment, Git, Identity, LocalClone, LocalCloneOptions, UserRepository,
    };

    use serde_json::json;

    use super::*;
    use crate::tools::workbench::tests::{Bench, repo_path};

    /// Makes a repository of two commits, and a third that was not accepted.
    pub(in crate::tools) async fn world(directory: &Path) -> (LocalClone, CommitId, CommitId) {
        let user_repository = directory.join("repo");
        std::fs::create_dir(&user_repository).unwrap();
        std::fs::write(user_repository.join("a.txt"), "one\ntwo\nthree\n").unwrap();
        let git = Git::open(&Environment::from_pairs(std::env::vars_os()))
            .await
            .unwrap();
        UserRepository::create(&git, &user_repository, "main", "start here")
            .await
            .unwrap();
        let options = LocalCloneOptions {
            user_repository,
            state: directory.join("state"),
            identity: Identity::default(),
        };
        let clone = LocalClone::open_or_create(git, options).await.unwrap();
        let first = clone.default_branch_head().await.unwrap().commit;
        let base = commit(&clone, &first, "one\nTWO\nthree\n", "shout the second").await;
        let refused = commit(&clone, &base, "secret\n", "never landed").await;
        (clone, base, refused)
    }

    async fn commit(clone: &LocalClone, parent: &CommitId, text: &str, subject: &str) -> CommitId {
        commit_files(clone, parent, &[("a.txt", text)], subject).await
    }

    async fn commit_files(
        clone: &LocalClone,
        parent: &CommitId,
        files: &[(&str, &str)],
        subject: &str,
    ) -> CommitId {
        let changes = files.iter().map(|(path, text)| FileChange::Write {
            path: repo_path(path),
            content: text.as_bytes().to_vec(),
        });
        let changes: Vec<FileChange> = changes.collect();
        let tree = clone.create_tree(parent, &changes).await.unwrap();
        let new = NewCommit {
            tree: &tree,
            parents: std::slice::from_ref(parent),
            message: &CommitMessage::new(subject),
            when: chrono::DateTime::UNIX_EPOCH,
        };
        clone.create_commit(new).await.unwrap()
    }

    #[tokio::test]
    async fn log_show_and_blame_tell_what_lies_behind_the_base_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let (clone, base, refused) = world(directory.path()).await;
        let history = History::new(ReadableHistory {
            clone,
            base: base.clone(),
            without: None,
        });
        let bench = Bench::new(&[], &[]);
        let short = &base.as_str()[..8];
        let rows = [
            (json!({ "action": "log" }), "start here", false),
            (
                json!({ "action": "log", "path": "missing" }),
                "[nothing]",
                false,
            ),
            (json!({ "action": "show", "commit": short }), "+TWO", false),
            (
                json!({ "action": "blame", "path": "a.txt", "from": 2 }),
                "2) TWO",
                false,
            ),
            (
                json!({ "action": "blame", "path": "a.txt", "from": 90 }),
                "3 lines",
                true,
            ),
            (json!({ "action": "blame" }), "needs `path`", true),
            (json!({ "action": "show" }), "needs `commit`", true),
            (
                json!({ "action": "show", "commit": "main" }),
                "there is no commit",
                true,
            ),
            (
                json!({ "action": "show", "commit": refused.as_str() }),
                "there is no commit",
                true,
            ),
        ];
        for (arguments, told, failed) in rows {
            let output = bench.run(&history, arguments.clone()).await;
            assert!(output.text.contains(told), "{arguments}: {}", output.text);
            assert_eq!(output.is_error, failed, "{arguments}");
        }
        let log = bench
            .run(&history, json!({ "action": "log", "path": "a.txt" }))
            .await
            .text;
        assert_eq!(log.lines().count(), 2, "{log}");
        assert!(!log.contains("never landed"), "{log}");
    }

    #[tokio::test]
    async fn of_a_folder_that_is_left_out_nothing_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let (clone, base, _) = world(directory.path()).await;
        let plan = [("ideas/walks/spec.md", "the plan\n")];
        let planned = commit_files(&clone, &base, &plan, "add the plan").await;
        let both = [
            ("ideas/walks/tasks.md", "more of it\n"),
            ("ideas.txt", "no plan\n"),
        ];
        let head = commit_files(&clone, &planned, &both, "build it").await;
        let history = |without: Option<&str>| {
            History::new(ReadableHistory {
                clone: clone.clone(),
                base: head.clone(),
                without: without.map(repo_path),
            })
        };
        let (all, part) = (history(None), history(Some("ideas")));
        let bench = Bench::new(&[], &[]);
        let rows = [
            (json!({ "action": "log" }), "build it", "add the plan"),
            (
                json!({ "action": "show", "commit": head.as_str() }),
                "no plan",
                "more of it",
            ),
            (
                json!({ "action": "show", "commit": planned.as_str() }),
                "",
                "the plan",
            ),
        ];
        for (arguments, told, hidden) in rows {
            let whole = bench.run(&all, arguments.clone()).await.text;
            assert!(whole.contains(told) && whole.contains(hidden), "{whole}");
            let seen = bench.run(&part, arguments).await.text;
            assert!(seen.contains(told) && !seen.contains(hidden), "{seen}");
            assert!(!seen.contains("ideas/"), "{seen}");
        }
        for action in ["log", "blame", "show"] {
            let arguments = json!({ "action": action, "path": "ideas/walks/spec.md", "commit": planned.as_str() });
            let refused = bench.run(&part, arguments).await;
            assert!(refused.is_error, "{action}: {}", refused.text);
            assert!(
                refused
                    .text
                    .contains("there is no `ideas/walks/spec.md` here")
            );
        }
    }
}
