//! Waits: who waits for whom.

pub mod graph;
pub mod list;

use clap::Subcommand;

use crate::app::App;
use crate::error::CliError;

/// The verbs of `wait`.
#[derive(Debug, Subcommand)]
pub enum Wait {
    /// Lists who waits for what.
    List(list::List),
    /// Draws who waits for whom.
    Graph(graph::Graph),
}

/// Runs a verb.
pub async fn run(noun: Wait, app: &App) -> Result<(), CliError> {
    match noun {
        Wait::List(verb) => verb.run(app).await,
        Wait::Graph(verb) => verb.run(app).await,
    }
}
