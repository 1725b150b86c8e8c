//! Hands out slots, replaces those that cannot be used any more, and finds the work that a crash left in them.

use std::fs;
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use ropewalk_schemas::CommitId;

use super::{Slot, SlotError, replace};
use crate::checkout::{Checkout, remove_if_there};
use crate::{GitError, LocalClone, PreserveKey, PreserveRef};
use ropewalk_schemas::advice::Words;

/// The slots of a state directory, in `slots/<number>`.
#[derive(Debug, Clone)]
pub struct SlotPool {
    clone: LocalClone,
    directory: PathBuf,
    capacity: usize,
}

/// Work that was found in a slot that nobody gave back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveredWork {
    /// The attempt that did it.
    pub key: PreserveKey,
    /// Where it is now.
    pub preserved: PreserveRef,
}

impl SlotPool {
    /// Makes a pool of at most `capacity` slots; a slot comes into being when it is first needed.
    pub fn new(clone: LocalClone, capacity: usize) -> Self {
        let directory = clone.state().join("slots");
        Self {
            clone,
            directory,
            capacity,
        }
    }

    /// Takes a free slot for an attempt and moves it to `commit`; work that a crash left in it is preserved first.
    ///
    /// One that cannot be moved there, although a fresh one can, is retired and replaced.
    pub async fn acquire(
        &self,
        key: &PreserveKey,
        commit: &CommitId,
        now: DateTime<Utc>,
    ) -> Result<Slot, SlotError> {
        for number in 1..=self.capacity {
            let home = self.directory.join(number.to_string());
            let slot = replace::enter(&self.clone, &home, || self.enter(number, key, commit, now));
            if let Some(slot) = slot.await? {
                return Ok(slot);
            }
        }
        Err(SlotError::AllTaken(self.capacity))
    }

    async fn enter(
        &self,
        number: usize,
        key: &PreserveKey,
        commit: &CommitId,
        now: DateTime<Utc>,
    ) -> Result<Option<Slot>, SlotError> {
        let Some((checkout, _)) = self.take(number, now).await? else {
            return Ok(None);
        };
        let path = mark_path(&checkout);
        fs::write(&path, key.to_string()).map_err(GitError::files(path))?;
        let mut slot = Slot::new(checkout, key.clone(), false);
        slot.move_to(commit, now).await?;
        Ok(Some(slot))
    }

    /// Preserves the work that a crash left in the slots that nobody holds now.
    pub async fn recover(&self, now: DateTime<Utc>) -> Result<Vec<RecoveredWork>, SlotError> {
        let mut found = Vec::new();
        for number in 1..=self.capacity {
            if !self.directory.join(number.to_string()).is_dir() {
                continue;
            }
            match self.take(number, now).await {
                Ok(Some((checkout, work))) => {
                    unmark(&checkout)?;
                    found.extend(work);
                }
                Ok(None) => {}
                // Whoever takes it next replaces it, and the others have work too.
                Err(error) => {
                    tracing::warn!("slot {number} cannot be looked at: {}", Words::of(&error));
                }
            }
        }
        Ok(found)
    }

    async fn take(
        &self,
        number: usize,
        now: DateTime<Utc>,
    ) -> Result<Option<(Checkout, Option<RecoveredWork>)>, SlotError> {
        let home = self.directory.join(number.to_string());
        let Some(checkout) = Checkout::take(&self.clone, &home).await? else {
            return Ok(None);
        };
        let left_by = fs::read_to_string(mark_path(&checkout)).ok();
        let Some(key) = left_by.as_deref().and_then(PreserveKey::parse) else {
            return Ok(Some((checkout, None)));
        };
        let mut slot = Slot::new(checkout, key, true);
        let work = slot.save(now).await?.snapshot.map(|snapshot| {
            tracing::info!("preserved the unfinished work of attempt `{}`", slot.key);
            RecoveredWork {
                key: slot.key.clone(),
                preserved: snapshot.preserved,
            }
        });
        Ok(Some((slot.checkout, work)))
    }
}

/// Forgets that an attempt works in the checkout.
pub(super) fn unmark(checkout: &Checkout) -> Result<(), GitError> {
    remove_if_there(&mark_path(checkout))
}

fn mark_path(checkout: &Checkout) -> PathBuf {
    checkout.home().join("attempt")
}
