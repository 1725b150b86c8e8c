//! Tells a process what it committed, in commit order, and that others committed something.

use std::sync::Arc;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::events::Committed;

/// How many commits a slow reader may be behind.
pub(crate) const FEED_CAPACITY: usize = 4_096;

/// What a reader of the feed is told.
#[derive(Debug, Clone)]
pub(crate) enum Told {
    /// This process committed.
    Here(Arc<Committed>),
    /// Other processes committed, or may have.
    Elsewhere,
}

/// Says that commits were missed, because a reader was too slow or because another process made them: it must read
/// what it needs from the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} commits were missed; read the open deliveries again")]
pub struct Lagged(pub u64);

/// Every commit of this process that emitted at least one event, in commit order.
///
/// A server also says when another process committed events or ended deliveries, which a reader sees as [`Lagged`]. Of other processes
/// that write to the same file nothing is told.
#[derive(Debug)]
pub struct CommitFeed(pub(crate) Option<broadcast::Receiver<Told>>);

impl CommitFeed {
    /// Waits for the next commit; `None` when the store is closed.
    pub async fn next(&mut self) -> Option<Result<Arc<Committed>, Lagged>> {
        match self.0.as_mut()?.recv().await {
            Ok(Told::Here(committed)) => Some(Ok(committed)),
            Ok(Told::Elsewhere) => Some(Err(Lagged(1))),
            Err(RecvError::Lagged(missed)) => Some(Err(Lagged(missed))),
            Err(RecvError::Closed) => None,
        }
    }
}
