//! Verb `dead-letter replay`: has one handled again, with a fresh count of tries.

use clap::Args;
use ropewalk_desk::dead_letters::{self, DeadLetterName};
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;

/// The dead letter.
#[derive(Debug, Args)]
pub struct Replay {
    /// Its id, as `dead-letter list` shows it, for example `12/build`.
    id: DeadLetterName,
}

#[derive(Debug, Serialize)]
struct Receipt {
    id: String,
    replayed: bool,
}

impl Replay {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        dead_letters::replay(&opened.store, &self.id, opened.person()?).await?;
        opened.poke_or_say(&app.output)?;
        let done = Receipt {
            id: self.id.to_string(),
            replayed: true,
        };
        app.output
            .show(&done, |done| format!("replayed {}", done.id))
    }
}
