//! Speaks Gemini's `streamGenerateContent`, always as a stream of events.

mod body;
mod decode;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::error::ModelError;
use crate::model::Model;
use crate::reply::ReplyStream;
use crate::request::ModelRequest;
use crate::wire::Endpoint;

/// The header that holds the key.
pub(crate) const KEY_HEADER: &str = "x-goog-api-key";

/// Is a provider that speaks Gemini's format; built by [`crate::provider::build`].
pub struct Gemini {
    name: String,
    endpoint: Endpoint,
}

impl Gemini {
    /// Wraps an endpoint whose address ends with the folder of the models.
    pub(crate) fn new(name: String, endpoint: Endpoint) -> Self {
        Self { name, endpoint }
    }
}

#[async_trait]
impl Model for Gemini {
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
        let mut url = self.endpoint.url.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.push(&format!("{}:streamGenerateContent", request.model));
        }
        url.set_query(Some("alt=sse"));
        let traced = (&body, request.traceparent.as_deref());
        self.endpoint
            .stream_from(url, traced, decoder, cancel)
            .await
    }
}
