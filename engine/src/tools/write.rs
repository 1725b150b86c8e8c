//! Writes a whole file.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::workbench::Workbench;
use super::{arguments, path};
use crate::tool::{Tool, ToolContext, ToolFailure, ToolOutput};

/// Writes a file.
pub(super) struct Write {
    workbench: Workbench,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    content: String,
}

impl Write {
    pub(super) fn new(workbench: Workbench) -> Self {
        Self { workbench }
    }
}

#[async_trait]
impl Tool for Write {
    fn name(&self) -> &'static str {
        "write"
    }

    fn description(&self) -> &'static str {
        "Writes a whole file, making it and its directories if need be. Only the files of the task can be written; an \
         existing file has to be read first."
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "the file, relative to the repository" },
                "content": { "type": "string", "description": "all that the file is to hold" },
            },
            "required": ["path", "content"],
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
        self.workbench.write(&path, wanted.content.as_bytes())?;
        let lines = wanted.content.lines().count();
        Ok(ToolOutput::text(format!("wrote `{path}`, {lines} lines"))
            .with_metadata(json!({ "changed": path })))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tools::read::Read;
    use crate::tools::workbench::tests::Bench;

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
        assert!(!bench.run(&write, call).await.is_error);
        assert_eq!(bench.content("a").as_deref(), Some("new"));
    }
}
