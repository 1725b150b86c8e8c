//! Reads the values of a row back into what was stored, and names the row when one does not fit.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use ropewalk_schemas::{CloudEvent, ComponentName, Subject};
use serde::de::DeserializeOwned;

use crate::database::Row;
use crate::deliveries::{DeliveryKey, DeliveryPosition, DeliveryRow, DeliveryState, OpenDelivery};
use crate::error::ReadError;
use crate::events::{StartAt, StoredEvent, Subscription};
use crate::record::{Record, Versioned};
use crate::value::Value;

/// Takes the values of a row in order and names the row when one does not fit.
struct Cells {
    table: &'static str,
    key: String,
    values: std::vec::IntoIter<Value>,
}

impl Cells {
    fn new(table: &'static str, key: &str, row: Row) -> Self {
        Self {
            table,
            key: key.to_owned(),
            values: row.into_iter(),
        }
    }

    fn malformed(&self, reason: &dyn std::fmt::Display) -> ReadError {
        ReadError::Malformed {
            table: self.table,
            key: self.key.clone(),
            reason: reason.to_string(),
        }
    }

    fn next(&mut self) -> Value {
        self.values.next().unwrap_or(Value::Null)
    }

    fn text(&mut self) -> Result<String, ReadError> {
        let value = self.next();
        value
            .into_text()
            .ok_or_else(|| self.malformed(&"a text is missing"))
    }

    fn number(&mut self) -> Result<i64, ReadError> {
        let value = self.next();
        value
            .as_integer()
            .ok_or_else(|| self.malformed(&"a number is missing"))
    }

    fn time(&mut self) -> Result<DateTime<Utc>, ReadError> {
        let millis = self.number()?;
        DateTime::from_timestamp_millis(millis)
            .ok_or_else(|| self.malformed(&format!("`{millis}` is no time")))
    }

    fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(&mut self) -> Result<T, ReadError> {
        let text = self.text()?;
        text.parse().map_err(|error: T::Err| self.malformed(&error))
    }

    fn json<T: DeserializeOwned>(&mut self) -> Result<T, ReadError> {
        let text = self.text()?;
        serde_json::from_str(&text).map_err(|error| self.malformed(&error))
    }

    fn delivery_key(&mut self) -> Result<DeliveryKey, ReadError> {
        let key = DeliveryKey {
            sequence: self.number()?,
            subscriber: self.parsed()?,
        };
        self.key = key.to_string();
        Ok(key)
    }

    fn attempts(&mut self) -> Result<u32, ReadError> {
        Ok(u32::try_from(self.number()?).unwrap_or(u32::MAX))
    }
}

/// Reads (key, version, body).
pub(crate) fn record<R: Record>(row: Row) -> Result<Versioned<R>, ReadError> {
    let mut cells = Cells::new(R::TABLE.name, "?", row);
    cells.key = cells.text()?;
    Ok(Versioned {
        version: cells.number()?,
        record: cells.json()?,
    })
}

/// Reads (sequence, body, subscribers as a JSON array).
pub(crate) fn stored_event(row: Row) -> Result<StoredEvent, ReadError> {
    let mut cells = Cells::new("events", "?", row);
    let sequence = cells.number()?;
    cells.key = sequence.to_string();
    let event: CloudEvent = cells.json()?;
    let event = Arc::new(event);
    let mut subscribers: Vec<ComponentName> = cells.json()?;
    subscribers.sort_unstable();
    Ok(StoredEvent {
        sequence,
        event,
        subscribers,
    })
}

/// Reads (name, patterns).
pub(crate) fn subscription(row: Row) -> Result<Subscription, ReadError> {
    let mut cells = Cells::new("subscriptions", "?", row);
    let name: ComponentName = cells.parsed()?;
    cells.key = name.to_string();
    Ok(Subscription {
        name,
        patterns: cells.json()?,
        from: StartAt::Now,
    })
}

/// Reads (sequence, subscriber, attempts, due, error, body of the event).
pub(crate) fn open_delivery(row: Row) -> Result<OpenDelivery, ReadError> {
    let mut cells = Cells::new("deliveries", "?", row);
    Ok(OpenDelivery {
        key: cells.delivery_key()?,
        attempts: cells.attempts()?,
        due: cells.time()?,
        last_error: cells.next().into_text(),
        event: cells.json()?,
    })
}

/// Reads (attempts).
pub(crate) fn attempts(row: Row) -> Result<u32, ReadError> {
    Cells::new("deliveries", "?", row).attempts()
}

/// Reads (sequence, attempts, due, whether it is behind, milliseconds for which another process has it).
pub(crate) fn standing(row: Row) -> Result<DeliveryPosition, ReadError> {
    let mut cells = Cells::new("deliveries", "?", row);
    let sequence = cells.number()?;
    cells.key = sequence.to_string();
    Ok(DeliveryPosition {
        sequence,
        attempts: cells.attempts()?,
        due: cells.time()?,
        behind: cells.number()? != 0,
        held: u64::try_from(cells.number()?)
            .ok()
            .filter(|millis| *millis > 0)
            .map(Duration::from_millis),
    })
}

/// Reads (sequence, subscriber, event id, type, entity, state, attempts, due, error, closed_at).
pub(crate) fn delivery_row(row: Row) -> Result<DeliveryRow, ReadError> {
    let mut cells = Cells::new("deliveries", "?", row);
    let key = cells.delivery_key()?;
    let event_id = cells.parsed()?;
    let event_type = cells.text()?;
    let subject = cells.text()?;
    let subject = Subject::parse(&subject).map_err(|error| cells.malformed(&error))?;
    let state = cells.text()?;
    let state = DeliveryState::parse(&state)
        .ok_or_else(|| cells.malformed(&format!("`{state}` is no state")))?;
    Ok(DeliveryRow {
        key,
        event_id,
        event_type,
        subject,
        state,
        attempts: cells.attempts()?,
        due: cells.time()?,
        error: cells.next().into_text(),
        closed_at: cells
            .next()
            .as_integer()
            .and_then(DateTime::from_timestamp_millis),
    })
}
