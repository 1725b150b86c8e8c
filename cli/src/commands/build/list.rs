//! Verb `build list`: the builds, the oldest first.

use clap::Args;
use ropewalk_desk::views::{build, why};
use ropewalk_schemas::Slug;

use crate::app::App;
use crate::error::CliError;
use crate::output::time;

/// Which ones.
#[derive(Debug, Args)]
pub struct List {
    /// Only those of this idea.
    #[arg(long)]
    idea: Option<Slug>,
}

impl List {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let providers = desk.project.config().models.builders();
        let rows = build::list(&desk.store, self.idea.as_ref(), &providers).await?;
        app.output.list(
            &rows,
            ["id", "idea", "state", "tasks", "branch", "approved", "why"],
            |row| {
                [
                    row.build.id.to_string(),
                    row.build.idea.to_string(),
                    row.build.state.to_string(),
                    format!("{}/{}", row.tasks_complete, row.tasks_total),
                    row.build.branch.clone(),
                    time(row.build.created_at),
                    why::build(&row.build, row.outage.as_ref()).unwrap_or_default(),
                ]
            },
        )
    }
}
