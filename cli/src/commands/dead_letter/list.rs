//! Verb `dead-letter list`: what could not be handled, the newest first.

use clap::Args;
use ropewalk_desk::views::dead_letter;
use ropewalk_schemas::clip;

use crate::app::App;
use crate::error::CliError;

/// How many.
#[derive(Debug, Args)]
pub struct List {
    /// The most dead letters.
    #[arg(long, default_value_t = 100)]
    limit: u32,
}

impl List {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let letters = dead_letter::list(&opened.store, self.limit).await?;
        app.output.list(
            &letters,
            ["id", "event", "subject", "state", "tries", "error"],
            |letter| {
                [
                    letter.id.clone(),
                    letter.event_type.clone(),
                    letter.subject.to_string(),
                    letter.state.to_owned(),
                    letter.attempts.to_string(),
                    clip::line(letter.error.as_deref().unwrap_or_default(), 80),
                ]
            },
        )
    }
}
