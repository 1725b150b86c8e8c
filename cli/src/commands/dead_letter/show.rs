//! Verb `dead-letter show`: one dead letter with its event.

use clap::Args;
use ropewalk_bus::DeadLetters;
use ropewalk_schemas::CloudEvent;
use serde::Serialize;

use super::{Letter, Which};
use crate::app::App;
use crate::error::CliError;

/// The dead letter.
#[derive(Debug, Args)]
pub struct Show {
    /// Its id, as `dead-letter list` shows it, for example `12/build`.
    id: Which,
}

#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    letter: Letter,
    content: CloudEvent,
}

impl Show {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let found = self.id.find(&DeadLetters::new(desk.store.clone())).await?;
        let shown = Shown {
            letter: found.delivery.into(),
            content: found.event,
        };
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
