//! Brings what people say about a task into the conversation that runs, each word once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use ropewalk_engine::Steering;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::{BuildId, TaskId};
use ropewalk_store::{ChangeSet, retry_on_conflict};
use tracing::warn;

use super::work::Work;
use crate::context;
use crate::error::BuilderError;
use crate::machine::task::{Input, apply_alone};

/// What was heard about a task so far. Cheap to clone.
#[derive(Clone)]
pub(super) struct TaskSteering {
    context: Context,
    build: BuildId,
    task: TaskId,
    /// How many words the conversation holds.
    said: Arc<AtomicUsize>,
    /// How many of them a reply has taken in: those that stood in a request which was answered.
    taken: Arc<AtomicUsize>,
}

impl TaskSteering {
    /// Begins with what the first message of the conversation tells.
    pub(super) fn new(work: &Work<'_>) -> Self {
        let (build, task, _) = work.ids();
        let told = work.claim.task.told().len();
        Self {
            context: work.context.clone(),
            build,
            task: task.clone(),
            said: Arc::new(AtomicUsize::new(told)),
            taken: Arc::new(AtomicUsize::new(told)),
        }
    }

    /// Returns those of `guidance` that the conversation does not hold, and takes them for said.
    pub(super) fn new_of(&self, guidance: &[String]) -> Vec<String> {
        let said = self.said.fetch_max(guidance.len(), Ordering::Relaxed);
        guidance.get(said..).unwrap_or_default().to_vec()
    }

    /// Returns what was said while the model wrote the reply that came last, and takes it for said. What came before
    /// is written down as heard: the reply has taken it in.
    pub(super) async fn said_meanwhile(&self) -> Result<Vec<String>, BuilderError> {
        self.note().await?;
        let row = context::task(&self.context.store, self.build, &self.task).await?;
        Ok(row.map_or_else(Vec::new, |row| self.new_of(&row.guidance)))
    }

    /// Writes down how many words were taken in. It comes after the reply, so that a crash in between tells them again.
    async fn note(&self) -> Result<(), BuilderError> {
        let words = u32::try_from(self.taken.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
        retry_on_conflict!(BuilderError, &self.task, {
            let Some(row) = context::task(&self.context.store, self.build, &self.task).await?
            else {
                return Ok(Some(()));
            };
            if row.heard >= words {
                return Ok(Some(()));
            }
            let Ok(task) = apply_alone(&row, Input::Hear { words }, self.context.now()) else {
                // It was taken away.
                return Ok(Some(()));
            };
            let mut changes = ChangeSet::new();
            changes.update(&row, &task);
            self.context.store.commit(changes).await?;
            Ok(Some(()))
        })
    }

    async fn look(&self) -> Result<Vec<String>, BuilderError> {
        let new = self.said_meanwhile().await?;
        // All of it stands in the request that comes now.
        let said = self.said.load(Ordering::Relaxed);
        self.taken.store(said, Ordering::Relaxed);
        Ok(new)
    }
}

#[async_trait]
impl Steering for TaskSteering {
    async fn heard(&self) -> Vec<String> {
        // What cannot be read now is heard at the next turn.
        self.look().await.unwrap_or_else(|error| {
            warn!(task.id = %self.task, "what people say cannot be read: {error}");
            Vec::new()
        })
    }
}
