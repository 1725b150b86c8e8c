//! Searches the contents of files.

mod pattern;

use std::io::ErrorKind;

use async_trait::async_trait;
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use ropewalk_config::settings::Permission;
use ropewalk_schemas::GlobPattern;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::amount::and_more;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::walk::{Area, described};
use super::workbench::Workbench;
use super::{arguments, directory, path_of, plain_schema_of};
use crate::tool::{Freshness, Keep, Tool, ToolContext, ToolFailure, ToolOutput};
use pattern::SearchPattern;

/// What it does, as models read it.
const DOES: &str =
    "Searches the lines of files for a regular expression. Files that git ignores are left out";
/// The most matches that are shown.
const MOST: usize = 100;
/// So many bytes are shown, whatever the matches are.
const MOST_BYTES: usize = 15 * 1024;
/// The longest line that is shown whole, in characters.
const LONGEST_LINE: usize = 2_000;
/// So much of a file is held at once: a line with those that are shown around it.
const HELD_BYTES: usize = 16 * 1024 * 1024;
/// So many files are named whose lines are longer.
const NAMED: usize = 5;

/// Searches the contents of files.
pub(super) struct Grep {
    workbench: Workbench,
    description: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// a regular expression
    pattern: String,
    /// the directory or file to search
    #[serde(default)]
    path: Option<String>,
    /// only files that match, for example `*.rs`
    #[serde(default)]
    glob: Option<String>,
    /// how many lines to show around a match
    #[serde(default)]
    #[schemars(range(max = 20))]
    context: usize,
    /// how many matches to pass over, to go on where an earlier search stopped
    #[serde(default)]
    offset: usize,
    #[serde(default)]
    ignore_case: bool,
}

impl Grep {
    pub(super) fn new(workbench: Workbench) -> Self {
        Self {
            description: described(&workbench, DOES, "`path` or `glob`"),
            workbench,
        }
    }
}

#[async_trait]
impl Tool for Grep {
    fn name(&self) -> &'static str {
        "grep"
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

    fn keep(&self) -> Keep {
        Keep::Everything
    }

    async fn execute(
        &self,
        value: Value,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolFailure> {
        let wanted: Arguments = arguments(value)?;
        let below = directory(wanted.path.as_deref())?;
        let search = Search {
            pattern: SearchPattern::parse(&wanted.pattern, wanted.ignore_case)
                .map_err(|error| ToolFailure::refused(error.to_string()))?,
            filter: wanted
                .glob
                .as_deref()
                .map(GlobPattern::anywhere)
                .transpose()
                .map_err(|error| ToolFailure::refused(Words::of(&error).to_string()))?,
            area: Area::new(&self.workbench, below.as_ref(), wanted.glob.as_deref())?,
            context: wanted.context,
            offset: wanted.offset,
        };
        let cancel = context.cancel.clone();
        // Searching a large tree takes a while and must not hold up everybody else.
        let text = tokio::task::spawn_blocking(move || search.run(&mut || cancel.is_cancelled()))
            .await
            .map_err(|error| ToolFailure::refused(format!("the search broke: {error}")))?;
        Ok(ToolOutput::text(text))
    }
}

struct Search {
    pattern: SearchPattern,
    filter: Option<GlobPattern>,
    area: Area,
    context: usize,
    offset: usize,
}

impl Search {
    fn run(&self, stop: &mut dyn FnMut() -> bool) -> String {
        let mut searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .before_context(self.context)
            .after_context(self.context)
            .heap_limit(Some(HELD_BYTES))
            .build();
        let mut lines = Lines {
            offset: self.offset,
            ..Lines::default()
        };
        for found in self.area.files() {
            if lines.is_full() || stop() {
                break;
            }
            if self
                .filter
                .as_ref()
                .is_some_and(|glob| !glob.matches(&found.path))
            {
                continue;
            }
            lines.path = found.path;
            let outcome = searcher.search_path(self.pattern.matcher(), &found.file, &mut lines);
            // A file that cannot be read is as good as one without a match.
            if outcome.is_err_and(|error| error.kind() == ErrorKind::Other) {
                lines.overlong.push(lines.path.clone());
            }
        }
        lines.finish()
    }
}

/// Collects what is shown of matches and their neighbours.
#[derive(Default)]
struct Lines {
    path: String,
    /// So many matches are passed over.
    offset: usize,
    shown: Vec<String>,
    bytes: usize,
    matches: usize,
    /// The files with more in a line than is held at once.
    overlong: Vec<String>,
}

impl Lines {
    fn is_full(&self) -> bool {
        self.matches >= self.offset + MOST || self.bytes >= MOST_BYTES
    }

    fn add(&mut self, mark: char, number: Option<u64>, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        let number = number.unwrap_or_default();
        let line = match text.char_indices().nth(LONGEST_LINE) {
            None => format!("{}{mark}{number}{mark}{text}", self.path),
            Some((end, _)) => {
                format!("{}{mark}{number}{mark}{}[cut]", self.path, &text[..end])
            }
        };
        self.bytes += line.len() + 1;
        self.shown.push(line);
    }

    fn finish(self) -> String {
        let overlong = self.overlong.iter().take(NAMED);
        let mut overlong: Vec<String> = overlong.map(|path| format!("`{path}`")).collect();
        overlong.extend(and_more(self.overlong.len(), NAMED));
        let found = self.found();
        if overlong.is_empty() {
            return found;
        }
        let overlong = overlong.join(", ");
        format!("{found}\n[not searched to the end, for lines that are too long: {overlong}]")
    }

    fn found(mut self) -> String {
        let (from, matches) = (self.offset, self.matches);
        if self.shown.is_empty() {
            return if matches == 0 {
                "[no line matches]".to_owned()
            } else {
                format!("[there are {matches} matches, none after offset {from}]")
            };
        }
        if self.is_full() {
            self.shown.push(format!(
                "[stopped at match {matches}; go on with offset {matches}, or narrow the search]"
            ));
        }
        self.shown.join("\n")
    }
}

impl Sink for Lines {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        self.matches += 1;
        if self.matches > self.offset {
            self.add(':', found.line_number(), found.bytes());
        }
        Ok(!self.is_full())
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> Result<bool, Self::Error> {
        let of_shown = match line.kind() {
            SinkContextKind::Before => self.matches >= self.offset,
            SinkContextKind::After | SinkContextKind::Other => self.matches > self.offset,
        };
        if of_shown {
            self.add('-', line.line_number(), line.bytes());
        }
        Ok(!self.is_full())
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, Self::Error> {
        if !self.shown.is_empty() {
            self.shown.push("--".to_owned());
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::workbench::tests::Bench;

    #[tokio::test]
    async fn matching_lines_are_shown_with_their_place() {
        let bench = Bench::new(
            &[
                ("a.rs", "one\ntwo\nthree\nfour\n"),
                ("src/b.txt", "Two\r\n"),
                ("bin", "two\u{0}two"),
                (".gitignore", "gone\n"),
                ("gone", "two"),
            ],
            &[],
        );
        let grep = Grep::new(bench.workbench.clone());
        let cases = [
            (json!({ "pattern": "two" }), "a.rs:2:two"),
            (
                json!({ "pattern": "two", "ignore_case": true }),
                "a.rs:2:two\nsrc/b.txt:1:Two",
            ),
            (
                json!({ "pattern": "t[wh]", "glob": "*.rs" }),
                "a.rs:2:two\na.rs:3:three",
            ),
            (
                json!({ "pattern": "t", "path": "src", "ignore_case": true }),
                "src/b.txt:1:Two",
            ),
            (
                json!({ "pattern": "two", "context": 1, "path": "a.rs" }),
                "a.rs-1-one\na.rs:2:two\na.rs-3-three",
            ),
            (json!({ "pattern": "five" }), "[no line matches]"),
        ];
        for (arguments, expected) in cases {
            let output = bench.run(&grep, arguments.clone()).await;
            assert_eq!(output.text, expected, "{arguments}");
        }
        let bad = bench.run(&grep, json!({ "pattern": "(" })).await;
        assert!(
            bad.is_error && bad.text.contains("no regular expression that can be used"),
            "{}",
            bad.text
        );
    }

    #[tokio::test]
    async fn a_plan_is_searched_where_it_is_named() {
        let plan = "ideas/walks/build/spec.md";
        let bench = Bench::new(&[("a.md", "two\n"), (plan, "two\n")], &[]);
        let grep = Grep::new(bench.workbench.clone());
        let cases = [
            (json!({ "pattern": "two" }), "a.md:1:two"),
            (json!({ "pattern": "two", "glob": "*.md" }), "a.md:1:two"),
            (
                json!({ "pattern": "two", "glob": "ideas/**" }),
                "ideas/walks/build/spec.md:1:two",
            ),
            (
                json!({ "pattern": "two", "path": plan }),
                "ideas/walks/build/spec.md:1:two",
            ),
        ];
        for (arguments, expected) in cases {
            let output = bench.run(&grep, arguments.clone()).await;
            assert_eq!(output.text, expected, "{arguments}");
        }
    }

    #[tokio::test]
    async fn a_pattern_that_nests_too_deep_is_refused_and_harms_nobody() {
        let bench = Bench::new(&[("a", "(\n")], &[]);
        let grep = Grep::new(bench.workbench.clone());
        let deep = format!("{}a{}", "{".repeat(8_000), "}".repeat(8_000));
        let cases = [
            json!({ "pattern": "a", "glob": deep }),
            json!({ "pattern": format!("{}{}", "(".repeat(8_000), ")".repeat(8_000)) }),
            json!({ "pattern": format!("{}a{}", "(".repeat(200), ")".repeat(200)) }),
            json!({ "pattern": "((a{99}){99}){99}" }),
        ];
        for arguments in cases {
            let output = bench.run(&grep, arguments).await;
            assert!(output.is_error, "{}", output.text);
            assert!(output.text.len() < 300, "{}", output.text);
        }
    }

    #[tokio::test]
    async fn matches_and_long_lines_are_bounded() {
        let many = format!("{}\n{}", "x".repeat(3_000), "x\n".repeat(200));
        let bench = Bench::new(&[("a", &many)], &[]);
        let grep = Grep::new(bench.workbench.clone());
        let text = bench.run(&grep, json!({ "pattern": "x" })).await.text;
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 101);
        assert!(lines[0].ends_with("x[cut]") && lines[0].len() < 2_020);
        assert!(lines[100].contains("stopped at match 100; go on with offset 100"));
        let wide = format!("{}\n", "y".repeat(900)).repeat(50);
        let bench = Bench::new(&[("a", &wide)], &[]);
        let grep = Grep::new(bench.workbench.clone());
        let text = bench.run(&grep, json!({ "pattern": "y" })).await.text;
        assert!(
            text.len() <= 16 * 1024 && text.contains("go on with offset 17"),
            "{}",
            text.len()
        );
    }

    #[tokio::test]
    async fn a_line_that_is_held_by_no_memory_ends_the_search_of_its_file_alone() {
        let overlong = format!("two\n{}\ntwo\n", "x".repeat(HELD_BYTES + 1));
        let bench = Bench::new(&[("a", &overlong), ("b", "two x\n")], &[]);
        let grep = Grep::new(bench.workbench.clone());
        let note = "[not searched to the end, for lines that are too long: `a`]";
        for (pattern, found) in [("two", "a:1:two\nb:1:two x"), ("x", "b:1:two x")] {
            let output = bench.run(&grep, json!({ "pattern": pattern })).await;
            assert_eq!(output.text, format!("{found}\n{note}"), "{pattern}");
        }
    }

    #[tokio::test]
    async fn a_search_goes_on_where_an_earlier_one_stopped() {
        let many: Vec<String> = (1..=250).map(|number| format!("x{number}\n")).collect();
        let many = many.concat();
        let bench = Bench::new(&[("a", &many)], &[]);
        let grep = Grep::new(bench.workbench.clone());
        let page = async |offset: usize| {
            let arguments = json!({ "pattern": "x", "offset": offset });
            let text = bench.run(&grep, arguments).await.text;
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            (lines.first().cloned(), lines.len(), lines.last().cloned())
        };
        let some = |text: &str| Some(text.to_owned());
        let stopped = "[stopped at match 200; go on with offset 200, or narrow the search]";
        assert_eq!(page(100).await, (some("a:101:x101"), 101, some(stopped)));
        assert_eq!(
            page(200).await,
            (some("a:201:x201"), 50, some("a:250:x250"))
        );
        let none = some("[there are 250 matches, none after offset 300]");
        assert_eq!(page(300).await, (none.clone(), 1, none));
        let around = json!({ "pattern": "x[15]0$", "offset": 1, "context": 1 });
        assert_eq!(
            bench.run(&grep, around).await.text,
            "a-49-x49\na:50:x50\na-51-x51"
        );
    }
}
