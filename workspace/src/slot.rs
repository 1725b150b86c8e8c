//! Lends out checkouts: slots that attempts work in, and clean checkouts that gates run in and models look into.

mod clean;
mod pool;
mod replace;
mod snapshot;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use ropewalk_schemas::CommitId;
use ropewalk_schemas::advice::Advice;

pub use clean::{CleanCheckout, CleanPool};
pub use pool::{RecoveredWork, SlotPool};
pub use snapshot::Snapshot;

use crate::checkout::{Change, Checkout, Survey};
use crate::{ChangedFile, GitError, History, PreserveKey, PreserveRef, SlotFiles};

/// Says why a slot cannot be had or used.
#[derive(Debug, thiserror::Error)]
pub enum SlotError {
    /// All checkouts of the pool are in use.
    #[error("all {0} checkouts are in use")]
    AllTaken(usize),
    /// The slot was not moved to a commit yet.
    #[error("the slot holds no commit yet")]
    Empty,
    /// The tree of the slot was removed or swapped for something else.
    #[error("the tree `{0}` is gone")]
    Gone(String),
    /// Git did not do its part.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Advice for SlotError {
    fn next(&self) -> Option<String> {
        let next = match self {
            Self::AllTaken(_) => "wait for one or allow more",
            Self::Empty => "move it to one first",
            Self::Gone(_) => "restore the slot or move it to a commit",
            Self::Git(error) => return error.next(),
        };
        Some(next.to_owned())
    }
}

/// A checkout that one attempt works in.
#[derive(Debug)]
pub struct Slot {
    checkout: Checkout,
    key: PreserveKey,
    /// Says that what differs in the tree is the work of this attempt.
    entered: bool,
    /// The differences that a preserve ref already holds.
    saved: Vec<Change>,
}

impl Slot {
    fn new(checkout: Checkout, key: PreserveKey, entered: bool) -> Self {
        Self {
            checkout,
            key,
            entered,
            saved: Vec::new(),
        }
    }

    /// Shows commands in the slot `history` from now on, and gives them a directory for scratch files.
    pub async fn show(&mut self, history: History) -> Result<(), SlotError> {
        Ok(self.checkout.show(history).await?)
    }

    /// Returns the directory for what commands write down on the way, which is no part of the work; it is there once a
    /// history is shown.
    pub fn scratch(&self) -> PathBuf {
        self.checkout.scratch()
    }

    /// Makes the tree exactly `commit`; unsaved differences are kept under a preserve ref first.
    pub async fn move_to(
        &mut self,
        commit: &CommitId,
        now: DateTime<Utc>,
    ) -> Result<(), SlotError> {
        self.enter(commit, now).await?;
        Ok(())
    }

    async fn enter(
        &mut self,
        commit: &CommitId,
        now: DateTime<Utc>,
    ) -> Result<Option<PreserveRef>, SlotError> {
        let saved = self.save(now).await?;
        self.checkout.move_seen(commit, saved.seen).await?;
        self.entered = true;
        self.saved.clear();
        Ok(saved.snapshot.map(|snapshot| snapshot.preserved))
    }

    /// Makes the tree again what it was after the last move: same bytes, nothing more.
    ///
    /// What no preserve ref held yet is kept first; says where.
    pub async fn restore(&mut self, now: DateTime<Utc>) -> Result<Option<PreserveRef>, SlotError> {
        let base = self.base().cloned().ok_or(SlotError::Empty)?;
        self.enter(&base, now).await
    }

    /// Goes on to `commit` with the work at hand: of what differs between it and the commit of the slot, everything is as
    /// `commit` has it then; all else stays as it is.
    ///
    /// What no preserve ref held yet is kept first.
    pub async fn follow(&mut self, commit: &CommitId, now: DateTime<Utc>) -> Result<(), SlotError> {
        self.base().ok_or(SlotError::Empty)?;
        self.save(now).await?;
        self.checkout.follow(commit).await?;
        self.saved.clear();
        Ok(())
    }

    /// Lays the files of `commit` over those of the commit of the slot, as work at hand, but for the files `left`; modes and links
    /// with them.
    ///
    /// What no preserve ref held yet is kept first.
    pub async fn lay_over(
        &mut self,
        commit: &CommitId,
        left: &[ChangedFile],
        now: DateTime<Utc>,
    ) -> Result<(), SlotError> {
        self.base().ok_or(SlotError::Empty)?;
        self.save(now).await?;
        self.checkout.lay_over(commit, left).await?;
        self.saved.clear();
        Ok(())
    }

    /// Lists what is not ignored and differs from the commit of the slot, in path order.
    pub async fn changed_files(&self) -> Result<Vec<ChangedFile>, SlotError> {
        let (changes, _) = self.look().await?;
        Ok(changes.iter().map(Change::public).collect())
    }

    /// Returns those of the files that are there and that git ignores, so that no snapshot takes them.
    pub async fn ignored(&self, files: &[&str]) -> Result<Vec<String>, SlotError> {
        Ok(self.checkout.ignored(files).await?)
    }

    /// Makes the tree again what it was after the last move and gives the slot back, for the next attempt to use.
    ///
    /// What no preserve ref held yet is kept first; says where.
    pub async fn release(mut self, now: DateTime<Utc>) -> Result<Option<PreserveRef>, SlotError> {
        self.checkout.give_way();
        self.checkout.forget_history();
        let kept = match self.base() {
            Some(_) => self.restore(now).await?,
            None => None,
        };
        pool::unmark(&self.checkout)?;
        Ok(kept)
    }

    /// Returns the commit that this attempt moved the slot to.
    pub fn base(&self) -> Option<&CommitId> {
        self.checkout.base().filter(|_| self.entered)
    }

    /// Returns the directory that the attempt works in.
    pub fn root(&self) -> &Path {
        self.checkout.tree()
    }

    /// Opens the directory for reading and writing by repository path.
    pub fn files(&self) -> Result<SlotFiles, crate::PathError> {
        SlotFiles::open(self.root())
    }

    /// Returns the variables that a command in the slot needs, so that its git finds no repository further up.
    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        ceiling(&self.checkout)
    }

    /// Finds what differs, and how the tree looked then.
    async fn look(&self) -> Result<(Vec<Change>, Option<Survey>), SlotError> {
        if self.base().is_none() {
            return Err(SlotError::Empty);
        }
        if !self.checkout.is_present() {
            return Err(SlotError::Gone(self.root().display().to_string()));
        }
        Ok(self.checkout.look(&self.saved).await?)
    }
}

fn ceiling(checkout: &Checkout) -> Vec<(OsString, OsString)> {
    vec![("GIT_CEILING_DIRECTORIES".into(), checkout.home().into())]
}
