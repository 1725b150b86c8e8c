//! Verb `idea list`: the ideas, the oldest first.

use clap::Args;
use ropewalk_desk::views::idea::{self, IdeaFilter};
use ropewalk_schemas::clip;
use ropewalk_schemas::idea::IdeaState;

use crate::app::App;
use crate::arguments::span::SpanArguments;
use crate::error::CliError;
use crate::output::time;

/// Which ones.
#[derive(Debug, Args)]
pub struct List {
    /// Only those that talk or landing have brought so far, for example `captured`: built or not.
    #[arg(long)]
    state: Option<IdeaState>,
    #[command(flatten)]
    begun: SpanArguments,
}

impl List {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let filter = IdeaFilter {
            state: self.state,
            begun: self.begun.span(),
            words: None,
        };
        let rows = idea::list(&opened.store, &filter).await?;
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
                    row.standing.as_str().to_owned(),
                    format!("{phase}{waits}"),
                    format!("{:.2}", row.confidence),
                    time(row.created_at),
                ]
            },
        )
    }
}
