//! Shows a file with line numbers.

use std::fmt::Write as _;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::workbench::Workbench;
use super::{arguments, path};
use crate::tool::{Tool, ToolContext, ToolFailure, ToolOutput};

/// So many lines are shown when the call says nothing else.
const LINES: usize = 2_000;
/// So much of a file is looked at to tell text from binary.
const SAMPLE_BYTES: usize = 4 * 1024;
/// Files with these endings are never text.
const BINARY: [&str; 30] = [
    "png", "jpg", "jpeg", "gif", "webp", "ico", "bmp", "pdf", "zip", "gz", "tar", "xz", "zst",
    "bz2", "7z", "exe", "dll", "so", "dylib", "a", "o", "rlib", "class", "jar", "wasm", "woff",
    "woff2", "ttf", "mp4", "sqlite",
];

/// Shows a file.
pub(super) struct Read {
    workbench: Workbench,
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    #[serde(default)]
    offset: Option<usize>,
    #[serde(default)]
    limit: Option<usize>,
}

impl Read {
    pub(super) fn new(workbench: Workbench) -> Self {
        Self { workbench }
    }
}

#[async_trait]
impl Tool for Read {
    fn name(&self) -> &'static str {
        "read"
    }

    fn description(&self) -> &'static str {
        "Shows a text file with line numbers. Read a file before you write or edit it."
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "the file, relative to the repository" },
                "offset": { "type": "integer", "minimum": 1, "description": "the first line, from 1" },
                "limit": { "type": "integer", "minimum": 1, "maximum": LINES, "description": "how many lines" },
            },
            "required": ["path"],
            "additionalProperties": false,
        })
    }

    fn concurrency_safe(&self) -> bool {
        true
    }

    async fn execute(&self, value: Value, _: &ToolContext) -> Result<ToolOutput, ToolFailure> {
        let wanted: Arguments = arguments(value)?;
        let path = path(&wanted.path)?;
        let Some(content) = self.workbench.read(&path)? else {
            return Err(ToolFailure::refused(format!(
                "there is no file `{path}`; look with `ls` or `glob`"
            )));
        };
        if is_binary(path.as_str(), &content) {
            return Ok(ToolOutput::text(format!(
                "`{path}` is binary, {} bytes; it is not shown",
                content.len()
            )));
        }
        self.workbench.saw(&path);
        let text = String::from_utf8_lossy(&content);
        Ok(ToolOutput::text(numbered(
            &text,
            wanted.offset.unwrap_or(1),
            wanted.limit.unwrap_or(LINES),
        )))
    }
}

/// Numbers the lines from `offset` on and says what follows them.
fn numbered(text: &str, offset: usize, limit: usize) -> String {
    let total = text.lines().count();
    if total == 0 {
        return "[the file is empty]".to_owned();
    }
    let mut shown = String::new();
    let mut count = 0;
    for (index, line) in text.lines().enumerate().skip(offset - 1).take(limit) {
        // Writing to a string cannot fail.
        writeln!(shown, "{:>6}\t{line}", index + 1).ok();
        count += 1;
    }
    let last = offset - 1 + count;
    if count == 0 {
        return format!("[the file has {total} lines]");
    }
    if last < total {
        writeln!(
            shown,
            "[{} more lines; go on with offset {}]",
            total - last,
            last + 1
        )
        .ok();
    }
    shown
}

fn is_binary(path: &str, content: &[u8]) -> bool {
    let by_name = path
        .rsplit_once('.')
        .is_some_and(|(_, ending)| BINARY.contains(&ending.to_ascii_lowercase().as_str()));
    let sample = &content[..content.len().min(SAMPLE_BYTES)];
    let strange = sample
        .iter()
        .filter(|byte| matches!(byte, 0..=8 | 14..=31 | 127))
        .count();
    by_name || sample.contains(&0) || strange * 10 > sample.len() * 3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::workbench::tests::Bench;

    #[tokio::test]
    async fn lines_are_numbered_from_the_offset() {
        let lines: Vec<String> = (1..=20).map(|line| format!("l{line}\n")).collect();
        let text = lines.concat();
        let bench = Bench::new(&[("a.txt", &text), ("empty", "")], &[]);
        let read = Read::new(bench.workbench.clone());
        let cases = [
            (
                json!({ "path": "a.txt", "offset": 10, "limit": 5 }),
                "    10\tl10\n    11\tl11\n    12\tl12\n    13\tl13\n    14\tl14\n[6 more lines; go on with offset 15]\n",
            ),
            (json!({ "path": "./a.txt", "offset": 20 }), "    20\tl20\n"),
            (
                json!({ "path": "a.txt", "offset": 21 }),
                "[the file has 20 lines]",
            ),
            (json!({ "path": "empty" }), "[the file is empty]"),
        ];
        for (arguments, expected) in cases {
            let output = bench.run(&read, arguments.clone()).await;
            assert_eq!(output.text, expected, "{arguments}");
        }
    }

    #[tokio::test]
    async fn no_byte_of_a_binary_file_is_shown() {
        let bench = Bench::new(
            &[("tool", "\u{7f}ELF\u{2}\u{1}\u{0}xx"), ("a.PNG", "text")],
            &[],
        );
        let read = Read::new(bench.workbench.clone());
        for path in ["tool", "a.PNG"] {
            let output = bench.run(&read, json!({ "path": path })).await;
            assert!(output.text.contains("is binary"), "{}", output.text);
            assert!(!output.text.contains("ELF"));
        }
    }

    #[tokio::test]
    async fn nothing_outside_the_slot_can_be_read() {
        let bench = Bench::new(&[("a", "inside")], &[]);
        let slot = bench.directory.path().join("slot");
        std::fs::write(bench.directory.path().join("secret"), "outside").unwrap();
        std::os::unix::fs::symlink("../secret", slot.join("link")).unwrap();
        std::os::unix::fs::symlink("..", slot.join("up")).unwrap();
        let read = Read::new(bench.workbench.clone());
        for path in [
            "../secret",
            "/etc/passwd",
            "link",
            "up/secret",
            ".git/config",
            "missing",
        ] {
            let output = bench.run(&read, json!({ "path": path })).await;
            assert!(output.is_error, "{path}: {}", output.text);
            assert!(!output.text.contains("outside"), "{path}");
        }
    }
}
