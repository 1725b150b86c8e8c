//! Lends out clean checkouts, for gates to run in and for models to look into, apart from the slots that agents write in.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ropewalk_schemas::CommitId;

use super::{SlotError, ceiling, replace};
use crate::checkout::{Change, Checkout};
use crate::{ChangedFile, GitError, History, LocalClone};

/// The most checkouts that are read in at one time. They come into being as they are needed, the first free one first.
const MOST_READERS: usize = 64;

/// The clean checkouts of a state directory, in `gates/<number>` and `reading/<number>`.
#[derive(Debug, Clone)]
pub struct CleanPool {
    clone: LocalClone,
    directory: PathBuf,
    capacity: usize,
}

impl CleanPool {
    /// Makes a pool of at most `capacity` checkouts that gates run in.
    pub fn for_gates(clone: LocalClone, capacity: usize) -> Self {
        let directory = clone.state().join("gates");
        Self {
            clone,
            directory,
            capacity,
        }
    }

    /// Makes a pool of checkouts in which the checks of a plan are tried before anybody approves it.
    pub fn for_plans(clone: LocalClone) -> Self {
        let directory = clone.state().join("plans");
        Self {
            clone,
            directory,
            capacity: MOST_READERS,
        }
    }

    /// Makes a pool of checkouts that are only read, and so never those of a gate: what was read there may be long.
    pub fn for_readers(clone: LocalClone) -> Self {
        let directory = clone.state().join("reading");
        Self {
            clone,
            directory,
            capacity: MOST_READERS,
        }
    }

    /// Takes a free checkout and makes it exactly `commit`; one that cannot be, although a fresh one can, is retired and
    /// replaced.
    pub async fn acquire(&self, commit: &CommitId) -> Result<CleanCheckout, SlotError> {
        for number in 1..=self.capacity {
            let home = self.directory.join(number.to_string());
            let clean = replace::enter(&self.clone, &home, || self.enter(&home, commit));
            if let Some(clean) = clean.await? {
                return Ok(clean);
            }
        }
        Err(SlotError::AllTaken(self.capacity))
    }

    async fn enter(
        &self,
        home: &Path,
        commit: &CommitId,
    ) -> Result<Option<CleanCheckout>, SlotError> {
        let Some(checkout) = Checkout::take(&self.clone, home).await? else {
            return Ok(None);
        };
        let mut clean = CleanCheckout {
            target: home.join("target"),
            checkout,
        };
        clean.move_to(commit).await?;
        Ok(Some(clean))
    }
}

/// A checkout of one commit and nothing else; free again when it is dropped.
#[derive(Debug)]
pub struct CleanCheckout {
    checkout: Checkout,
    target: PathBuf,
}

impl CleanCheckout {
    /// Makes the checkout exactly `commit`; whatever a check left behind is gone.
    pub async fn move_to(&mut self, commit: &CommitId) -> Result<(), SlotError> {
        self.checkout.move_to(commit).await?;
        std::fs::create_dir_all(&self.target).map_err(GitError::files(&self.target))?;
        Ok(())
    }

    /// Shows commands in the checkout `history` from now on.
    pub async fn show(&mut self, history: History) -> Result<(), SlotError> {
        Ok(self.checkout.show(history).await?)
    }

    /// Returns the commit that is checked out.
    pub fn commit(&self) -> Option<&CommitId> {
        self.checkout.base()
    }

    /// Lists what is not ignored and differs from the commit, in path order.
    pub async fn changed_files(&self) -> Result<Vec<ChangedFile>, SlotError> {
        let (changes, _) = self.checkout.look(&[]).await?;
        Ok(changes.iter().map(Change::public).collect())
    }

    /// Returns the directory of the checkout.
    pub fn root(&self) -> &Path {
        self.checkout.tree()
    }

    /// Returns the directory that holds the checkout and what belongs to it.
    pub fn home(&self) -> &Path {
        self.checkout.home()
    }

    /// Returns the directory for build products, which stays from check to check and which no agent writes.
    pub fn target_directory(&self) -> &Path {
        &self.target
    }

    /// Returns the variables that a command in the checkout needs, so that its git finds no repository further up.
    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        ceiling(&self.checkout)
    }
}
