//! What the verbs that show lines, and those that say something about them, have in common.

use std::fmt::Write as _;

use clap::Args;
use ropewalk_desk::comments::Comment;
use ropewalk_desk::views::lines::{Line, LineKind, LinesView, Side};
use ropewalk_schemas::SpecId;
use ropewalk_schemas::amount::counted;
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;

/// What is said about which lines.
#[derive(Debug, Args)]
pub(crate) struct Comments {
    /// What the lines were shown of, as the verb that shows them says it; of a commit its first 7 digits are enough, of a revision 16.
    #[arg(long, value_name = "HASH")]
    pub(crate) of: String,
    /// A line and what is said about it: `spec.md:12 "too vague"`; `FILE:-12` is line 12 before the change. May be given
    /// again; all of it goes together.
    #[arg(long, num_args = 2, value_names = ["FILE:LINE", "TEXT"], required = true, allow_hyphen_values = true)]
    on: Vec<String>,
}

impl Comments {
    /// Reads what is said.
    pub(crate) fn said(&self) -> Result<Vec<Comment>, CliError> {
        let pairs = self.on.chunks_exact(2);
        pairs.map(|pair| comment(&pair[0], &pair[1])).collect()
    }
}

fn comment(place: &str, text: &str) -> Result<Comment, CliError> {
    let unreadable = || {
        let told = (
            format!("`{place}` names no line"),
            "write `FILE:LINE`, as in `--on spec.md:12 \"too vague\"`",
        );
        CliError::usage(told)
    };
    let (file, number) = place.rsplit_once(':').ok_or_else(unreadable)?;
    let (side, number) = match number.strip_prefix('-') {
        Some(number) => (Side::Old, number),
        None => (Side::New, number),
    };
    Ok(Comment {
        file: file.to_owned(),
        side,
        line: number.parse().map_err(|_| unreadable())?,
        text: text.to_owned(),
    })
}

/// Comments that were sent.
#[derive(Debug, Serialize)]
pub(crate) struct CommentReceipt {
    pub(crate) spec: SpecId,
    pub(crate) comments: usize,
}

/// Says that comments were sent.
pub(crate) fn sent(app: &App, receipt: &CommentReceipt) -> Result<(), CliError> {
    app.output.show(receipt, |sent| {
        format!(
            "asked for a new revision by {}; `ropewalk spec show {}` shows it once it is there",
            counted(sent.comments, "comment"),
            sent.spec
        )
    })
}

/// Prints lines with their numbers and what they are of; `verb` says something about them.
pub(crate) fn shown(app: &App, lines: &LinesView, verb: &str) -> Result<(), CliError> {
    app.output.show(lines, |lines| {
        let mut text = String::new();
        for file in &lines.files {
            writeln!(text, "{}", file.file).ok();
            for line in &file.lines {
                writeln!(text, "{}", numbered(line)).ok();
            }
            if file.cut {
                text.push_str("  … there is more, or it is no text\n");
            }
            text.push('\n');
        }
        match (lines.files.is_empty(), lines.of.as_str()) {
            (true, _) | (_, "") => text.push_str("there are no lines yet"),
            (false, of) => {
                write!(
                    text,
                    "say something about lines with `ropewalk {verb} --of {of} --on FILE:LINE TEXT`"
                )
                .ok();
            }
        }
        text
    })
}

/// Returns a line as it is pointed at: what is gone by a number with a minus.
fn numbered(line: &Line) -> String {
    let sign = match line.kind {
        LineKind::Same => ' ',
        LineKind::Added => '+',
        LineKind::Removed => '-',
        LineKind::Place => return format!("       {}", line.text),
    };
    let number = match line.place() {
        Some((Side::New, number)) => number.to_string(),
        Some((Side::Old, number)) => format!("-{number}"),
        None => String::new(),
    };
    format!("{number:>6} {sign}{}", line.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_file_and_a_line_before_or_after_the_change() {
        let cases = [
            ("spec.md:12", Some(("spec.md", Side::New, 12))),
            ("src/a:b.rs:-3", Some(("src/a:b.rs", Side::Old, 3))),
            ("spec.md", None),
            ("spec.md:", None),
            ("spec.md:x", None),
            ("spec.md:--3", None),
        ];
        for (place, expected) in cases {
            let read = comment(place, "so").ok();
            let read = read.map(|read| (read.file, read.side, read.line));
            let expected = expected.map(|(file, side, line)| (file.to_owned(), side, line));
            assert_eq!(read, expected, "{place}");
        }
    }
}
