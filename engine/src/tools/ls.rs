//! Lists a directory.

use async_trait::async_trait;
use ropewalk_config::settings::Permission;
use ropewalk_workspace::path::EntryKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::workbench::{Workbench, refused};
use super::{arguments, directory, path_of, plain_schema_of};
use crate::tool::{Tool, ToolContext, ToolFailure, ToolOutput};

/// The most entries that are listed.
const MOST: usize = 500;

/// Lists a directory.
pub(super) struct Ls {
    workbench: Workbench,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// the directory, relative to the repository
    #[serde(default)]
    path: Option<String>,
}

impl Ls {
    pub(super) fn new(workbench: Workbench) -> Self {
        Self { workbench }
    }
}

#[async_trait]
impl Tool for Ls {
    fn name(&self) -> &'static str {
        "ls"
    }

    fn description(&self) -> &'static str {
        "Lists a directory, the root of the repository when no path is given."
    }

    fn parameters(&self) -> Value {
        plain_schema_of::<Arguments>()
    }

    fn permission(&self) -> Option<Permission> {
        Some(Permission::Read)
    }

    fn subjects(&self, arguments: &Value) -> Vec<String> {
        path_of(arguments)
    }

    fn concurrency_safe(&self) -> bool {
        true
    }

    async fn execute(&self, value: Value, _: &ToolContext) -> Result<ToolOutput, ToolFailure> {
        let wanted: Arguments = arguments(value)?;
        let directory = directory(wanted.path.as_deref())?;
        let entries = self
            .workbench
            .files()
            .list(directory.as_ref())
            .map_err(|error| refused(&error))?;
        let Some(entries) = entries else {
            return Err(ToolFailure::refused("there is no such directory"));
        };
        let mut lines: Vec<String> = entries
            .iter()
            .filter(|entry| entry.name != ".git")
            .map(|entry| match entry.kind {
                EntryKind::Directory => format!("{}/", entry.name),
                EntryKind::Link => format!("{}@", entry.name),
                EntryKind::File | EntryKind::Special => entry.name.clone(),
            })
            .collect();
        if lines.is_empty() {
            return Ok(ToolOutput::text("[the directory is empty]"));
        }
        if lines.len() > MOST {
            let more = lines.len() - MOST;
            lines.truncate(MOST);
            lines.push(format!("[{more} more]"));
        }
        Ok(ToolOutput::text(lines.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::workbench::tests::Bench;

    #[tokio::test]
    async fn a_directory_is_listed_in_order_with_its_kinds() {
        let bench = Bench::new(
            &[("b.txt", ""), ("a/x", ""), (".git", "gitdir: elsewhere")],
            &[],
        );
        let ls = Ls::new(bench.workbench.clone());
        for arguments in [json!({}), json!({ "path": "." }), json!({ "path": "" })] {
            assert_eq!(bench.run(&ls, arguments).await.text, "a/\nb.txt");
        }
        assert_eq!(bench.run(&ls, json!({ "path": "a" })).await.text, "x");
        for path in ["missing", "..", "b.txt"] {
            assert!(
                bench.run(&ls, json!({ "path": path })).await.is_error,
                "{path}"
            );
        }
    }

    #[tokio::test]
    async fn a_long_directory_is_cut_and_says_so() {
        let names: Vec<String> = (0..600).map(|number| format!("f{number:03}")).collect();
        let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
        let bench = Bench::new(&files, &[]);
        let text = bench
            .run(&Ls::new(bench.workbench.clone()), json!({}))
            .await
            .text;
        assert_eq!(text.lines().count(), 501);
        assert!(text.ends_with("f499\n[100 more]"));
    }
}
