//! Names a file inside a repository, in one spelling.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use crate::Slug;

/// What a file is called in which people say how to work here, in any directory; of two beside each other the first counts.
pub const CONVENTIONS: [&str; 2] = ["CLAUDE.md", "AGENTS.md"];

/// Names a file relative to the root of a repository: `/` between parts, NFC, no `.` or `..`.
// Two paths that a case-folding file system would take for one have the same `RepoPath::key`.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct RepoPath(String);

/// Says why a text names no file of a repository.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RepoPathError {
    /// The text is empty or names only the root.
    #[error("a file path is empty; name a file relative to the repository")]
    Empty,
    /// The path begins with `/` or a drive letter.
    #[error("`{0}` is absolute; name the file relative to the repository")]
    Absolute(String),
    /// The path leaves the repository.
    #[error("`{0}` leaves the repository; take out the `..`")]
    Escapes(String),
    /// The path lies in `.git`.
    #[error("`{0}` lies in `.git`, which belongs to git alone")]
    GitDirectory(String),
    /// The path holds a control character or a backslash.
    #[error("`{0}` holds a character that a path may not hold")]
    Character(String),
    /// The path is longer than 1,024 bytes.
    #[error("a file path has {0} bytes; 1024 is the most")]
    TooLong(usize),
}

impl RepoPath {
    /// Checks and normalises `text`: lexical `.` and double `/` are dropped, letters composed (NFC).
    pub fn parse(text: &str) -> Result<Self, RepoPathError> {
        if text.len() > 1024 {
            return Err(RepoPathError::TooLong(text.len()));
        }
        if text
            .chars()
            .any(|letter| letter.is_control() || letter == '\\')
        {
            return Err(RepoPathError::Character(text.escape_debug().to_string()));
        }
        let drive = text.as_bytes().get(1) == Some(&b':');
        if text.starts_with('/') || drive {
            return Err(RepoPathError::Absolute(text.to_owned()));
        }
        let composed = composed(text);
        let mut parts: Vec<&str> = Vec::new();
        for part in composed.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts
                        .pop()
                        .ok_or_else(|| RepoPathError::Escapes(text.to_owned()))?;
                }
                _ => parts.push(part),
            }
        }
        if parts.iter().any(|part| part.eq_ignore_ascii_case(".git")) {
            return Err(RepoPathError::GitDirectory(text.to_owned()));
        }
        if parts.is_empty() {
            return Err(RepoPathError::Empty);
        }
        Ok(Self(parts.join("/")))
    }

    /// Returns the path as git spells it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Lists the directories that it lies in, the nearest first; the last one is the root, which is empty.
    pub fn directories(&self) -> impl Iterator<Item = &str> {
        let mut rest = Some(self.as_str());
        std::iter::from_fn(move || {
            let (directory, _) = rest?.rsplit_once('/').unwrap_or_default();
            rest = (!directory.is_empty()).then_some(directory);
            Some(directory)
        })
    }

    /// Returns the key that locks and ownership use: composed and case-folded.
    pub fn key(&self) -> String {
        composed(&self.0.to_lowercase()).into_owned()
    }

    /// Returns the folder in which an idea travels with its code.
    pub fn of_idea(idea: &Slug) -> Self {
        Self(format!("ideas/{idea}"))
    }

    /// Returns whether this is `folder`, or lies below it, on any disk that it may be checked out on.
    pub fn is_within(&self, folder: &Self) -> bool {
        let key = self.key();
        let below = key.strip_prefix(&folder.key());
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Returns the path of `name` in a directory, as [`RepoPath::directories`] lists them.
pub fn below(directory: &str, name: &str) -> String {
    match directory {
        "" => name.to_owned(),
        directory => format!("{directory}/{name}"),
    }
}

/// Returns the path that `relative` means in a directory; none for what lies outside of the repository.
pub fn joined(directory: &str, relative: &str) -> Option<String> {
    if relative.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = directory
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Composes the letters of `text`; thousands of paths are read for a page, and most hold nothing to compose.
fn composed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.nfc().collect())
    }
}

impl TryFrom<String> for RepoPath {
    type Error = RepoPathError;

    fn try_from(text: String) -> Result<Self, RepoPathError> {
        Self::parse(&text)
    }
}

impl From<RepoPath> for String {
    fn from(path: RepoPath) -> Self {
        path.0
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_file_become_one_path() {
        for text in ["src/lib.rs", "./src//lib.rs", "src/a/../lib.rs"] {
            assert_eq!(
                RepoPath::parse(text).unwrap().as_str(),
                "src/lib.rs",
                "{text}"
            );
        }
        let composed = RepoPath::parse("caf\u{e9}").unwrap();
        let decomposed = RepoPath::parse("cafe\u{301}").unwrap();
        assert_eq!(composed, decomposed);
        assert_eq!(
            RepoPath::parse("README.md").unwrap().key(),
            RepoPath::parse("readme.MD").unwrap().key()
        );
    }

    #[test]
    fn a_path_that_names_no_file_of_the_repository_is_refused() {
        for text in [
            "",
            ".",
            "/etc/passwd",
            "../x",
            "a/../../x",
            ".git/config",
            "a/.GIT/x",
            "a\0b",
            "C:/x",
            "a\\b",
        ] {
            assert!(RepoPath::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_relative_path_is_joined_and_never_leads_out() {
        for (directory, relative, expected) in [
            ("", "a/./b", Some("a/b")),
            ("docs", "../a.md", Some("a.md")),
            ("docs/deep", "names.md", Some("docs/deep/names.md")),
            ("docs", "../../a.md", None),
            ("docs", "/etc/passwd", None),
        ] {
            assert_eq!(
                joined(directory, relative).as_deref(),
                expected,
                "{relative}"
            );
        }
    }
}
