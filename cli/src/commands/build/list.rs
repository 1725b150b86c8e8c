//! Verb `build list`: the builds, the oldest first.

use clap::Args;
use ropewalk_desk::views::build::{self, BuildFilter};
use ropewalk_desk::views::why;
use ropewalk_schemas::build::BuildState;

use super::asleep::AttendedBuild;
use crate::app::App;
use crate::arguments::span::SpanArguments;
use crate::error::CliError;
use crate::ids::IdeaText;
use crate::output::time;

/// Which ones.
#[derive(Debug, Args)]
pub struct List {
    /// Only those of this idea.
    #[arg(long)]
    idea: Option<IdeaText>,
    /// Only those in this state, for example `running`.
    #[arg(long)]
    state: Option<BuildState>,
    #[command(flatten)]
    approved: SpanArguments,
}

impl List {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let providers = opened.project.config().models.builders();
        let filter = BuildFilter {
            idea: IdeaText::find_wanted(self.idea.as_ref(), &opened).await?,
            state: self.state,
            approved: self.approved.span(),
        };
        let rows = build::list(&opened.store, &filter, &providers).await?;
        let runs = opened.poke()?;
        let rows = rows.into_iter();
        let rows: Vec<_> = rows
            .map(|row| AttendedBuild::of(row, |row| &row.build, runs))
            .collect();
        app.output.list(
            &rows,
            ["id", "idea", "state", "tasks", "branch", "approved", "why"],
            |attended| {
                let row = &attended.shown;
                let why = attended.why(why::build(&row.build, row.outage.as_ref()));
                [
                    row.build.id.to_string(),
                    row.build.idea.to_string(),
                    row.build.state.to_string(),
                    format!("{}/{}", row.tasks_complete, row.tasks_total),
                    row.build.branch.clone(),
                    time(row.build.created_at),
                    why.unwrap_or_default(),
                ]
            },
        )
    }
}
