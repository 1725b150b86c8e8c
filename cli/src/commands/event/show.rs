//! Verb `event show`: one event, and what became of it.

use std::fmt::Write as _;

use clap::Args;
use ropewalk_desk::views::event::{self, EventView};

use crate::app::App;
use crate::error::CliError;
use crate::ids::EventText;

/// The event.
#[derive(Debug, Args)]
pub struct Show {
    /// Its position, as `event list` shows it, or its id, or how that begins or ends.
    id: EventText,
}

impl Show {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let shown = event::show(&opened.store, self.id.find(&opened).await?).await?;
        let shown = shown.ok_or_else(|| self.id.unknown())?;
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
            "{} {}{error}",
            delivery.subscriber,
            standing(delivery.state, delivery.attempts)
        )
        .ok();
    }
    text
}

/// Says how a delivery stands; the try that closed it is among those that are counted.
fn standing(state: &str, attempts: u32) -> String {
    match (state, attempts) {
        (state, 0) => state.to_owned(),
        ("open", failed) => format!("open, {failed} tries failed"),
        (state, tries) => format!("{state} at try {tries}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_try_that_succeeded_is_no_failure() {
        for (state, attempts, told) in [
            ("open", 0, "open"),
            ("open", 2, "open, 2 tries failed"),
            ("done", 1, "done at try 1"),
            ("dead", 5, "dead at try 5"),
            ("unsubscribed", 0, "unsubscribed"),
        ] {
            assert_eq!(standing(state, attempts), told);
        }
    }
}
