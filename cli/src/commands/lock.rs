//! File locks.

pub mod list;

use clap::Subcommand;

use crate::app::App;
use crate::error::CliError;

/// The verbs of `lock`.
#[derive(Debug, Subcommand)]
pub enum Lock {
    /// Lists the file locks.
    List(list::List),
}

/// Runs a verb.
pub async fn run(noun: Lock, app: &App) -> Result<(), CliError> {
    match noun {
        Lock::List(verb) => verb.run(app).await,
    }
}
