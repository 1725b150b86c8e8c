//! Questions: see and answer them.

pub mod answer;
pub mod list;
pub mod show;

use clap::Subcommand;

use crate::app::App;
use crate::error::CliError;

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
