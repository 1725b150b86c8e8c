//! Verb `build tell`: says something to the models that work on a build; each hears it with its next turn.

use clap::Args;
use ropewalk_builder::machine::task::{self, Input};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::payload::BuildTell;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{BuildId, Payload, Priority, Subject, TaskId};
use ropewalk_store::{ChangeSet, Query, Versioned};
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;
use crate::ids::IdText;

/// The most bytes of what is said at once.
const MOST: usize = 8 * 1024;

/// The build, perhaps one task of it, and the words.
#[derive(Debug, Args)]
pub struct Tell {
    /// The build's id, as `build list` shows it.
    id: IdText,
    /// What to say; its first word is a task where one is called so, else all open tasks hear it.
    #[arg(required = true)]
    words: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Done {
    build: BuildId,
    tasks: Vec<TaskId>,
    text: String,
}

impl Tell {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let build = self.id.find::<Build>(&desk, "build", "build list").await?;
        let of_build = Query::new()
            .equal("build", build.id.to_string())
            .order_by("number");
        let tasks = desk.store.list::<Task>(of_build).await?;
        let (named, text) = parted(&self.words, &tasks);
        if text.trim().is_empty() || text.len() > MOST {
            let said = format!(
                "say something of at most {MOST} bytes, after the build and perhaps a task"
            );
            return Err(CliError::refused("input", said));
        }
        let context = desk
            .context()
            .for_claim(build.correlation_id, Priority::URGENT);
        let hears = |task: &&Versioned<Task>| match named {
            Some(named) => task.id.as_str() == named,
            None => !matches!(task.state, TaskState::Complete | TaskState::Skipped),
        };
        let hearing: Vec<&Versioned<Task>> = tasks.iter().filter(hears).collect();
        if hearing.is_empty() {
            let said = (
                format!("no task of build {} is open", build.id),
                format!("`ropewalk build show {}` shows them", build.id),
            );
            return Err(CliError::refused("task-state", said));
        }
        for row in &hearing {
            // The build agent decides the same when it takes the wish; here a refusal reaches who speaks.
            task::apply(row, Input::Advise(text.clone()), context.now())
                .map_err(|refused| CliError::refused("task-state", refused.to_string()))?;
        }
        let tasks: Vec<TaskId> = hearing.iter().map(|row| row.id.clone()).collect();
        let mut changes = ChangeSet::new();
        for task in &tasks {
            changes.emit(context.event(
                Subject::task(build.id, task),
                Payload::BuildTell(BuildTell {
                    build_id: build.id,
                    task_id: task.clone(),
                    said_by: desk.person()?.name.to_string(),
                    text: text.clone(),
                }),
            ));
        }
        desk.store.commit(changes).await?;
        desk.poke_or_say(&app.output)?;
        let done = Done {
            build: build.id,
            tasks,
            text,
        };
        app.output.show(&done, |done| {
            let tasks: Vec<&str> = done.tasks.iter().map(TaskId::as_str).collect();
            format!(
                "told {}; a running model hears it with its next turn",
                tasks.join(", ")
            )
        })
    }
}

/// Parts the words into a task and what is said of it.
fn parted<'a>(words: &'a [String], tasks: &[Versioned<Task>]) -> (Option<&'a str>, String) {
    match words {
        [first, rest @ ..] if tasks.iter().any(|task| task.id.as_str() == first) => {
            (Some(first), rest.join(" "))
        }
        words => (None, words.join(" ")),
    }
}
