//! Searches the contents of files.

use async_trait::async_trait;
use globset::{GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use serde::Deserialize;
use serde_json::{Value, json};

use super::walk::Area;
use super::workbench::Workbench;
use super::{arguments, directory};
use crate::tool::{Tool, ToolContext, ToolFailure, ToolOutput};

/// The most matches that are shown.
const MOST: usize = 100;
/// The longest line that is shown whole, in characters.
const LONGEST_LINE: usize = 2_000;

/// Searches the contents of files.
pub(super) struct Grep {
    workbench: Workbench,
}

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    glob: Option<String>,
    #[serde(default)]
    context: usize,
    #[serde(default)]
    ignore_case: bool,
}

impl Grep {
    pub(super) fn new(workbench: Workbench) -> Self {
        Self { workbench }
    }
}

#[async_trait]
impl Tool for Grep {
    fn name(&self) -> &'static str {
        "grep"
    }

    fn description(&self) -> &'static str {
        "Searches the lines of files for a regular expression. Files that git ignores are left out."
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "pattern": { "type": "string", "description": "a regular expression" },
                "path": { "type": "string", "description": "the directory or file to search" },
                "glob": { "type": "string", "description": "only files that match, for example `*.rs`" },
                "context": { "type": "integer", "minimum": 0, "maximum": 20,
                    "description": "how many lines to show around a match" },
                "ignore_case": { "type": "boolean" },
            },
            "required": ["pattern"],
            "additionalProperties": false,
        })
    }

    fn concurrency_safe(&self) -> bool {
        true
    }

    async fn execute(
        &self,
        value: Value,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolFailure> {
        let wanted: Arguments = arguments(value)?;
        let below = directory(wanted.path.as_deref())?;
        let search = Search {
            matcher: matcher(&wanted)?,
            filter: wanted.glob.as_deref().map(filter).transpose()?,
            area: Area::new(self.workbench.files(), below.as_ref())?,
            context: wanted.context,
        };
        let cancel = context.cancel.clone();
        // Searching a large tree takes a while and must not hold up everybody else.
        let text = tokio::task::spawn_blocking(move || search.run(&mut || cancel.is_cancelled()))
            .await
            .map_err(|error| ToolFailure::refused(format!("the search broke: {error}")))?;
        Ok(ToolOutput::text(text))
    }
}

fn matcher(wanted: &Arguments) -> Result<RegexMatcher, ToolFailure> {
    RegexMatcherBuilder::new()
        .case_insensitive(wanted.ignore_case)
        .line_terminator(Some(b'\n'))
        .build(&wanted.pattern)
        .map_err(|error| {
            ToolFailure::refused(format!("the pattern is no regular expression: {error}"))
        })
}

/// A glob without a slash is for the file name, as everybody writes it.
fn filter(glob: &str) -> Result<GlobMatcher, ToolFailure> {
    let anywhere = if glob.contains('/') {
        glob.to_owned()
    } else {
        format!("**/{glob}")
    };
    GlobBuilder::new(&anywhere)
        .literal_separator(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| ToolFailure::refused(format!("`glob` is no glob: {error}")))
}

struct Search {
    matcher: RegexMatcher,
    filter: Option<GlobMatcher>,
    area: Area,
    context: usize,
}

impl Search {
    fn run(&self, stop: &mut dyn FnMut() -> bool) -> String {
        let mut searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .before_context(self.context)
            .after_context(self.context)
            .build();
        let mut lines = Lines::default();
        for found in self.area.files() {
            if lines.matches >= MOST || stop() {
                break;
            }
            if self
                .filter
                .as_ref()
                .is_some_and(|glob| !glob.is_match(&found.path))
            {
                continue;
            }
            lines.path = found.path;
            // A file that cannot be read is as good as one without a match.
            searcher
                .search_path(&self.matcher, &found.file, &mut lines)
                .ok();
        }
        lines.finish()
    }
}

/// Collects what is shown of matches and their neighbours.
#[derive(Default)]
struct Lines {
    path: String,
    shown: Vec<String>,
    matches: usize,
}

impl Lines {
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
        self.shown.push(line);
    }

    fn finish(mut self) -> String {
        if self.shown.is_empty() {
            return "[no line matches]".to_owned();
        }
        if self.matches >= MOST {
            self.shown
                .push(format!("[stopped at {MOST} matches; narrow the search]"));
        }
        self.shown.join("\n")
    }
}

impl Sink for Lines {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        self.add(':', found.line_number(), found.bytes());
        self.matches += 1;
        Ok(self.matches < MOST)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> Result<bool, Self::Error> {
        self.add('-', line.line_number(), line.bytes());
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, Self::Error> {
        self.shown.push("--".to_owned());
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
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
            bad.is_error && bad.text.contains("no regular expression"),
            "{}",
            bad.text
        );
    }

    #[tokio::test]
    async fn matches_and_long_lines_are_bounded() {
        let many = format!("{}\n{}", "x".repeat(3_000), "x\n".repeat(200));
        let bench = Bench::new(&[("a", &many)], &[]);
        let text = bench
            .run(
                &Grep::new(bench.workbench.clone()),
                json!({ "pattern": "x" }),
            )
            .await
            .text;
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 101);
        assert!(lines[0].ends_with("x[cut]") && lines[0].len() < 2_020);
        assert!(lines[100].contains("stopped at 100 matches"));
    }
}
