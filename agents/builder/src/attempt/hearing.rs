//! Brings what people say about a task into the conversation that runs, each word once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use ropewalk_engine::Steering;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{BuildId, TaskId};
use ropewalk_store::{ChangeSet, CommitError, Versioned};
use tracing::warn;

use super::work::Work;
use crate::context;
use crate::machine::task::{Input, apply};

/// What was heard about a task so far. Cheap to clone.
#[derive(Clone)]
pub(super) struct TaskSteering {
    context: Context,
    build: BuildId,
    task: TaskId,
    /// How many words the conversation knows.
    known: Arc<AtomicUsize>,
}

impl TaskSteering {
    /// Begins with what the first message of the conversation tells.
    pub(super) fn new(work: &Work<'_>) -> Self {
        let (build, task, _) = work.ids();
        let known = work.claim.task.guidance.len();
        Self {
            context: work.context.clone(),
            build,
            task: task.clone(),
            known: Arc::new(AtomicUsize::new(known)),
        }
    }

    /// Returns those of `guidance` that the conversation does not know, and takes them for known.
    pub(super) fn new_of(&self, guidance: &[String]) -> Vec<String> {
        let known = self.known.fetch_max(guidance.len(), Ordering::Relaxed);
        guidance.get(known..).unwrap_or_default().to_vec()
    }
}

impl TaskSteering {
    /// Writes down that all of it is told now. What somebody else changed meanwhile is written down at the next turn.
    async fn note(&self, row: &Versioned<Task>) {
        if row.unheard() == 0 {
            return;
        }
        let Ok((task, _)) = apply(row, Input::Hear, self.context.now()) else {
            return;
        };
        let mut changes = ChangeSet::new();
        changes.update(row, &task);
        match self.context.store.commit(changes).await {
            Ok(_) | Err(CommitError::Conflict { .. }) => {}
            Err(error) => warn!(task.id = %self.task, "what was told is not written down: {error}"),
        }
    }
}

#[async_trait]
impl Steering for TaskSteering {
    async fn heard(&self) -> Vec<String> {
        match context::task(&self.context.store, self.build, &self.task).await {
            Ok(Some(row)) => {
                self.note(&row).await;
                self.new_of(&row.guidance)
            }
            Ok(None) => Vec::new(),
            // What cannot be read now is heard at the next turn.
            Err(error) => {
                warn!(task.id = %self.task, "what people say cannot be read: {}", Words::of(&error));
                Vec::new()
            }
        }
    }
}
