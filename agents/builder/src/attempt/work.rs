//! An attempt under way: what its steps share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use ropewalk_orchestrator::Context;
use ropewalk_schemas::{AttemptId, BuildId, CommitId, RepoPath, TaskId};
use ropewalk_workspace::PreserveKey;
use tokio_util::sync::CancellationToken;

use super::rows::Rows;
use super::watching::AttemptObserver;
use crate::SharedState;
use crate::claim::Claim;
use crate::error::BuilderError;
use crate::machine::TopicQuestion;

/// The locks of an attempt with their tokens, shared with whoever renews or extends them.
pub(crate) type Locks = Arc<Mutex<BTreeMap<RepoPath, i64>>>;

/// The commit that an attempt works from: the head at its claim, or one that it went on to since.
pub(super) type Base = Arc<Mutex<CommitId>>;

/// Copies the base as it is now.
pub(super) fn based_on(base: &Base) -> CommitId {
    base.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// What the tool of an attempt and its end share: the question that has no answer yet.
pub(super) type PendingQuestion = Arc<OnceLock<TopicQuestion>>;

/// Copies the locks as they are now.
pub(crate) fn held_now(locks: &Locks) -> BTreeMap<RepoPath, i64> {
    guard(locks).clone()
}

pub(super) fn guard(locks: &Locks) -> MutexGuard<'_, BTreeMap<RepoPath, i64>> {
    locks.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An attempt under way.
pub(crate) struct Work<'a> {
    pub(crate) shared: &'a Arc<SharedState>,
    pub(crate) context: Context,
    pub(crate) claim: &'a Claim,
    pub(crate) locks: Locks,
    pub(crate) cancel: CancellationToken,
    pub(crate) watching: AttemptObserver,
    pub(super) base: Base,
    /// The question that its model has put and that has no answer yet.
    pub(super) waiting: PendingQuestion,
}

impl Work<'_> {
    /// Names the rows of the attempt.
    pub(crate) fn ids(&self) -> (BuildId, &TaskId, AttemptId) {
        let attempt = &self.claim.attempt;
        (attempt.build, &attempt.task, attempt.id)
    }

    /// Names the place where the work of the attempt is kept.
    pub(crate) fn key(&self) -> PreserveKey {
        let (build, task, _) = self.ids();
        PreserveKey {
            build,
            task: task.clone(),
            attempt: self.claim.attempt.number,
        }
    }

    /// Returns the commit that the attempt works from.
    pub(crate) fn base(&self) -> CommitId {
        based_on(&self.base)
    }

    /// Lets the attempt work from another commit.
    pub(super) fn stand_on(&self, commit: CommitId) {
        *self.base.lock().unwrap_or_else(PoisonError::into_inner) = commit;
    }

    /// Loads the rows, if the task is still this attempt's.
    pub(crate) async fn rows(&self) -> Result<Option<Rows>, BuilderError> {
        let (build, task, attempt) = self.ids();
        Rows::load(&self.context, build, task, attempt).await
    }
}
