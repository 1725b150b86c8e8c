//! Questions: see and answer them.

pub mod answer;
pub mod list;
pub mod show;

use std::fmt::Display;

use clap::Subcommand;
use ropewalk_schemas::question;

use crate::app::App;
use crate::error::CliError;
use crate::ids::last_digits;

/// The verbs of `question`.
#[derive(Debug, Subcommand)]
pub enum Question {
    /// Lists the questions, the most urgent first.
    List(list::List),
    /// Shows a question with its options.
    Show(show::Show),
    /// Answers a question, or all that have a safe default.
    Answer(answer::Answer),
}

/// Runs a verb.
pub async fn run(noun: Question, app: &App) -> Result<(), CliError> {
    match noun {
        Question::List(verb) => verb.run(app).await,
        Question::Show(verb) => verb.run(app).await,
        Question::Answer(verb) => verb.run(app).await,
    }
}

/// Returns the commands that show the whole of a question and answer it.
pub(crate) fn commands_of(id: impl Display) -> String {
    format!("`ropewalk question show {id}`, then `ropewalk question answer {id}`")
}

/// Returns the command that answers these questions, or lists them where there is more than one; none where none is asked.
pub(crate) fn answer_command(asked: &[question::Question]) -> Option<String> {
    match asked {
        [] => None,
        [one] => Some(format!(
            "`ropewalk question answer {}`",
            last_digits(one.id)
        )),
        _ => Some("`ropewalk question list`".to_owned()),
    }
}
