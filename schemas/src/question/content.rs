//! What a yes holds for, and for nothing else (design invariant 15).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{CommitId, ContentHash};

/// What a question shows and its yes is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Content {
    /// Changes of files that somebody protects, as a kept candidate makes them.
    Files {
        /// The candidate that goes on after a yes.
        candidate: CommitId,
        /// The changes that are asked about.
        changes: Vec<FileChange>,
    },
    /// One revision of a specification.
    Revision {
        /// The revision.
        revision: u32,
        /// The hash of its text and its tasks.
        hash: ContentHash,
    },
    /// What a model wanted to do and something left to a person.
    Call {
        /// What left it to one: a rule, the mode, the guard against circles.
        rule: String,
        /// The tool.
        tool: String,
        /// What it wanted to do: a path, or a command.
        subject: String,
    },
}

/// What a file holds before and after a change.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct FileChange {
    /// The file, as git names it.
    pub path: String,
    /// The hash of what it held; none where there was no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<ContentHash>,
    /// The hash of what it holds now; none where it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<ContentHash>,
}

impl Content {
    /// Returns whether a yes to this allows every one of `changes`.
    pub fn allows(&self, changes: &[FileChange]) -> bool {
        match self {
            Self::Files {
                changes: allowed, ..
            } => changes.iter().all(|change| allowed.contains(change)),
            Self::Revision { .. } | Self::Call { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(before: &str, after: &str) -> FileChange {
        FileChange {
            path: "tests/a.rs".to_owned(),
            before: Some(ContentHash::of(before.as_bytes())),
            after: Some(ContentHash::of(after.as_bytes())),
        }
    }

    #[test]
    fn a_yes_allows_what_it_was_shown_and_nothing_else() {
        let shown = Content::Files {
            candidate: CommitId::parse(&"a".repeat(40)).unwrap(),
            changes: vec![change("1", "2")],
        };
        assert!(shown.allows(&[change("1", "2")]));
        // The same file with other content, before or after, is something else.
        assert!(!shown.allows(&[change("1", "3")]));
        assert!(!shown.allows(&[change("0", "2")]));
        assert!(!shown.allows(&[change("1", "2"), change("2", "3")]));
        let revision = Content::Revision {
            revision: 1,
            hash: ContentHash::of(b""),
        };
        assert!(!revision.allows(&[change("1", "2")]));
    }
}
