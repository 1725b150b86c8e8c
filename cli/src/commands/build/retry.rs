//! Verb `build retry`: tries a task again; a build that has ended without it runs again.

use clap::Args;
use ropewalk_builder::machine::{self, task::Input};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::payload::TaskRetry;
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{BuildId, Payload, Priority, Subject, TaskId};
use ropewalk_store::{ChangeSet, task_key};
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;
use crate::ids::IdText;

/// The task, and what to do differently.
#[derive(Debug, Args)]
pub struct Retry {
    /// The build's id, as `build list` shows it.
    id: IdText,
    /// The task, as `build show` shows it.
    task: TaskId,
    /// What to do differently.
    #[arg(long)]
    guidance: Option<String>,
}

#[derive(Debug, Serialize)]
struct Done {
    build: BuildId,
    task: TaskId,
    recorded: bool,
}

impl Retry {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let build = self.id.find::<Build>(&desk, "build", "build list").await?;
        let key = task_key(build.id, &self.task);
        let task = desk.store.get::<Task>(&key).await?;
        let list = format!("build show {}", build.id);
        let task = task.ok_or_else(|| CliError::unknown("task", &self.task, &list))?;
        let context = desk
            .context()
            .for_claim(build.correlation_id, Priority::URGENT);
        // The build agent decides the same when it takes the wish; here a refusal reaches who asks.
        let retry = Input::Retry {
            guidance: self.guidance.clone(),
        };
        let revive = machine::build::Input::Revive { express: true };
        machine::task::apply(&task, retry, context.now())
            .and_then(|_| machine::build::apply(&build, revive, context.now()))
            .map_err(|refused| CliError::refused("task-state", refused.to_string()))?;
        let mut changes = ChangeSet::new();
        changes.emit(context.event(
            Subject::task(build.id, &task.id),
            Payload::TaskRetry(TaskRetry {
                build_id: build.id,
                task_id: task.id.clone(),
                requested_by: desk.person()?.name.to_string(),
                guidance: self.guidance,
            }),
        ));
        desk.store.commit(changes).await?;
        desk.poke_or_say(&app.output)?;
        let done = Done {
            build: build.id,
            task: task.id.clone(),
            recorded: true,
        };
        app.output.show(&done, |done| {
            format!("asked for another try of {}", done.task)
        })
    }
}
