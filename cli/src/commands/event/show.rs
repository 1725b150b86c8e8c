//! Verb `event show`: one event, and what became of it.

use std::fmt::Write as _;
use std::str::FromStr;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use clap::Args;
use ropewalk_schemas::{CloudEvent, ComponentName, EventId};
use ropewalk_store::{DeliveryFilter, DeliveryRow, EventFilter, StoredEvent};
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;
use crate::wiring::Desk;

/// The event.
#[derive(Debug, Args)]
pub struct Show {
    /// Its position or its id, as `event list` shows them.
    id: Which,
}

/// Names an event.
#[derive(Debug, Clone, Copy)]
enum Which {
    Id(EventId),
    Position(i64),
}

impl FromStr for Which {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text.parse(), text.parse()) {
            (Ok(position), _) => Ok(Self::Position(position)),
            (_, Ok(id)) => Ok(Self::Id(id)),
            _ => Err(
                "write a position or a whole id, as `ropewalk event list` shows them".to_owned(),
            ),
        }
    }
}

impl std::fmt::Display for Which {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Id(id) => id.fmt(formatter),
            Self::Position(position) => position.fmt(formatter),
        }
    }
}

#[derive(Debug, Serialize)]
struct Shown {
    sequence: i64,
    #[serde(flatten)]
    event: CloudEvent,
    deliveries: Vec<Delivery>,
}

#[derive(Debug, Serialize)]
struct Delivery {
    subscriber: ComponentName,
    state: &'static str,
    attempts: u32,
    error: Option<String>,
    closed_at: Option<DateTime<Utc>>,
}

impl Show {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let stored = find(&desk, self.id).await?;
        let stored = stored.ok_or_else(|| CliError::unknown("event", self.id, "event list"))?;
        let filter = DeliveryFilter {
            event: Some(stored.event.id),
            ..DeliveryFilter::default()
        };
        let deliveries = desk.store.deliveries(&filter).await?;
        let shown = Shown {
            sequence: stored.sequence,
            event: Arc::unwrap_or_clone(stored.event),
            deliveries: deliveries.into_iter().map(delivery).collect(),
        };
        app.output.show(&shown, human)
    }
}

async fn find(desk: &Desk, which: Which) -> Result<Option<StoredEvent>, CliError> {
    match which {
        Which::Id(id) => Ok(desk.store.event(id).await?),
        Which::Position(position) => {
            let filter = EventFilter {
                after_sequence: Some(position.saturating_sub(1)),
                before_sequence: Some(position.saturating_add(1)),
                limit: Some(1),
                ..EventFilter::default()
            };
            Ok(desk.store.events(&filter).await?.pop())
        }
    }
}

fn delivery(row: DeliveryRow) -> Delivery {
    Delivery {
        subscriber: row.key.subscriber,
        state: row.state.as_str(),
        attempts: row.attempts,
        error: row.error,
        closed_at: row.closed_at,
    }
}

fn human(shown: &Shown) -> String {
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
