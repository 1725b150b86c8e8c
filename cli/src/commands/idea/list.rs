//! Verb `idea list`: the ideas, the oldest first.

use clap::Args;
use ropewalk_desk::views;
use ropewalk_schemas::clip;

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
        let rows = views::idea::list(&desk.store).await?;
        app.output.list(
            &rows,
            ["idea", "title", "state", "phase", "confidence", "begun"],
            |row| {
                let waits = if row.waits_for_answer {
                    " (waits for you)"
                } else {
                    ""
                };
                let phase = row.phase.map(|phase| phase.to_string()).unwrap_or_default();
                [
                    row.slug.to_string(),
                    clip::line(&row.title, 50),
                    row.state.to_string(),
                    format!("{phase}{waits}"),
                    format!("{:.2}", row.confidence),
                    time(row.created_at),
                ]
            },
        )
    }
}
