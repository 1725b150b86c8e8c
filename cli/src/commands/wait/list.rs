//! Verb `wait list`: who waits for what, the longest first.

use chrono::{DateTime, Utc};
use clap::Args;
use ropewalk_coordination::waits::{self, Asking};
use ropewalk_schemas::wait::Wait;
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;
use crate::output::time;

/// Takes no arguments of its own.
#[derive(Debug, Args)]
pub struct List {}

impl List {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let waits = waits::all(&desk.store).await?;
        let mut rows: Vec<Row> = waits.parties.into_iter().map(Row::Party).collect();
        rows.extend(waits.others.into_iter().map(Row::Other));
        rows.sort_by_key(Row::since);
        app.output
            .list(&rows, ["waiter", "waits for", "held by", "since"], |row| {
                let (waiter, resource) = match row {
                    Row::Party(wait) => (wait.waiter.to_string(), &wait.resource),
                    Row::Other(asking) => (asking.name(), &asking.resource),
                };
                let holder = match row {
                    Row::Party(wait) => wait.holder.as_ref().map(ToString::to_string),
                    Row::Other(_) => None,
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

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Row {
    Party(Wait),
    Other(Asking),
}

impl Row {
    const fn since(&self) -> DateTime<Utc> {
        match self {
            Self::Party(wait) => wait.since,
            Self::Other(asking) => asking.since,
        }
    }
}
