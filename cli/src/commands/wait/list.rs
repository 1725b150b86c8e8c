//! Verb `wait list`: who waits for what, the longest first.

use clap::Args;
use ropewalk_schemas::wait::Wait;
use ropewalk_store::Query;

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
        let rows = desk
            .store
            .list::<Wait>(Query::new().order_by("since"))
            .await?;
        let waits: Vec<Wait> = rows.into_iter().map(|row| row.record).collect();
        app.output.list(
            &waits,
            ["waiter", "waits for", "held by", "since"],
            |wait| {
                [
                    wait.waiter.to_string(),
                    wait.resource.to_string(),
                    wait.holder
                        .as_ref()
                        .map(ToString::to_string)
                        .unwrap_or_default(),
                    time(wait.since),
                ]
            },
        )
    }
}
