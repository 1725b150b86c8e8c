//! Speaks OpenAI's Responses format, always as a stream; nothing of a conversation is left with the provider.

mod body;
mod decode;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::error::ModelError;
use crate::model::Model;
use crate::reply::ReplyStream;
use crate::request::ModelRequest;
use crate::wire::Endpoint;

/// Is a provider that speaks Responses; built by [`crate::provider::build`].
pub struct Responses {
    name: String,
    endpoint: Endpoint,
}

impl Responses {
    pub(crate) fn new(name: String, endpoint: Endpoint) -> Self {
        Self { name, endpoint }
    }
}

#[async_trait]
impl Model for Responses {
    fn name(&self) -> &str {
        &self.name
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        cancel: &CancellationToken,
    ) -> Result<ReplyStream, ModelError> {
        let decoder = decode::Response::new(request.model.clone(), self.name.clone());
        let body = body::of(request, &self.name);
        let traced = (&body, request.traceparent.as_deref());
        self.endpoint.stream(traced, decoder, cancel).await
    }
}
