//! Verb `dead-letter show`: one dead letter with its event.

use clap::Args;
use ropewalk_desk::dead_letters::DeadLetterName;
use ropewalk_desk::views::dead_letter;

use super::unknown;
use crate::app::App;
use crate::error::CliError;

/// The dead letter.
#[derive(Debug, Args)]
pub struct Show {
    /// Its id, as `dead-letter list` shows it, for example `12/build`.
    id: DeadLetterName,
}

impl Show {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let shown = dead_letter::show(&opened.store, &self.id).await?;
        let shown = shown.ok_or_else(|| unknown(&self.id))?;
        app.output.show(&shown, |shown| {
            let letter = &shown.letter;
            format!(
                "{} {} after {} failed tries: {}\n{}",
                letter.id,
                letter.state,
                letter.attempts,
                letter.error.as_deref().unwrap_or("no reason was stored"),
                serde_json::to_string_pretty(&shown.content).unwrap_or_default()
            )
        })
    }
}
