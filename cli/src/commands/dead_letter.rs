//! Dead letters: events that could not be handled.

pub mod discard;
pub mod list;
pub mod replay;
pub mod show;

use std::str::FromStr;

use chrono::{DateTime, Utc};
use clap::Subcommand;
use ropewalk_bus::DeadLetters;
use ropewalk_bus::dead_letters::DeadLetter as Found;
use ropewalk_schemas::{ComponentName, EventId, Subject};
use ropewalk_store::{DeliveryKey, DeliveryRow};
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;

/// The verbs of `dead-letter`.
#[derive(Debug, Subcommand)]
pub enum DeadLetter {
    /// Lists events that could not be handled.
    List(list::List),
    /// Shows one with its event.
    Show(show::Show),
    /// Has one handled again.
    Replay(replay::Replay),
    /// Gives one up for good.
    Discard(discard::Discard),
}

/// Runs a verb.
pub async fn run(noun: DeadLetter, app: &App) -> Result<(), CliError> {
    match noun {
        DeadLetter::List(verb) => verb.run(app).await,
        DeadLetter::Show(verb) => verb.run(app).await,
        DeadLetter::Replay(verb) => verb.run(app).await,
        DeadLetter::Discard(verb) => verb.run(app).await,
    }
}

/// Names a delivery, as the list shows it: `12/build`.
#[derive(Debug, Clone)]
pub struct Which(DeliveryKey);

impl FromStr for Which {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let key = text.split_once('/').and_then(|(sequence, subscriber)| {
            Some(DeliveryKey {
                sequence: sequence.parse().ok()?,
                subscriber: ComponentName::parse(subscriber).ok()?,
            })
        });
        key.map(Self).ok_or_else(|| {
            "write POSITION/SUBSCRIBER as `ropewalk dead-letter list` shows it, for example `12/build`".to_owned()
        })
    }
}

impl Which {
    /// Finds the dead letter with its event.
    async fn find(&self, letters: &DeadLetters) -> Result<Found, CliError> {
        let found = letters.show(&self.0).await?;
        found.ok_or_else(|| CliError::unknown("dead letter", &self.0, "dead-letter list"))
    }
}

/// A dead letter as the lists show it.
#[derive(Debug, Serialize)]
struct Letter {
    id: String,
    #[serde(rename = "type")]
    event_type: String,
    event: EventId,
    subject: Subject,
    state: &'static str,
    attempts: u32,
    error: Option<String>,
    closed_at: Option<DateTime<Utc>>,
}

impl From<DeliveryRow> for Letter {
    fn from(row: DeliveryRow) -> Self {
        Self {
            id: row.key.to_string(),
            event_type: row.event_type,
            event: row.event_id,
            subject: row.subject,
            state: row.state.as_str(),
            attempts: row.attempts,
            error: row.error,
            closed_at: row.closed_at,
        }
    }
}
