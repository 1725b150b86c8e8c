//! Settles what two branches say differently about the same idea: each writes its notes anew, so that one side is right.

use super::Sides;
use crate::{GitError, LocalClone};

/// One of the two that a merge joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The branch that something is brought into.
    Into,
    /// What is brought in.
    Head,
}

/// A folder that each build writes anew: where both sides changed a file there, one is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notes {
    /// The folder, from the root of the repository.
    pub folder: String,
    /// Whose files are right.
    pub right: Side,
}

impl Notes {
    fn hold(&self, path: &str) -> bool {
        let below = path.strip_prefix(&self.folder);
        below.is_some_and(|rest| rest.starts_with('/'))
    }
}

impl LocalClone {
    /// Takes the right side of every conflict among `notes` into the tree `marked`; returns what is left of the conflicts.
    pub(super) async fn settle(
        &self,
        marked: String,
        sides: Vec<Sides>,
        notes: &Notes,
    ) -> Result<(String, Vec<Sides>), GitError> {
        let (settled, left): (Vec<_>, Vec<_>) =
            sides.into_iter().partition(|side| notes.hold(&side.path));
        if settled.is_empty() {
            return Ok((marked, left));
        }
        let mut entries = Vec::new();
        for file in settled {
            let [_, into, head] = file.blobs;
            let right = match notes.right {
                Side::Into => into,
                Side::Head => head,
            };
            let (mode, blob) = right.map_or_else(
                || ("0".to_owned(), "0".repeat(marked.len())),
                |entry| (entry.mode, entry.blob),
            );
            entries.extend_from_slice(format!("{mode} {blob}\t{}\0", file.path).as_bytes());
        }
        Ok((self.tree_with(&marked, entries).await?, left))
    }
}
