//! Dead letters: events that could not be handled.

pub mod discard;
pub mod list;
pub mod replay;
pub mod show;

use clap::Subcommand;
use ropewalk_desk::dead_letters::{DeadLetterError, DeadLetterName};

use crate::app::App;
use crate::error::CliError;

/// The verbs of `dead-letter`.
#[derive(Debug, Subcommand)]
pub enum DeadLetter {
    /// Lists events that could not be handled.
    List(list::List),
    /// Shows one with its event.
    Show(show::Show),
    /// Has one handled again.
    Replay(replay::Replay),
    /// Gives one up for good.
    Discard(discard::Discard),
}

/// Runs a verb.
pub async fn run(noun: DeadLetter, app: &App) -> Result<(), CliError> {
    match noun {
        DeadLetter::List(verb) => verb.run(app).await,
        DeadLetter::Show(verb) => verb.run(app).await,
        DeadLetter::Replay(verb) => verb.run(app).await,
        DeadLetter::Discard(verb) => verb.run(app).await,
    }
}

impl From<DeadLetterError> for CliError {
    fn from(error: DeadLetterError) -> Self {
        match error {
            DeadLetterError::Unknown(name) => unknown(&name),
            DeadLetterError::Forbidden(error) => error.into(),
            DeadLetterError::Read(error) => error.into(),
            DeadLetterError::Commit(error) => error.into(),
        }
    }
}

fn unknown(name: &DeadLetterName) -> CliError {
    CliError::unknown("dead letter", name, "dead-letter list")
}
