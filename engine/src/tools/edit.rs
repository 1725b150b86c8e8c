//! Replaces a piece of a file.

mod replace;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use similar::TextDiff;

use super::workbench::Workbench;
use super::{arguments, path};
use crate::tool::{Tool, ToolContext, ToolFailure, ToolOutput};
use replace::{ReplaceError, replace};

/// Replaces a piece of a file.
pub(super) struct Edit {
    workbench: Workbench,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    old_text: String,
    new_text: String,
    #[serde(default)]
    replace_all: bool,
}

impl Edit {
    pub(super) fn new(workbench: Workbench) -> Self {
        Self { workbench }
    }
}

#[async_trait]
impl Tool for Edit {
    fn name(&self) -> &'static str {
        "edit"
    }

    fn description(&self) -> &'static str {
        "Replaces a text in a file by another. The old text must occur exactly once, unless `replace_all` is set: \
         give enough lines around it. The file has to be read first and be one of the task's."
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "the file, relative to the repository" },
                "old_text": { "type": "string", "minLength": 1, "description": "the text as it stands in the file" },
                "new_text": { "type": "string", "description": "the text that takes its place" },
                "replace_all": { "type": "boolean", "description": "replace every occurrence" },
            },
            "required": ["path", "old_text", "new_text"],
            "additionalProperties": false,
        })
    }

    fn concurrency_safe(&self) -> bool {
        false
    }

    async fn execute(&self, value: Value, _: &ToolContext) -> Result<ToolOutput, ToolFailure> {
        let wanted: Arguments = arguments(value)?;
        let path = path(&wanted.path)?;
        self.workbench.admit_write(&path)?;
        let Some(content) = self.workbench.read(&path)? else {
            return Err(ToolFailure::refused(format!(
                "there is no file `{path}`; make it with `write`"
            )));
        };
        let before = String::from_utf8(content)
            .map_err(|_| ToolFailure::refused(format!("`{path}` is not UTF-8 text")))?;
        let after = replace(
            &before,
            &wanted.old_text,
            &wanted.new_text,
            wanted.replace_all,
        )
        .map_err(|error| refusal(path.as_str(), &error))?;
        self.workbench.write(&path, after.as_bytes())?;
        let diff = TextDiff::from_lines(&before, &after)
            .unified_diff()
            .context_radius(2)
            .to_string();
        Ok(ToolOutput::text(format!("edited `{path}`\n{diff}"))
            .with_metadata(json!({ "changed": path, "diff": diff })))
    }
}

fn refusal(path: &str, error: &ReplaceError) -> ToolFailure {
    ToolFailure::refused(match error {
        ReplaceError::Missing => {
            format!("the old text does not occur in `{path}`; read the file and copy it exactly")
        }
        ReplaceError::Ambiguous(count) => format!(
            "the old text occurs {count} times in `{path}`; give more lines around it or set `replace_all`"
        ),
        ReplaceError::Same => "the new text equals the old text".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::read::Read;
    use crate::tools::workbench::tests::Bench;

    async fn edited(bench: &Bench, arguments: Value) -> ToolOutput {
        bench
            .run(&Read::new(bench.workbench.clone()), json!({ "path": "a" }))
            .await;
        bench
            .run(&Edit::new(bench.workbench.clone()), arguments)
            .await
    }

    #[tokio::test]
    async fn an_edit_changes_the_file_and_shows_the_difference() {
        let bench = Bench::new(&[("a", "one\ntwo\nthree\n")], &["a"]);
        let output = edited(
            &bench,
            json!({ "path": "a", "old_text": "two", "new_text": "2" }),
        )
        .await;
        assert_eq!(bench.content("a").as_deref(), Some("one\n2\nthree\n"));
        assert!(output.text.contains("-two\n+2\n"), "{}", output.text);
        assert_eq!(output.metadata["changed"], "a");
    }

    #[tokio::test]
    async fn a_text_that_occurs_twice_changes_nothing_unless_all_are_meant() {
        let bench = Bench::new(&[("a", "x\nx\n")], &["a"]);
        let once = json!({ "path": "a", "old_text": "x", "new_text": "y" });
        let output = edited(&bench, once).await;
        assert!(
            output.is_error && output.text.contains("2 times"),
            "{}",
            output.text
        );
        assert_eq!(bench.content("a").as_deref(), Some("x\nx\n"));
        let all = json!({ "path": "a", "old_text": "x", "new_text": "y", "replace_all": true });
        assert!(!edited(&bench, all).await.is_error);
        assert_eq!(bench.content("a").as_deref(), Some("y\ny\n"));
    }

    #[tokio::test]
    async fn a_file_that_was_not_read_or_is_not_of_the_task_is_not_edited() {
        let bench = Bench::new(&[("a", "x"), ("b", "x")], &["a"]);
        let edit = Edit::new(bench.workbench.clone());
        for path in ["a", "b", "c"] {
            let arguments = json!({ "path": path, "old_text": "x", "new_text": "y" });
            assert!(bench.run(&edit, arguments).await.is_error, "{path}");
        }
        assert_eq!(bench.content("a").as_deref(), Some("x"));
        assert_eq!(bench.content("b").as_deref(), Some("x"));
    }
}
