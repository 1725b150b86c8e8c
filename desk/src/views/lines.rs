//! Lines that people can point at: those of a document, and those of a difference with their numbers on both sides.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LineKind {
    /// It is as it was.
    Same,
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// No line: it says where the lines after it stand.
    Place,
}

/// The file before the change, or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Before.
    Old,
    /// After.
    New,
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Line {
    /// What became of it.
    pub kind: LineKind,
    /// Its number before the change, from 1.
    pub old: Option<u32>,
    /// Its number after the change, from 1.
    pub new: Option<u32>,
    /// What it says.
    pub text: String,
}

/// The lines of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileLines {
    /// The file.
    pub file: String,
    /// Its lines; none where it holds no text.
    pub lines: Vec<Line>,
    /// Whether lines were left out, since they are too many.
    pub cut: bool,
}

/// Lines that something can be said about, and what they were shown of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LinesView {
    /// The hash of the revision, or the commit of the build, that the lines are of; empty where there is none yet.
    pub of: String,
    /// The files with their lines.
    pub files: Vec<FileLines>,
}

impl Line {
    /// Returns where the line is pointed at: a line that is gone by its number before.
    pub fn place(&self) -> Option<(Side, u32)> {
        let new = self.new.map(|number| (Side::New, number));
        new.or_else(|| self.old.map(|number| (Side::Old, number)))
    }
}

impl FileLines {
    /// Numbers the lines of a document.
    pub fn of_document(file: &str, text: &str) -> Self {
        let lines = (1..).zip(text.lines()).map(|(number, text)| Line {
            kind: LineKind::Same,
            old: None,
            new: Some(number),
            text: text.to_owned(),
        });
        Self {
            file: file.to_owned(),
            lines: lines.collect(),
            cut: false,
        }
    }

    /// Reads a unified difference of git: the files in its order, each with the lines that it shows.
    pub fn of_difference(text: &str) -> Vec<Self> {
        let mut files: Vec<Self> = Vec::new();
        let mut numbers = None;
        for line in text.lines() {
            if let Some(names) = line.strip_prefix("diff --git ") {
                numbers = None;
                files.push(Self {
                    file: second(names),
                    lines: Vec::new(),
                    cut: false,
                });
                continue;
            }
            let Some(file) = files.last_mut() else {
                continue;
            };
            if let Some(begun) = hunk(line) {
                numbers = Some(begun);
                file.lines.push(Line {
                    kind: LineKind::Place,
                    old: None,
                    new: None,
                    text: line.to_owned(),
                });
            } else if let Some((old, new)) = &mut numbers {
                file.lines.extend(numbered(line, old, new));
            } else if let Some(name) = line
                .strip_prefix("+++ ")
                .filter(|name| *name != "/dev/null")
            {
                file.file = plain(name);
            } else if let Some(name) = line
                .strip_prefix("--- ")
                .filter(|name| *name != "/dev/null")
            {
                file.file = plain(name);
            }
        }
        files
    }

    /// Returns the line at a place.
    pub fn at(&self, side: Side, number: u32) -> Option<&Line> {
        self.lines.iter().find(|line| match side {
            Side::New => line.new == Some(number),
            // One that stays is pointed at by its number after.
            Side::Old => line.kind == LineKind::Removed && line.old == Some(number),
        })
    }
}

/// Reads a line of a hunk and moves the numbers on; nothing for what git remarks.
fn numbered(line: &str, old: &mut u32, new: &mut u32) -> Option<Line> {
    let (kind, text) = match line.as_bytes().first() {
        Some(b'+') => (LineKind::Added, &line[1..]),
        Some(b'-') => (LineKind::Removed, &line[1..]),
        Some(b' ') => (LineKind::Same, &line[1..]),
        None => (LineKind::Same, ""),
        Some(_) => return None,
    };
    let step = |number: &mut u32, counts: bool| {
        counts.then(|| {
            let at = *number;
            *number = number.saturating_add(1);
            at
        })
    };
    Some(Line {
        old: step(old, kind != LineKind::Added),
        new: step(new, kind != LineKind::Removed),
        kind,
        text: text.to_owned(),
    })
}

/// Reads at which lines a hunk begins, from `@@ -12,3 +14,5 @@`.
fn hunk(line: &str) -> Option<(u32, u32)> {
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let first = |range: &str| range.split(',').next()?.parse().ok();
    Some((first(old)?, first(new)?))
}

/// Returns the second of two names that only a space parts: both have the same length, but where a file was renamed,
/// which the lines after it tell.
fn second(names: &str) -> String {
    plain(names.get(names.len() / 2 + 1..).unwrap_or(names))
}

/// Drops what git puts around the name of a file.
fn plain(name: &str) -> String {
    let name = name.trim_end_matches('\t');
    let bare = name
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'));
    let name = bare.unwrap_or(name);
    let inside = name.strip_prefix("b/").or_else(|| name.strip_prefix("a/"));
    inside.unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFFERENCE: &str = "\
diff --git a/src/a b.rs b/src/a b.rs
index 1..2 100644
--- a/src/a b.rs\t
+++ b/src/a b.rs\t
@@ -3,3 +3,3 @@ fn f() {
 same
--- old
+++ new
@@ -20 +20,2 @@
 last
+more
\\ No newline at end of file
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-it was here
diff --git a/p.png b/p.png
Binary files a/p.png and b/p.png differ
";

    #[test]
    fn every_line_of_a_difference_has_the_numbers_that_an_editor_shows() {
        let files = FileLines::of_difference(DIFFERENCE);
        let told: Vec<String> = files
            .iter()
            .flat_map(|file| {
                let lines = file.lines.iter().filter_map(|line| {
                    let (side, number) = line.place()?;
                    Some(format!(
                        "{}:{side:?}{number} {:?} {}",
                        file.file, line.kind, line.text
                    ))
                });
                lines.collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(
            told,
            [
                "src/a b.rs:New3 Same same",
                "src/a b.rs:Old4 Removed -- old",
                "src/a b.rs:New4 Added ++ new",
                "src/a b.rs:New20 Same last",
                "src/a b.rs:New21 Added more",
                "gone:Old1 Removed it was here",
            ]
        );
        assert_eq!((files[2].file.as_str(), files[2].lines.len()), ("p.png", 0));
        assert_eq!(
            files[0].at(Side::Old, 4).map(|line| line.text.as_str()),
            Some("-- old")
        );
        assert_eq!(files[0].at(Side::Old, 3), None);
    }

    #[test]
    fn a_document_is_numbered_from_one() {
        let document = FileLines::of_document("spec.md", "# One\n\ntwo\n");
        assert_eq!(
            document.at(Side::New, 3).map(|line| line.text.as_str()),
            Some("two")
        );
        assert_eq!(document.lines.len(), 3);
    }
}
