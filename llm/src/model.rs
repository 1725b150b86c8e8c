//! Defines what a model is to the rest of the program.

use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::error::ModelError;
use crate::reply::{Reply, ReplyStream, complete};
use crate::request::ModelRequest;

/// Answers requests.
#[async_trait]
pub trait Model: Send + Sync {
    /// Returns the name of the provider, for logs and usage rows.
    fn name(&self) -> &str;

    /// Starts a reply; the stream ends early with [`ModelError::Cancelled`] when `cancel` fires.
    ///
    /// Dropping the stream ends the request.
    async fn stream(
        &self,
        request: &ModelRequest,
        cancel: &CancellationToken,
    ) -> Result<ReplyStream, ModelError>;

    /// Waits for a whole reply.
    async fn ask(
        &self,
        request: &ModelRequest,
        cancel: &CancellationToken,
    ) -> Result<Reply, ModelError> {
        complete(self.stream(request, cancel).await?, |_| ()).await
    }
}

#[async_trait]
impl<T: Model + ?Sized> Model for Arc<T> {
    fn name(&self) -> &str {
        (**self).name()
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        cancel: &CancellationToken,
    ) -> Result<ReplyStream, ModelError> {
        (**self).stream(request, cancel).await
    }
}
