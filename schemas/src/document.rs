//! Reads and writes spec.md and tasks.md without loss, and names a revision by its hash.

mod escape;
mod front;
mod graph;
pub mod spec_md;
pub mod tasks_md;
mod yaml;

use serde_json::Value;

pub use graph::{GraphFault, check as check_graph, width as graph_width};

use crate::ids::ContentHash;
use crate::specification::Document;
use crate::task::TaskBlock;

/// The most bytes a document may have.
pub const MOST_BYTES: usize = 1024 * 1024;

/// Ends a document that ideation keeps up to date, before the hash of what stands above.
pub const KEPT_UP_TO_DATE: &str =
    "<!-- written by ideation, kept up to date until somebody edits it:";

/// Returns a document as it is meant to be read: without the mark of who keeps it.
pub fn without_mark(text: &str) -> &str {
    match text.rsplit_once(KEPT_UP_TO_DATE) {
        Some((before, mark)) if mark.trim_end().ends_with("-->") => before.trim_end(),
        _ => text,
    }
}

/// Says what is wrong with a document, where, and how to mend it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct DocumentError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It is too large.
    #[error("the document has {0} bytes; {MOST_BYTES} is the most, so split it")]
    TooLarge(usize),
    /// It is not text.
    #[error("the document is not UTF-8 text; write it anew or restore it from git")]
    NotText,
    /// The front matter is missing or never ends.
    #[error("no front matter; begin the document with a line `---`, the keys, and a line `---`")]
    NoFrontMatter,
    /// The front matter cannot be read.
    #[error("the front matter cannot be read: {0}")]
    FrontMatter(String),
    /// The title is missing.
    #[error("no title; write it as `{0}` below the front matter")]
    NoTitle(&'static str),
    /// A section is not known.
    #[error("section `{0}` is not known; take it out or use one of the sections of the template")]
    UnknownSection(String),
    /// A section occurs twice.
    #[error("section `{0}` occurs twice; join the two")]
    RepeatedSection(String),
    /// A line is neither an item nor belongs to one.
    #[error(
        "`{0}` stands in a list; begin it with `- `, or indent it by two spaces to continue an item"
    )]
    NotAnItem(String),
    /// An item is no requirement.
    #[error("`{0}` is no requirement; begin it with its id and priority, as in `FR-1 (must): …`")]
    NotARequirement(String),
    /// A line is not a row of the table.
    #[error("`{row}` is not a row with {columns} cells between `|`")]
    NotARow {
        /// The line.
        row: String,
        /// The cells a row has.
        columns: usize,
    },
    /// A cell or an item holds a value that cannot be.
    #[error("{0}")]
    Value(String),
    /// A fence is never closed.
    #[error("the block that begins here never ends; close it with {0}")]
    OpenBlock(String),
    /// A task block stands outside of a phase.
    #[error("a yaml block stands outside of a phase; put it below a heading `## Phase: NAME`")]
    OutsidePhase,
    /// A task block cannot be read.
    #[error("{task} cannot be read: {reason}")]
    Block {
        /// The task, as far as it is known.
        task: String,
        /// What is wrong.
        reason: String,
    },
    /// A task stands under the heading of another phase.
    #[error(
        "task `{task}` has phase `{phase}` but stands under `{heading}`; move it or correct its phase"
    )]
    WrongPhase {
        /// The task.
        task: String,
        /// Its phase.
        phase: String,
        /// The phase of the heading.
        heading: String,
    },
    /// The tasks do not form a plan.
    #[error(transparent)]
    Graph(#[from] GraphFault),
    /// The front matter counts wrongly.
    #[error("the front matter says `{key}: {said}`, but there are {counted}; correct `{key}`")]
    Count {
        /// The key.
        key: &'static str,
        /// What it says.
        said: usize,
        /// What is there.
        counted: usize,
    },
    /// An edit names a task that is not there.
    #[error("no task `{0}` in this document")]
    UnknownTask(String),
    /// An edit would break the document.
    #[error(
        "task `{task}` cannot be edited in place: {reason}; write its block with one key a line"
    )]
    Edit {
        /// The task.
        task: String,
        /// What would break.
        reason: String,
    },
}

impl Fault {
    /// Says on which line the fault is.
    pub(crate) fn at(self, line: usize) -> DocumentError {
        DocumentError { line, fault: self }
    }
}

/// Returns the text of a document's bytes; too many bytes, or bytes that are no text, are refused.
pub fn text(bytes: &[u8]) -> Result<&str, DocumentError> {
    refuse_size(bytes.len())?;
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
        Fault::NotText.at(line_at(good))
    })?;
    refuse_nul(text)?;
    Ok(text)
}

/// Names a revision: the SHA-256 of document and task graph as JSON with sorted keys.
pub fn hash(document: &Document, tasks: &[TaskBlock]) -> ContentHash {
    let value = serde_json::json!({ "document": document, "tasks": tasks });
    let mut canonical = String::new();
    write_canonical(&value, &mut canonical);
    ContentHash::of(canonical.as_bytes())
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (index, (key, inner)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_canonical(inner, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, inner) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(inner, out);
            }
            out.push(']');
        }
        plain => out.push_str(&plain.to_string()),
    }
}

/// Refuses what `parse` of either document must not even look at.
fn refuse_unreadable(text: &str) -> Result<(), DocumentError> {
    refuse_size(text.len())?;
    refuse_nul(text)
}

fn refuse_size(bytes: usize) -> Result<(), DocumentError> {
    if bytes > MOST_BYTES {
        return Err(Fault::TooLarge(bytes).at(1));
    }
    Ok(())
}

fn refuse_nul(text: &str) -> Result<(), DocumentError> {
    match text.find('\0') {
        Some(at) => {
            let before = text.as_bytes().get(..at).unwrap_or_default();
            Err(Fault::NotText.at(line_at(before)))
        }
        None => Ok(()),
    }
}

fn line_at(before: &[u8]) -> usize {
    before.split(|byte| *byte == b'\n').count()
}

/// Cuts a text for an error message.
fn shown(text: &str) -> String {
    let mut cut: String = text.trim().chars().take(60).collect();
    if cut.len() < text.trim().len() {
        cut.push('…');
    }
    cut.escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_and_oversized_files_are_refused() {
        assert_eq!(text(b"a\nb\xff").unwrap_err(), Fault::NotText.at(2));
        assert_eq!(text(b"a\n\nb\0").unwrap_err(), Fault::NotText.at(3));
        let large = vec![b'a'; 50 * 1024 * 1024];
        assert!(matches!(
            text(&large).unwrap_err().fault,
            Fault::TooLarge(_)
        ));
        assert_eq!(text("é".as_bytes()), Ok("é"));
    }

    #[test]
    fn a_hash_depends_on_content_and_not_on_the_order_of_keys() {
        let document = Document {
            title: "Habits".to_owned(),
            ..Document::default()
        };
        let first = hash(&document, &[]);
        assert_eq!(first, hash(&document.clone(), &[]));
        let other = Document {
            objective: "more".to_owned(),
            ..document
        };
        assert_ne!(first, hash(&other, &[]));
        let mut out = String::new();
        write_canonical(
            &serde_json::json!({"b": [1, {"d": null, "c": "x"}], "a": true}),
            &mut out,
        );
        assert_eq!(out, r#"{"a":true,"b":[1,{"c":"x","d":null}]}"#);
    }
}
