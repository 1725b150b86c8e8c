//! Says what takes that which Telegram brings; `api/hook.rs` listens for it.

use async_trait::async_trait;

/// Takes what is brought.
#[async_trait]
pub trait Hook: Send + Sync + 'static {
    /// Returns whether `secret` is the one; how long that takes tells nothing of it.
    fn admits(&self, secret: &[u8]) -> bool;

    /// Takes a body; returns once what it came to is committed, or that it is kept.
    async fn take(&self, body: &[u8]) -> Result<(), HookError>;
}

/// Says why a body was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    /// It is nothing that could be taken.
    #[error("{0}")]
    Unreadable(String),
    /// It is not done yet, and may be brought again.
    #[error("{0}")]
    Late(String),
}
