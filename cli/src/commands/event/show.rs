//! Verb `event show`: one event, and what became of it.

use std::fmt::Write as _;

use clap::Args;
use ropewalk_desk::views::event::{self, EventName, EventView};

use crate::app::App;
use crate::error::CliError;

/// The event.
#[derive(Debug, Args)]
pub struct Show {
    /// Its position or its id, as `event list` shows them.
    id: EventName,
}

impl Show {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let shown = event::show(&desk.store, self.id).await?;
        let shown = shown.ok_or_else(|| CliError::unknown("event", self.id, "event list"))?;
        app.output.show(&shown, human)
    }
}

fn human(shown: &EventView) -> String {
    let mut text = serde_json::to_string_pretty(&shown.event).unwrap_or_default();
    text.push('\n');
    if shown.deliveries.is_empty() {
        text.push_str("nobody subscribes to it\n");
    }
    for delivery in &shown.deliveries {
        let error = delivery
            .error
            .as_ref()
            .map(|error| format!(": {error}"))
            .unwrap_or_default();
        // Writing to a String cannot fail.
        writeln!(
            text,
            "{} {} after {} failed tries{error}",
            delivery.subscriber, delivery.state, delivery.attempts
        )
        .ok();
    }
    text
}
