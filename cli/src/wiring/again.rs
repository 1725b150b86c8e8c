//! Does a build again that ran, from its journal: the builder as always, and models that answer nothing.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use ropewalk_engine::{ModelEntry, Models};
use ropewalk_llm::{Model, ModelError, ModelRequest, PriceTable, ReplyStream};
use ropewalk_schemas::TaskId;
use ropewalk_store::Store;
use tokio_util::sync::CancellationToken;

use super::models;
use crate::error::CliError;
use crate::project::Project;

/// What a build is done again by.
#[derive(Clone)]
pub struct Again {
    /// The store with the journal of what was answered.
    pub past: Store,
    /// The order in which its tasks landed.
    pub order: Vec<TaskId>,
    asked: Arc<OnceLock<String>>,
}

impl Again {
    /// Takes what was answered from the journal in `past`.
    pub fn new(past: Store, order: Vec<TaskId>) -> Self {
        Self {
            past,
            order,
            asked: Arc::default(),
        }
    }

    /// Names the first request that nobody answered; none while all that was asked is known.
    pub fn unanswered(&self) -> Option<&str> {
        self.asked.get().map(String::as_str)
    }

    /// Returns a model of each role that knows no answer.
    pub(super) fn models(&self, project: &Project) -> Result<Models, CliError> {
        models::of_roles(project, |choice| {
            let known = models::described(&choice.provider, project)?;
            Ok(ModelEntry {
                model: Arc::new(SilentModel {
                    provider: choice.provider.clone(),
                    first: self.asked.clone(),
                }),
                name: choice.model.clone(),
                prices: PriceTable::default(),
                // What a request holds depends on both: its pictures, and how long the reply may be.
                window_tokens: known.window_tokens,
                sees_images: known.sees_images(&choice.model),
            })
        })
    }
}

/// Answers nothing: who asks it has left what is known.
struct SilentModel {
    provider: String,
    first: Arc<OnceLock<String>>,
}

#[async_trait]
impl Model for SilentModel {
    fn name(&self) -> &str {
        &self.provider
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        _: &CancellationToken,
    ) -> Result<ReplyStream, ModelError> {
        let key = request.script.clone().unwrap_or_default();
        let told = format!(
            "turn {} of {} at `{}`, attempt {}",
            key.turn, key.agent, key.task, key.attempt
        );
        self.first.get_or_init(|| told);
        Err(ModelError::Script { key })
    }
}
