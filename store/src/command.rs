//! Says what the one writer of a store can be asked to do.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use ropewalk_schemas::{ComponentName, CorrelationId};
use tokio::sync::oneshot;

use crate::error::CommitError;
use crate::events::{CommitOutcome, Subscription};
use crate::submission::Submission;

/// How a change set is answered.
pub(crate) type CommitReply = oneshot::Sender<Result<Arc<CommitOutcome>, CommitError>>;

/// How a command without a result is answered.
pub(crate) type Reply = oneshot::Sender<Result<(), CommitError>>;

/// What the writer is asked to do.
#[derive(Debug)]
pub(crate) enum Command {
    Commit(Submission, CommitReply),
    Subscribe(Subscription, Reply),
    Unsubscribe(ComponentName, Reply),
    Replay(
        ComponentName,
        i64,
        oneshot::Sender<Result<Option<u64>, CommitError>>,
    ),
    Forget(Step, oneshot::Sender<Result<StepOutcome, CommitError>>),
    Damaged(String),
    /// The server has closed a connection of this process.
    Disconnected,
    Close(oneshot::Sender<()>),
}

/// What one step of forgetting looks at.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// Only events after this sequence.
    pub(crate) after: i64,
    /// Only chains whose newest event is older.
    pub(crate) before: DateTime<Utc>,
    /// Chains that belong to something unfinished.
    pub(crate) unfinished: Vec<CorrelationId>,
}

/// What came of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StepOutcome {
    /// How many events are gone.
    pub(crate) events: u64,
    /// Where the next step begins; `None` when what follows is not old.
    pub(crate) next: Option<i64>,
}
