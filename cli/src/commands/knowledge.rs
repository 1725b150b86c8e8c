//! Knowledge: what was learned.

pub mod add;
pub mod list;
pub mod search;
pub mod show;

use clap::Subcommand;

use crate::app::App;
use crate::error::CliError;

/// The verbs of `knowledge`.
#[derive(Debug, Subcommand)]
pub enum Knowledge {
    /// Lists what was learned, the newest first.
    List(list::List),
    /// Searches what was learned.
    Search(search::Search),
    /// Adds something worth remembering.
    Add(add::Add),
    /// Shows an item with its evidence.
    Show(show::Show),
}

/// Runs a verb.
pub async fn run(noun: Knowledge, app: &App) -> Result<(), CliError> {
    match noun {
        Knowledge::List(verb) => verb.run(app).await,
        Knowledge::Search(verb) => verb.run(app).await,
        Knowledge::Add(verb) => verb.run(app).await,
        Knowledge::Show(verb) => verb.run(app).await,
    }
}

/// Returns the written form of a unit variant.
pub(super) fn word(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).ok();
    value
        .and_then(|value| value.as_str().map(ToOwned::to_owned))
        .unwrap_or_default()
}
