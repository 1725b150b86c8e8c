//! Verb `knowledge search`: finds what was learned.

use clap::Args;
use ropewalk_desk::views::knowledge;

use crate::app::App;
use crate::error::CliError;
use crate::output::short;

/// What to look for.
#[derive(Debug, Args)]
pub struct Search {
    /// Words that the items hold.
    #[arg(required = true)]
    words: Vec<String>,
    /// The most items.
    #[arg(long, default_value_t = 20)]
    limit: u32,
}

impl Search {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let words = self.words.join(" ");
        let items = knowledge::search(&desk.store, &words, self.limit).await?;
        app.output.list(
            &items,
            ["id", "kind", "state", "confidence", "files", "says"],
            |item| {
                [
                    item.id.to_string(),
                    super::word(&item.kind),
                    item.state.to_string(),
                    format!("{:.2}", item.confidence),
                    item.globs.join(" "),
                    short(&item.content, 80),
                ]
            },
        )
    }
}
