//! Notices: what people were to be told.

pub mod list;

use clap::Subcommand;

use crate::app::App;
use crate::error::CliError;

/// The verbs of `notice`.
#[derive(Debug, Subcommand)]
pub enum Notice {
    /// Lists what people were to be told.
    List(list::List),
}

/// Runs a verb.
pub async fn run(noun: Notice, app: &App) -> Result<(), CliError> {
    match noun {
        Notice::List(verb) => verb.run(app).await,
    }
}
