//! Verb `build tell`: says something to the models that work on a build; each hears it with its next turn.

use clap::Args;
use ropewalk_desk::builds::tasks;
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{BuildId, TaskId};
use ropewalk_store::Versioned;
use serde::Serialize;

use crate::app::App;
use crate::error::{CliError, UNKNOWN};
use crate::ids::IdText;

/// The build, perhaps one task of it, and the words.
#[derive(Debug, Args)]
pub struct Tell {
    /// The build's id, as `build list` shows it, or the name of its idea for the newest.
    id: IdText,
    /// What to say; its first word is a task where one is called so, else all open tasks hear it.
    #[arg(required = true)]
    words: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Receipt {
    build: BuildId,
    tasks: Vec<TaskId>,
    text: String,
}

impl Tell {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let build = self.id.build(&desk).await?;
        let known = tasks::of_build(&desk.store, build.id).await?;
        let (named, text) = parted(&self.words, &known);
        if let Some(stray) = stray(&self.words, named) {
            let tasks: Vec<&str> = known.iter().map(|task| task.id.as_str()).collect();
            return Err(CliError::refused(
                UNKNOWN,
                (
                    format!("no task of build `{}` is called `{stray}`", build.id),
                    format!(
                        "its tasks are {}; words that begin so are given in quotes",
                        tasks.join(", ")
                    ),
                ),
            ));
        }
        let (context, person) = (desk.context(), desk.person()?);
        let tasks = tasks::tell(&context, &build, named, person, &text).await?;
        desk.poke_or_say(&app.output)?;
        let done = Receipt {
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

/// Returns the first of several words if it names a task that is none of the build's: nobody begins to speak so.
fn stray<'a>(words: &'a [String], named: Option<&str>) -> Option<&'a str> {
    let [first, _, ..] = words else { return None };
    let (letters, digits) = first.split_once('-')?;
    let is_id = !letters.is_empty()
        && letters.bytes().all(|letter| letter.is_ascii_uppercase())
        && !digits.is_empty()
        && digits.bytes().all(|digit| digit.is_ascii_digit());
    (is_id && named.is_none()).then_some(first)
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
