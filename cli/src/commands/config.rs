//! The configuration: show it, check it.

pub mod check;
pub mod show;

use clap::Subcommand;

use crate::app::App;
use crate::error::CliError;

/// The verbs of `config`.
#[derive(Debug, Subcommand)]
pub enum Config {
    /// Shows every value and where it was set.
    Show(show::Show),
    /// Checks the configuration.
    Check(check::Check),
}

/// Runs a verb.
pub fn run(noun: Config, app: &App) -> Result<(), CliError> {
    match noun {
        Config::Show(verb) => verb.run(app),
        Config::Check(verb) => verb.run(app),
    }
}
