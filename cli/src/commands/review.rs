//! Reviews: what came of a build, and what was learned from it.

pub mod show;

use clap::Subcommand;

use crate::app::App;
use crate::error::CliError;

/// The verbs of `review`.
#[derive(Debug, Subcommand)]
pub enum Review {
    /// Shows a review with its lessons.
    Show(show::Show),
}

/// Runs a verb.
pub async fn run(noun: Review, app: &App) -> Result<(), CliError> {
    match noun {
        Review::Show(verb) => verb.run(app).await,
    }
}
