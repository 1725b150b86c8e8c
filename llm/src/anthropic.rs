//! Speaks Anthropic's Messages API, always as a stream.

mod body;
mod decode;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::error::ModelError;
use crate::model::Model;
use crate::reply::ReplyStream;
use crate::request::ModelRequest;
use crate::wire::Endpoint;

/// The version of the wire format.
pub(crate) const VERSION: &str = "2023-06-01";

/// Is a provider that speaks the Messages API; built by [`crate::provider::build`].
pub struct Anthropic {
    name: String,
    endpoint: Endpoint,
}

impl Anthropic {
    pub(crate) fn new(name: String, endpoint: Endpoint) -> Self {
        Self { name, endpoint }
    }
}

#[async_trait]
impl Model for Anthropic {
    fn name(&self) -> &str {
        &self.name
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        cancel: &CancellationToken,
    ) -> Result<ReplyStream, ModelError> {
        let decoder = decode::Messages::new(request.model.clone(), self.name.clone());
        let body = body::of(request, &self.name);
        let traced = (&body, request.traceparent.as_deref());
        self.endpoint.stream(traced, decoder, cancel).await
    }
}
