//! What is stored of an attempt that runs.

use ropewalk_orchestrator::Context;
use ropewalk_schemas::attempt::Attempt;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{AttemptId, BuildId, TaskId};
use ropewalk_store::{Versioned, attempt_key};

use crate::context;
use crate::error::BuilderError;

/// The rows of a running attempt, if it still is the one that runs.
pub(crate) struct Rows {
    pub(crate) build: Versioned<Build>,
    pub(crate) task: Versioned<Task>,
    pub(crate) attempt: Versioned<Attempt>,
}

impl Rows {
    /// Loads the rows; none when the task was taken away from the attempt.
    pub(crate) async fn load(
        context: &Context,
        build: BuildId,
        task: &TaskId,
        attempt: AttemptId,
    ) -> Result<Option<Self>, BuilderError> {
        let store = &context.store;
        let (Some(build), Some(task), Some(row)) = (
            context::build(store, build).await?,
            context::task(store, build, task).await?,
            store.get::<Attempt>(&attempt_key(attempt)).await?,
        ) else {
            return Ok(None);
        };
        let ours = task.attempt == Some(attempt) && !row.state.is_final();
        Ok(ours.then_some(Self {
            build,
            task,
            attempt: row,
        }))
    }
}
