//! What people decide about events that could not be handled.

use std::fmt;
use std::str::FromStr;

use ropewalk_bus::{DeadLetter, DeadLetters};
use ropewalk_schemas::ComponentName;
use ropewalk_schemas::person::Right;
use ropewalk_store::{CommitError, DeliveryKey, DeliveryRow, ReadError, Store};

use crate::people::{PermissionError, Person};

/// Names a dead letter, as the list shows it: `12/build`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterName(pub(crate) DeliveryKey);

/// Says that a text names no dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "write POSITION/SUBSCRIBER as `ropewalk dead-letter list` shows it, for example `12/build`"
)]
pub struct NoDeadLetterName;

/// Says why nothing became of a decision about a dead letter.
#[derive(Debug, thiserror::Error)]
pub enum DeadLetterError {
    /// None is called so.
    #[error("no dead letter is called `{0}`")]
    Unknown(DeadLetterName),
    /// The person may not decide about it.
    #[error(transparent)]
    Forbidden(#[from] PermissionError),
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl FromStr for DeadLetterName {
    type Err = NoDeadLetterName;

    fn from_str(text: &str) -> Result<Self, NoDeadLetterName> {
        let key = text.split_once('/').and_then(|(sequence, subscriber)| {
            Some(DeliveryKey {
                sequence: sequence.parse().ok().filter(|position| *position > 0)?,
                subscriber: ComponentName::parse(subscriber).ok()?,
            })
        });
        key.map(Self).ok_or(NoDeadLetterName)
    }
}

impl fmt::Display for DeadLetterName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Has an event handled again, with a fresh count of tries; poke whoever consumes.
pub async fn replay(
    store: &Store,
    name: &DeadLetterName,
    by: &Person,
) -> Result<(), DeadLetterError> {
    let (letters, _) = taken(store, name, by).await?;
    Ok(letters.replay(&name.0).await?)
}

/// Gives an event up for good; it stays in the record with who did so.
pub async fn discard(
    store: &Store,
    name: &DeadLetterName,
    by: &Person,
) -> Result<(), DeadLetterError> {
    let (letters, letter) = taken(store, name, by).await?;
    let failed = letter.delivery.error.unwrap_or_default();
    let reason = format!("given up by {}: {failed}", by.name);
    Ok(letters.discard(&name.0, reason).await?)
}

/// Returns what somebody who may decides about, and changes nothing.
pub async fn preview(
    store: &Store,
    name: &DeadLetterName,
    by: &Person,
) -> Result<DeliveryRow, DeadLetterError> {
    let (_, letter) = taken(store, name, by).await?;
    Ok(letter.delivery)
}

/// Finds what somebody decides about who may.
async fn taken(
    store: &Store,
    name: &DeadLetterName,
    by: &Person,
) -> Result<(DeadLetters, DeadLetter), DeadLetterError> {
    by.demand(Right::Stop)?;
    let letters = DeadLetters::new(store.clone());
    let letter = letters.show(&name.0).await?;
    let letter = letter.ok_or_else(|| DeadLetterError::Unknown(name.clone()))?;
    Ok((letters, letter))
}
