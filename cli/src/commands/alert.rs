//! Alerts: what is wrong.

pub mod ack;
pub mod list;

use clap::Subcommand;

use crate::app::App;
use crate::error::CliError;

/// The verbs of `alert`.
#[derive(Debug, Subcommand)]
pub enum Alert {
    /// Lists what is wrong.
    List(list::List),
    /// Records that you have seen an alert.
    Ack(ack::Ack),
}

/// Runs a verb.
pub async fn run(noun: Alert, app: &App) -> Result<(), CliError> {
    match noun {
        Alert::List(verb) => verb.run(app).await,
        Alert::Ack(verb) => verb.run(app).await,
    }
}
