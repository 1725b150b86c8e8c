//! Verb `build tell`: says something to the models that work on a build; each hears it with its next turn.

use clap::Args;
use ropewalk_desk::builds::tasks;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::illegal;
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{BuildId, TaskId};
use ropewalk_store::Versioned;
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;
use crate::ids::IdText;

/// The build, perhaps one task of it, and the words.
#[derive(Debug, Args)]
pub struct Tell {
    /// The build's id, as `build list` shows it, or the name of its idea for the newest.
    id: IdText,
    /// What to say; its first word is a task where it is spelt as one, such as `T-001`, else all open tasks hear it. Words
    /// that begin so and mean all are given in quotes.
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
        let opened = app.open().await?;
        let build = self.id.build(&opened).await?;
        let known = tasks::of_build(&opened.store, build.id).await?;
        let (named, text) = parted(&self.words, &known);
        let (context, person) = (opened.context(), opened.person()?);
        let tasks = tasks::tell(&context, &build, named, person, &text).await?;
        opened.poke_or_say(&app.output)?;
        let done = Receipt {
            build: build.id,
            tasks,
            text,
        };
        app.output.show(&done, |done| {
            let tasks: Vec<&str> = done.tasks.iter().map(TaskId::as_str).collect();
            format!("told {}; {}", tasks.join(", "), heard(&build))
        })
    }
}

/// Says when it is heard, if it is.
fn heard(build: &Build) -> String {
    let Build { id, state, .. } = build;
    let stands = matches!(
        state,
        BuildState::Paused | BuildState::Failed | BuildState::Stopped
    );
    // What still runs of one that gives way goes on.
    if !stands || build.gives_way() {
        return "a running model hears it with its next turn".to_owned();
    }
    let refused = illegal::revive(build, "go on").err();
    match refused.and_then(|refused| refused.instead) {
        Some(instead) => format!("the build is {state} and no model hears it: {instead}"),
        None => format!(
            "the build is {state} and no model hears it before it goes on: `ropewalk build resume {id}`"
        ),
    }
}

/// Parts the words into a task and what is said of it. A first word that is spelt as tasks are means one, known or not.
fn parted<'a>(words: &'a [String], tasks: &[Versioned<Task>]) -> (Option<&'a str>, String) {
    let means = |first: &str, more: bool| {
        let is_known = tasks.iter().any(|task| task.id.as_str() == first);
        is_known || (more && is_spelt_as_a_task(first))
    };
    match words {
        [first, rest @ ..] if means(first, !rest.is_empty()) => (Some(first), rest.join(" ")),
        words => (None, words.join(" ")),
    }
}

/// Says whether a word is spelt as planners number tasks, such as `T-001`.
fn is_spelt_as_a_task(word: &str) -> bool {
    let of =
        |part: &str, is: fn(&u8) -> bool| !part.is_empty() && part.bytes().all(|byte| is(&byte));
    word.split_once('-').is_some_and(|(letters, digits)| {
        of(letters, u8::is_ascii_uppercase) && of(digits, u8::is_ascii_digit)
    })
}
