//! Finds files by name.

use std::time::SystemTime;

use async_trait::async_trait;
use ropewalk_config::settings::Permission;
use ropewalk_schemas::GlobPattern;
use ropewalk_schemas::advice::Words;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::walk::{Area, described};
use super::workbench::Workbench;
use super::{arguments, directory, path_of, plain_schema_of};
use crate::tool::{Freshness, Tool, ToolContext, ToolFailure, ToolOutput};

/// What it does, as models read it.
const DOES: &str = "Finds files by a pattern such as `**/*.rs`, the newest first. Files that git ignores are left out";
/// The most files that are listed.
const MOST: usize = 100;

/// Finds files by name.
pub(super) struct Glob {
    workbench: Workbench,
    description: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// a glob; `*` stops at `/`, `**` does not
    pattern: String,
    /// the directory to look in
    #[serde(default)]
    path: Option<String>,
}

impl Glob {
    pub(super) fn new(workbench: Workbench) -> Self {
        Self {
            description: described(&workbench, DOES, "`pattern` or `path`"),
            workbench,
        }
    }
}

#[async_trait]
impl Tool for Glob {
    fn name(&self) -> &'static str {
        "glob"
    }

    fn description(&self) -> &str {
        &self.description
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

    fn freshness(&self, arguments: &Value) -> Freshness {
        Freshness::Search(path_of(arguments).concat())
    }

    fn concurrency_safe(&self) -> bool {
        true
    }

    async fn execute(&self, value: Value, _: &ToolContext) -> Result<ToolOutput, ToolFailure> {
        let wanted: Arguments = arguments(value)?;
        let below = directory(wanted.path.as_deref())?;
        let pattern = GlobPattern::parse(wanted.pattern.trim_start_matches("./"))
            .map_err(|error| ToolFailure::refused(Words::of(&error).to_string()))?;
        let prefix = below
            .as_ref()
            .map(|below| format!("{below}/"))
            .unwrap_or_default();
        let area = Area::new(&self.workbench, below.as_ref(), Some(&wanted.pattern))?;
        // Walking a large tree takes a while and must not hold up everybody else.
        let paths = tokio::task::spawn_blocking(move || newest_first(&area, &prefix, &pattern))
            .await
            .map_err(|error| ToolFailure::refused(format!("the search broke: {error}")))?;
        Ok(ToolOutput::text(listing(paths)))
    }
}

fn newest_first(area: &Area, prefix: &str, pattern: &GlobPattern) -> Vec<String> {
    let mut found: Vec<(SystemTime, String)> = area
        .files()
        .filter(|file| {
            let inner = file.path.strip_prefix(prefix).unwrap_or(&file.path);
            pattern.matches(inner) || pattern.matches(&file.path)
        })
        .map(|file| {
            let modified = file.file.metadata().and_then(|found| found.modified());
            (modified.unwrap_or(SystemTime::UNIX_EPOCH), file.path)
        })
        .collect();
    found.sort_by(|(a_time, a), (b_time, b)| b_time.cmp(a_time).then_with(|| a.cmp(b)));
    found.into_iter().map(|(_, path)| path).collect()
}

fn listing(mut paths: Vec<String>) -> String {
    if paths.is_empty() {
        return "[no file matches]".to_owned();
    }
    if paths.len() > MOST {
        let more = paths.len() - MOST;
        paths.truncate(MOST);
        paths.push(format!("[{more} more; narrow the pattern]"));
    }
    paths.join("\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::tools::workbench::tests::Bench;

    #[tokio::test]
    async fn the_newest_match_comes_first_and_ignored_files_not_at_all() {
        let bench = Bench::new(
            &[
                (".gitignore", "target/\n"),
                ("a.rs", ""),
                ("src/b.rs", ""),
                ("src/c.rs", ""),
                ("target/d.rs", ""),
            ],
            &[],
        );
        bench.touch("src/b.rs", Duration::from_secs(20));
        bench.touch("src/c.rs", Duration::from_secs(10));
        bench.touch("a.rs", Duration::from_secs(5));
        let glob = Glob::new(bench.workbench.clone());
        let cases = [
            (json!({ "pattern": "**/*.rs" }), "src/b.rs\nsrc/c.rs\na.rs"),
            (json!({ "pattern": "*.rs" }), "a.rs"),
            (
                json!({ "pattern": "*.rs", "path": "src" }),
                "src/b.rs\nsrc/c.rs",
            ),
            (json!({ "pattern": "*.py" }), "[no file matches]"),
        ];
        for (arguments, expected) in cases {
            let output = bench.run(&glob, arguments.clone()).await;
            assert_eq!(output.text, expected, "{arguments}");
        }
        assert!(bench.run(&glob, json!({ "pattern": "a{" })).await.is_error);
    }

    #[tokio::test]
    async fn a_plan_is_found_where_it_is_named() {
        let plan = "ideas/walks/build/spec.md";
        let bench = Bench::new(&[("a.md", ""), (plan, "")], &[]);
        let glob = Glob::new(bench.workbench.clone());
        let cases = [
            (json!({ "pattern": "**/*.md" }), "a.md"),
            (json!({ "pattern": "ideas/**" }), plan),
            (json!({ "pattern": "**", "path": "ideas" }), plan),
        ];
        for (arguments, expected) in cases {
            let output = bench.run(&glob, arguments.clone()).await;
            assert_eq!(output.text, expected, "{arguments}");
        }
    }

    #[tokio::test]
    async fn a_pattern_that_nests_too_deep_is_refused_and_harms_nobody() {
        let bench = Bench::new(&[("a", "")], &[]);
        let glob = Glob::new(bench.workbench.clone());
        let nested = |depth: usize| format!("{}a{}", "{".repeat(depth), "}".repeat(depth));
        for pattern in [nested(8_000), nested(100), "*".repeat(2_000)] {
            let output = bench.run(&glob, json!({ "pattern": pattern })).await;
            assert!(output.is_error, "{}", output.text);
            assert!(output.text.len() < 300, "{}", output.text);
        }
    }

    #[test]
    fn at_most_a_hundred_files_are_listed() {
        let text = listing((0..120).map(|number| number.to_string()).collect());
        assert_eq!(text.lines().count(), 101);
        assert!(text.ends_with("[20 more; narrow the pattern]"));
    }
}
