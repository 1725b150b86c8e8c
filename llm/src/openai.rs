//! Speaks OpenAI-compatible chat completions, always as a stream.

mod body;
mod decode;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::error::ModelError;
use crate::model::Model;
use crate::reply::ReplyStream;
use crate::request::ModelRequest;
use crate::wire::Endpoint;

/// Is a provider that speaks chat completions; built by [`crate::provider::build`].
pub struct OpenAi {
    name: String,
    endpoint: Endpoint,
    max_tokens_field: String,
}

impl OpenAi {
    pub(crate) fn new(name: String, endpoint: Endpoint, max_tokens_field: String) -> Self {
        Self {
            name,
            endpoint,
            max_tokens_field,
        }
    }
}

#[async_trait]
impl Model for OpenAi {
    fn name(&self) -> &str {
        &self.name
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        cancel: &CancellationToken,
    ) -> Result<ReplyStream, ModelError> {
        let decoder = decode::Completion::new(request.model.clone());
        let body = body::of(request, &self.max_tokens_field);
        let traced = (&body, request.traceparent.as_deref());
        self.endpoint.stream(traced, decoder, cancel).await
    }
}
