//! Shows what a source file defines, with the lines, without the bodies.

use async_trait::async_trait;
use ropewalk_config::settings::Permission;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::workbench::Workbench;
use super::{arguments, path, path_of, plain_schema_of};
use crate::outline::{Language, Symbol, outline_with_imports, render};
use crate::tool::{Tool, ToolContext, ToolFailure, ToolOutput};

/// Shows what a source file defines.
pub(super) struct CodeOutline {
    workbench: Workbench,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// the file, relative to the repository
    path: String,
}

impl CodeOutline {
    pub(super) fn new(workbench: Workbench) -> Self {
        Self { workbench }
    }
}

#[async_trait]
impl Tool for CodeOutline {
    fn name(&self) -> &'static str {
        "code_outline"
    }

    fn description(&self) -> &'static str {
        "Lists what a source file imports, in one line, and what it defines, each with its first and last line and without \
         its body, so that you can read the right lines of a long file. For Rust, TypeScript, JavaScript, Python, Go, Java, \
         C and C++."
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
        let path = path(&wanted.path)?;
        let Some(language) = Language::of(path.as_str()) else {
            return Err(ToolFailure::refused(format!(
                "`{path}` is in no language that can be outlined; use `read` or `grep`"
            )));
        };
        let Some(content) = self.workbench.read(&path)? else {
            return Err(ToolFailure::refused(format!(
                "there is no file `{path}`; look with `ls` or `glob`"
            )));
        };
        let source = String::from_utf8_lossy(&content).into_owned();
        // Parsing a long file takes a while and must not hold up everybody else.
        let symbols = tokio::task::spawn_blocking(move || outline_with_imports(language, &source))
            .await
            .map_err(|error| ToolFailure::refused(format!("the outline broke: {error}")))?
            .map_err(|error| {
                ToolFailure::refused(format!("`{path}` has no outline: {error}; use `read`"))
            })?;
        Ok(ToolOutput::text(told(&symbols)))
    }
}

fn told(symbols: &[Symbol]) -> String {
    match symbols {
        [] => "[the file defines nothing]".to_owned(),
        symbols => render(symbols),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::workbench::tests::Bench;

    #[tokio::test]
    async fn a_file_is_outlined_and_what_cannot_be_says_what_to_do_instead() {
        let bench = Bench::new(
            &[
                ("a.rs", "use b::c;\n\nfn a() {\n    1\n}\n"),
                ("b.py", "# nothing\n"),
                ("c.txt", "fn no() {}"),
            ],
            &[],
        );
        let tool = CodeOutline::new(bench.workbench.clone());
        let asked = |path: &str| json!({ "path": path });
        let rows = [
            ("a.rs", "1-1  use b::c\n3-5  fn a()\n", false),
            ("b.py", "[the file defines nothing]", false),
            ("c.txt", "use `read` or `grep`", true),
            ("missing.rs", "there is no file", true),
            ("../a.rs", "..", true),
        ];
        for (path, told, failed) in rows {
            let output = bench.run(&tool, asked(path)).await;
            assert!(output.text.contains(told), "{path}: {}", output.text);
            assert_eq!(output.is_error, failed, "{path}");
        }
    }
}
