//! Verb `knowledge search`: finds what was learned.

use clap::Args;
use ropewalk_desk::views::knowledge;

use super::list::{HEADER, row};
use crate::app::App;
use crate::error::CliError;

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
        let opened = app.open().await?;
        let words = self.words.join(" ");
        let items = knowledge::search(&opened.store, &words, self.limit).await?;
        app.output.list(&items, HEADER, row)
    }
}
