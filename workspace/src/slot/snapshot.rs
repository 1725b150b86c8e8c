//! Stores the work in a slot as a commit under a preserve ref.

use chrono::{DateTime, Utc};
use ropewalk_schemas::CommitId;

use super::{Slot, SlotError};
use crate::checkout::{Change, Survey};
use crate::clone::Quarantine;
use crate::commit::NewCommit;
use crate::{ChangedFile, CommitMessage, GitError, PreserveRef};

/// The work of a slot as a commit on top of the commit that the slot was moved to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The commit; its objects are on disk for good.
    pub commit: CommitId,
    /// The id of its tree.
    pub tree: String,
    /// What it changes, as the difference of the two trees has it.
    pub changed: Vec<ChangedFile>,
    /// What is not in the commit, since it holds a secret of this program that the commit below does not hold.
    pub withheld: Vec<ChangedFile>,
    /// What else differs in the slot and is not in the commit.
    pub left_out: Vec<ChangedFile>,
    /// The ref that keeps it.
    pub preserved: PreserveRef,
}

/// What came of keeping the work in a slot.
#[derive(Debug, Default)]
pub(super) struct SaveOutcome {
    /// What was kept, unless a preserve ref held it already.
    pub(super) snapshot: Option<Snapshot>,
    /// How the tree looked, to be made clean without another look.
    pub(super) seen: Option<Survey>,
}

impl Slot {
    /// Commits the differences that `scope` accepts, without moving the slot.
    ///
    /// Nested repositories, names that are no text, files over 64 MiB and what holds a secret are always left out.
    pub async fn snapshot(
        &mut self,
        message: &CommitMessage,
        when: DateTime<Utc>,
        scope: &(dyn Fn(&ChangedFile) -> bool + Send + Sync),
    ) -> Result<Snapshot, SlotError> {
        let (differences, _) = self.look().await?;
        let (taken, left_out): (Vec<Change>, Vec<Change>) = differences
            .iter()
            .cloned()
            .partition(|change| change.storable() && scope(&change.public()));
        let base = self.base().cloned().ok_or(SlotError::Empty)?;
        let (withheld, taken) = self.checkout.part_secrets(&base, taken).await?;
        let clone = self.checkout.clone_handle();
        let quarantine = Quarantine::open(clone)?;
        let tree = self
            .checkout
            .stage(quarantine.clone_handle(), &taken)
            .await?;
        let new = NewCommit {
            tree: &tree,
            parents: std::slice::from_ref(&base),
            message,
            when,
        };
        let commit = quarantine.clone_handle().create_commit(new).await?;
        quarantine.release().await?;
        let (preserved, changed) = tokio::try_join!(
            clone.preserve(&self.key, &commit),
            clone.changed_files(base.as_str(), commit.as_str()),
        )?;
        if left_out.is_empty() && withheld.is_empty() {
            self.saved = differences;
        }
        let public = |changes: &[Change]| changes.iter().map(Change::public).collect();
        Ok(Snapshot {
            commit,
            tree,
            changed,
            withheld: public(&withheld),
            left_out: public(&left_out),
            preserved,
        })
    }

    /// Keeps what differs and is under no preserve ref yet; says where.
    pub(super) async fn save(&mut self, now: DateTime<Utc>) -> Result<SaveOutcome, SlotError> {
        let (changes, seen) = match self.look().await {
            Ok(found) => found,
            // Without a tree there is nothing to keep.
            Err(SlotError::Empty | SlotError::Gone(_)) => return Ok(SaveOutcome::default()),
            Err(SlotError::Git(
                error @ (GitError::Failed { .. } | GitError::Unreadable { .. }),
            )) => {
                let aside = self.checkout.set_aside()?;
                tracing::warn!("kept an unreadable tree as `{}`: {error}", aside.display());
                return Ok(SaveOutcome::default());
            }
            Err(error) => return Err(error),
        };
        if changes.is_empty() || changes == self.saved {
            return Ok(SaveOutcome {
                snapshot: None,
                seen,
            });
        }
        let message =
            CommitMessage::new(format!("unfinished work of attempt {}", self.key.attempt))
                .with_trailer("Ropewalk-Task", self.key.task.as_str());
        let snapshot = self.snapshot(&message, now, &|_| true).await?;
        for file in &snapshot.withheld {
            tracing::warn!("`{}` is not kept: it holds a secret", file.path);
        }
        for file in &snapshot.left_out {
            tracing::warn!(
                "`{}` cannot be kept: a nested repository, a bad name or too long",
                file.path
            );
        }
        self.saved = changes;
        Ok(SaveOutcome {
            snapshot: Some(snapshot),
            seen,
        })
    }
}
