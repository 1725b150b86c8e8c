//! Puts HTTP between a test and the model that it scripts: what is asked goes out through the shipped provider, in a
//! wire format, and a server of this process answers it as the model does.
//!
//! Nothing of a reply gets past the wire. Of a request only its number does, as part of the model's name: by it the
//! server knows what was to be told, and refuses a body that does not tell all of it.

mod body;
mod events;
mod server;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use ropewalk_llm::{
    BuildError, Model, ModelError, ModelRequest, ProviderConfig, ProviderKind, ReplyStream, build,
};
use ropewalk_runtime::Clock;
use tokio_util::sync::{CancellationToken, DropGuard};

use server::Server;

/// Stands between the name of a model and the number of a request.
const NUMBERED: char = '@';

/// How a provider is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireFormat {
    /// Anthropic's Messages.
    Messages,
    /// OpenAI-compatible chat completions.
    Completions,
    /// OpenAI's Responses.
    Responses,
    /// Gemini's `streamGenerateContent`.
    Gemini,
}

impl WireFormat {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Messages,
        Self::Completions,
        Self::Responses,
        Self::Gemini,
    ];

    /// Returns one of them, always the same one for the same text.
    pub fn of(text: &str) -> Self {
        let sum: usize = text.bytes().map(usize::from).sum();
        Self::ALL[sum % Self::ALL.len()]
    }

    const fn kind(self) -> ProviderKind {
        match self {
            Self::Messages => ProviderKind::Anthropic,
            Self::Completions => ProviderKind::Openai,
            Self::Responses => ProviderKind::Responses,
            Self::Gemini => ProviderKind::Gemini,
        }
    }
}

/// Says why there is no provider.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// Its server cannot be started.
    #[error("cannot serve a model: {0}")]
    Serve(#[from] std::io::Error),
    /// What asks it cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// What was asked so far; the number of a request is its place.
pub(crate) type RequestLog = Arc<Mutex<Vec<ModelRequest>>>;

/// Returns a model of the same name that asks `model` over HTTP; its server lives as long as it does.
pub fn over_http(
    model: Arc<dyn Model>,
    format: WireFormat,
) -> Result<Arc<dyn Model>, ProviderError> {
    let asked = RequestLog::default();
    let stop = CancellationToken::new();
    let clock = Clock::manual(chrono::DateTime::UNIX_EPOCH);
    let config = ProviderConfig {
        name: model.name().to_owned(),
        kind: format.kind(),
        key_variable: Some("SCRIPTED_KEY".to_owned()),
        base_url: String::new(),
        ..ProviderConfig::scripted()
    };
    let server = Server {
        model,
        format,
        asked: asked.clone(),
    };
    let config = ProviderConfig {
        base_url: server.start(stop.clone())?,
        ..config
    };
    Ok(Arc::new(Provider {
        model: build(&config, Some("any-key".into()), None, &clock)?,
        asked,
        clock,
        _serving: stop.drop_guard(),
    }))
}

/// What asks the server.
struct Provider {
    model: Arc<dyn Model>,
    asked: RequestLog,
    /// The time of the waits before a request is sent again: a test has none for them.
    clock: Clock,
    _serving: DropGuard,
}

#[async_trait]
impl Model for Provider {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        cancel: &CancellationToken,
    ) -> Result<ReplyStream, ModelError> {
        let number = {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            asked.push(request.clone());
            asked.len() - 1
        };
        let sent = ModelRequest {
            model: format!("{}{NUMBERED}{number}", request.model),
            ..request.clone()
        };
        let time = async {
            loop {
                tokio::time::sleep(Duration::from_millis(1)).await;
                self.clock.advance(Duration::from_millis(100));
            }
        };
        tokio::select! {
            begun = self.model.stream(&sent, cancel) => begun,
            never = time => never,
        }
    }
}
