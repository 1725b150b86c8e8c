//! Verb `dead-letter replay`: has one handled again, with a fresh count of tries.

use clap::Args;
use ropewalk_bus::DeadLetters;
use serde::Serialize;

use super::Which;
use crate::app::App;
use crate::error::CliError;

/// The dead letter.
#[derive(Debug, Args)]
pub struct Replay {
    /// Its id, as `dead-letter list` shows it, for example `12/build`.
    id: Which,
}

#[derive(Debug, Serialize)]
struct Done {
    id: String,
    replayed: bool,
}

impl Replay {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let letters = DeadLetters::new(desk.store.clone());
        let found = self.id.find(&letters).await?;
        letters.replay(&found.delivery.key).await?;
        desk.poke_or_say(&app.output)?;
        let done = Done {
            id: found.delivery.key.to_string(),
            replayed: true,
        };
        app.output
            .show(&done, |done| format!("replayed {}", done.id))
    }
}
