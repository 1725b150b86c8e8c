//! Settles what two branches say differently about the same idea: each writes its notes anew, so that one side is right.

use super::Sides;
use crate::{GitError, LocalClone};

/// Whose notes are right where two branches changed the same ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Those of the branch that something is brought into.
    Into,
    /// Those of what is brought in.
    Head,
}

/// A folder whose files a build writes down about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notes {
    /// The folder, from the root of the repository.
    pub folder: String,
    /// Whose are right.
    pub of: Side,
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
        let scratch = tempfile::tempdir_in(self.state()).map_err(GitError::files(self.state()))?;
        let index = scratch.path().join("index");
        self.git()
            .run(self.call(["read-tree", &marked]).index(&index))
            .await?;
        let mut lines = Vec::new();
        for file in settled {
            let [_, into, head] = file.blobs;
            let right = match notes.of {
                Side::Into => into,
                Side::Head => head,
            };
            let (mode, blob) = right.map_or_else(
                || ("0".to_owned(), "0".repeat(marked.len())),
                |entry| (entry.mode, entry.blob),
            );
            lines.extend_from_slice(format!("{mode} {blob}\t{}\0", file.path).as_bytes());
        }
        let call = self.call(["update-index", "-z", "--replace", "--index-info"]);
        self.git().run(call.index(&index).stdin(lines)).await?;
        Ok((self.write_tree(&index).await?, left))
    }
}
