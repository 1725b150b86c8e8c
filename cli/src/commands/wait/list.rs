//! Verb `wait list`: who waits for what, the longest first.

use clap::Args;
use ropewalk_desk::views::wait::{self, WaitRow};

use crate::app::App;
use crate::error::CliError;
use crate::output::time;

/// Takes no arguments of its own.
#[derive(Debug, Args)]
pub struct List {}

impl List {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let rows = wait::list(&opened.store).await?;
        app.output
            .list(&rows, ["waiter", "waits for", "held by", "since"], |row| {
                let (waiter, resource) = match row {
                    WaitRow::Party(wait) => (wait.waiter.to_string(), &wait.resource),
                    WaitRow::Other(asking) => (asking.name(), &asking.resource),
                };
                let holder = match row {
                    WaitRow::Party(wait) => wait.holder.as_ref().map(ToString::to_string),
                    WaitRow::Other(_) => None,
                };
                [
                    waiter,
                    resource.to_string(),
                    holder.unwrap_or_default(),
                    time(row.since()),
                ]
            })
    }
}
