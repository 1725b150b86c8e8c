//! Remembers what can never change: the tree and the parents of a commit, and the difference of two trees.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ropewalk_schemas::CommitId;

use super::shown::Ground;
use crate::ChangedFile;

/// So many facts of a kind are kept; then they are forgotten together.
const MOST: usize = 1_024;
/// A longer list of files is read again when it is asked for.
const MOST_FILES: usize = 256;
/// So far back a history is followed before git is asked.
const FAR: usize = 64;

/// What is known about objects; an id never names anything else.
#[derive(Debug, Default)]
pub(super) struct ObjectCache {
    facts: Mutex<Facts>,
}

#[derive(Debug, Default)]
struct Facts {
    commits: HashMap<CommitId, Commit>,
    differences: HashMap<(CommitId, CommitId), Vec<ChangedFile>>,
    grounds: HashMap<CommitId, Arc<Ground>>,
}

#[derive(Debug, Clone)]
struct Commit {
    tree: String,
    parents: Vec<CommitId>,
}

impl ObjectCache {
    /// Notes a commit that was just made.
    pub(super) fn commit(&self, id: &CommitId, tree: &str, parents: &[CommitId]) {
        let mut facts = self.facts();
        if facts.commits.len() >= MOST {
            facts.commits.clear();
        }
        let commit = Commit {
            tree: tree.to_owned(),
            parents: parents.to_vec(),
        };
        facts.commits.insert(id.clone(), commit);
    }

    /// Returns the tree of a commit.
    pub(super) fn tree(&self, id: &CommitId) -> Option<String> {
        let facts = self.facts();
        facts.commits.get(id).map(|commit| commit.tree.clone())
    }

    /// Says that `ancestor` is certainly in the history of `descendant`.
    pub(super) fn leads_to(&self, ancestor: &CommitId, descendant: &CommitId) -> bool {
        let facts = self.facts();
        let mut at = descendant;
        for _ in 0..FAR {
            if at == ancestor {
                return true;
            }
            let Some([parent]) = facts
                .commits
                .get(at)
                .map(|commit| commit.parents.as_slice())
            else {
                return false;
            };
            at = parent;
        }
        false
    }

    /// Notes how two commits differ.
    pub(super) fn difference(&self, pair: (CommitId, CommitId), files: &[ChangedFile]) {
        if files.len() > MOST_FILES {
            return;
        }
        let mut facts = self.facts();
        if facts.differences.len() >= MOST {
            facts.differences.clear();
        }
        facts.differences.insert(pair, files.to_vec());
    }

    /// Returns how two commits differ.
    pub(super) fn differing(&self, pair: &(CommitId, CommitId)) -> Option<Vec<ChangedFile>> {
        self.facts().differences.get(pair).cloned()
    }

    /// Returns what commands see below a base.
    pub(super) fn ground(&self, base: &CommitId) -> Option<Arc<Ground>> {
        self.facts().grounds.get(base).cloned()
    }

    /// Notes what commands see below a base.
    pub(super) fn lay(&self, base: &CommitId, ground: &Arc<Ground>) {
        let mut facts = self.facts();
        if facts.grounds.len() >= MOST {
            facts.grounds.clear();
        }
        facts.grounds.insert(base.clone(), Arc::clone(ground));
    }

    /// Forgets what commands see below bases, since tags may have moved.
    pub(super) fn forget_grounds(&self) {
        self.facts().grounds.clear();
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
