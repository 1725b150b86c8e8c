//! Lets people speak into a job while it runs.

use async_trait::async_trait;

/// Hears what people say about the work of a job.
#[async_trait]
pub trait Steering: Send + Sync {
    /// Returns what was said since the last call, the oldest first; it stands in the next request and in no other.
    async fn heard(&self) -> Vec<String>;
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSteering;

#[async_trait]
impl Steering for NoSteering {
    async fn heard(&self) -> Vec<String> {
        Vec::new()
    }
}
