//! Events: what happened.

pub mod filter;
pub mod line;
pub mod list;
pub mod replay;
pub mod show;
pub mod tail;

use clap::Subcommand;

use crate::app::App;
use crate::error::CliError;

/// The verbs of `event`.
#[derive(Debug, Subcommand)]
pub enum Event {
    /// Lists events, the newest last.
    List(list::List),
    /// Shows events as they come.
    Tail(tail::Tail),
    /// Shows one event and what became of it.
    Show(show::Show),
    /// Has a subscriber handle what happened before it began.
    Replay(replay::Replay),
}

/// Runs a verb.
pub async fn run(noun: Event, app: &App) -> Result<(), CliError> {
    match noun {
        Event::List(verb) => verb.run(app).await,
        Event::Tail(verb) => verb.run(app).await,
        Event::Show(verb) => verb.run(app).await,
        Event::Replay(verb) => verb.run(app).await,
    }
}
