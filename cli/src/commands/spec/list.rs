//! Verb `spec list`: the specifications, the oldest first.

use clap::Args;
use ropewalk_desk::views;

use super::hash::FEWEST_DIGITS;
use crate::app::App;
use crate::error::CliError;
use crate::ids::IdeaText;
use crate::output::time;

/// Which ones.
#[derive(Debug, Args)]
pub struct List {
    /// Only those of this idea.
    #[arg(long)]
    idea: Option<IdeaText>,
}

impl List {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let idea = IdeaText::find_wanted(self.idea.as_ref(), &opened).await?;
        let specs = views::specification::list(&opened.store, idea.as_ref()).await?;
        app.output.list(
            &specs,
            ["id", "idea", "state", "revision", "hash", "asked"],
            |row| {
                let spec = &row.specification;
                [
                    spec.id.to_string(),
                    spec.idea.to_string(),
                    match row.waits_for.first() {
                        Some(question) => format!(
                            "{}, waits for your answer to question {question}",
                            spec.state
                        ),
                        None => spec.state.to_string(),
                    },
                    spec.revision.to_string(),
                    spec.hash
                        .as_ref()
                        .map_or("", |hash| &hash.as_str()[..FEWEST_DIGITS])
                        .to_owned(),
                    time(spec.created_at),
                ]
            },
        )
    }
}
