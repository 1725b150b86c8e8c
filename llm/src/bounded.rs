//! Keeps the length of replies within what the configuration allows.

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::error::ModelError;
use crate::model::Model;
use crate::reply::ReplyStream;
use crate::request::ModelRequest;

/// Wraps a model whose replies may have at most so many tokens, however many a request allows.
pub struct BoundedModel<M> {
    model: M,
    output_tokens: u32,
}

impl<M: Model> BoundedModel<M> {
    /// Wraps `model`.
    pub fn new(model: M, output_tokens: u32) -> Self {
        Self {
            model,
            output_tokens,
        }
    }
}

#[async_trait]
impl<M: Model> Model for BoundedModel<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        cancel: &CancellationToken,
    ) -> Result<ReplyStream, ModelError> {
        if request.max_output_tokens <= self.output_tokens {
            return self.model.stream(request, cancel).await;
        }
        let bounded = ModelRequest {
            max_output_tokens: self.output_tokens,
            ..request.clone()
        };
        self.model.stream(&bounded, cancel).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Remembers how long each reply was allowed to be.
    #[derive(Default)]
    struct LimitRecorder(Mutex<Vec<u32>>);

    #[async_trait]
    impl Model for &LimitRecorder {
        fn name(&self) -> &'static str {
            "allowed"
        }

        async fn stream(
            &self,
            request: &ModelRequest,
            _: &CancellationToken,
        ) -> Result<ReplyStream, ModelError> {
            self.0.lock().unwrap().push(request.max_output_tokens);
            Err(ModelError::Truncated)
        }
    }

    #[tokio::test]
    async fn a_request_is_bounded_and_never_stretched() {
        let allowed = LimitRecorder::default();
        let model = BoundedModel::new(&allowed, 700);
        for wanted in [32_000, 700, 20] {
            let request = ModelRequest {
                max_output_tokens: wanted,
                ..ModelRequest::new("m", "", Vec::new())
            };
            drop(model.ask(&request, &CancellationToken::new()).await);
        }
        assert_eq!(*allowed.0.lock().unwrap(), [700, 700, 20]);
    }
}
