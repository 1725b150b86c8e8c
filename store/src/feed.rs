//! Tells a process what it committed, in commit order.

use std::sync::Arc;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::events::Committed;

/// How many commits a slow reader may be behind.
pub(crate) const FEED_CAPACITY: usize = 4_096;

/// Says that a reader was too slow: it must read what it needs from the store again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} commits were missed; read the open deliveries again")]
pub struct Lagged(pub u64);

/// Every commit of this process that emitted at least one event, in commit order.
#[derive(Debug)]
pub struct CommitFeed(pub(crate) Option<broadcast::Receiver<Arc<Committed>>>);

impl CommitFeed {
    /// Waits for the next commit; `None` when the store is closed.
    pub async fn next(&mut self) -> Option<Result<Arc<Committed>, Lagged>> {
        match self.0.as_mut()?.recv().await {
            Ok(committed) => Some(Ok(committed)),
            Err(RecvError::Lagged(missed)) => Some(Err(Lagged(missed))),
            Err(RecvError::Closed) => None,
        }
    }
}
