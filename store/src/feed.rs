//! Tells a process what it committed, in commit order, and that others committed something.

use std::sync::Arc;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::events::CommitOutcome;

/// How many commits a slow reader may be behind.
pub(crate) const FEED_CAPACITY: usize = 4_096;

/// What a reader of the feed is told.
#[derive(Debug, Clone)]
pub(crate) enum FeedMessage {
    /// This process committed.
    Here(Arc<CommitOutcome>),
    /// Other processes committed, or may have.
    Elsewhere,
}

/// Says that commits were missed, because a reader was too slow or because another process made them: it must read
/// what it needs from the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} commits were missed; read the open deliveries again")]
pub struct LagError(pub u64);

/// Every commit of this process that emitted at least one event, in commit order.
///
/// A server also says when another process committed events or ended deliveries, which a reader sees as [`LagError`]. Of other processes
/// that write to the same file nothing is told.
#[derive(Debug)]
pub struct CommitFeed(pub(crate) Option<broadcast::Receiver<FeedMessage>>);

impl CommitFeed {
    /// Waits for the next commit; `None` when the store is closed.
    pub async fn next(&mut self) -> Option<Result<Arc<CommitOutcome>, LagError>> {
        match self.0.as_mut()?.recv().await {
            Ok(FeedMessage::Here(committed)) => Some(Ok(committed)),
            Ok(FeedMessage::Elsewhere) => Some(Err(LagError(1))),
            Err(RecvError::Lagged(missed)) => Some(Err(LagError(missed))),
            Err(RecvError::Closed) => None,
        }
    }
}
