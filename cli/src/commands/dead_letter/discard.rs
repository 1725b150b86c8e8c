//! Verb `dead-letter discard`: gives one up for good; it stays in the record.

use clap::Args;
use ropewalk_desk::dead_letters::{self, DeadLetterName};
use ropewalk_desk::views::dead_letter::DeadLetterRow;
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;

/// The dead letter.
#[derive(Debug, Args)]
pub struct Discard {
    /// Its id, as `dead-letter list` shows it, for example `12/build`.
    id: DeadLetterName,
    /// Says what would be given up, and gives nothing up.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Serialize)]
struct Receipt {
    id: String,
    discarded: bool,
}

impl Discard {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        if self.dry_run {
            let found = dead_letters::preview(&opened.store, &self.id, opened.person()?).await?;
            let letter = DeadLetterRow::from(found);
            return app.output.show(&letter, |letter| {
                format!(
                    "`{}` ({} about {}) would be given up; nothing was",
                    letter.id, letter.event_type, letter.subject
                )
            });
        }
        dead_letters::discard(&opened.store, &self.id, opened.person()?).await?;
        // What came after it on the same entity may go on.
        opened.poke()?;
        let done = Receipt {
            id: self.id.to_string(),
            discarded: true,
        };
        app.output
            .show(&done, |done| format!("discarded {}", done.id))
    }
}
