//! That people stop everything, and let it go on: no model is asked and no command begins in between.

use ropewalk_orchestrator::Context;
use ropewalk_schemas::halt::Halt;
use ropewalk_schemas::payload::{HaltBegun, HaltLifted};
use ropewalk_schemas::person::Right;
use ropewalk_schemas::{Payload, Subject};
use ropewalk_store::{
    ChangeSet, CommitError, CommitFailure, ReadError, Store, Versioned, retry_on_conflict,
};

use crate::length::{self, LengthError, SAID_BYTES};
use crate::people::{PermissionError, Person};

/// Says why nothing became of it.
#[derive(Debug, thiserror::Error)]
pub enum HaltError {
    /// The person may not do this.
    #[error(transparent)]
    Forbidden(#[from] PermissionError),
    /// Somebody was first.
    #[error("{}", .0.in_words())]
    Already(Box<Halt>),
    /// The reason is too long.
    #[error("nothing is stopped yet: the reason has {0} bytes, and {SAID_BYTES} is the most")]
    TooLong(usize),
    /// Nothing is stopped.
    #[error("nothing is stopped")]
    NotStopped,
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl CommitFailure for HaltError {
    fn commit_error(&self) -> Option<&CommitError> {
        match self {
            Self::Commit(error) => Some(error),
            _ => None,
        }
    }
}

/// Returns what stops everything, if anybody has.
pub async fn standing(store: &Store) -> Result<Option<Halt>, ReadError> {
    let row = store.get::<Halt>(Halt::EVERYTHING).await?;
    Ok(row.map(Versioned::into_inner).filter(Halt::stands))
}

/// Stops everything, on the word of `person`, until somebody lets it go on.
pub async fn stop(
    context: &Context,
    person: &Person,
    reason: Option<String>,
) -> Result<Halt, HaltError> {
    person.demand(Right::Stop)?;
    let said = length::said("the reason", reason.as_deref());
    said.map_err(|LengthError { bytes, .. }| HaltError::TooLong(bytes))?;
    let halt = Halt {
        scope: Halt::EVERYTHING.to_owned(),
        by: person.name.clone(),
        reason,
        since: context.now(),
        lifted_by: None,
        lifted_at: None,
    };
    let payload = Payload::HaltBegun(HaltBegun {
        by: halt.by.clone(),
        reason: halt.reason.clone(),
    });
    retry_on_conflict!(HaltError, Halt::EVERYTHING, {
        let row = context.store.get::<Halt>(Halt::EVERYTHING).await?;
        let mut changes = ChangeSet::new();
        match row {
            Some(row) if row.stands() => return Err(HaltError::Already(Box::new(row.record))),
            Some(row) => changes.update(&row, &halt),
            None => changes.insert(&halt),
        };
        changes.emit(context.event(Subject::project(), payload.clone()));
        // Where somebody was faster, who it was is told.
        context.store.commit(changes).await?;
        Ok(Some(()))
    })?;
    Ok(halt)
}

/// Lets everything go on where it stands; what was stopped anew meanwhile stays so.
pub async fn lift(context: &Context, person: &Person) -> Result<Halt, HaltError> {
    person.demand(Right::Stop)?;
    let row = context.store.get::<Halt>(Halt::EVERYTHING).await?;
    let row = row.filter(|row| row.stands());
    let row = row.ok_or(HaltError::NotStopped)?;
    let halt = Halt {
        lifted_by: Some(person.name.clone()),
        lifted_at: Some(context.now()),
        ..row.record.clone()
    };
    let mut changes = ChangeSet::new();
    changes.update(&row, &halt);
    changes.emit(context.event(
        Subject::project(),
        Payload::HaltLifted(HaltLifted {
            by: person.name.clone(),
        }),
    ));
    context.store.commit(changes).await?;
    Ok(halt)
}
