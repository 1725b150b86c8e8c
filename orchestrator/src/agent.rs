//! Defines what an agent is to the frame.

use std::fmt::Display;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::{ComponentName, Event, EventPattern};
use ropewalk_store::{ChangeSet, CommitError, ReadError};
use tokio_util::sync::CancellationToken;

use crate::context::Context;

/// Says how an agent is woken and how much it takes at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Its name as a subscriber; unique in a process.
    pub role: ComponentName,
    /// The events it takes.
    pub patterns: Vec<EventPattern>,
    /// The most deliveries it handles at the same time, 1 to 64.
    pub in_flight: usize,
    /// The schedules that wake it with `schedule.due`.
    pub schedules: Vec<Schedule>,
}

/// Wakes an agent again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The name that `schedule.due` carries, for example `monitor.tick`.
    pub name: String,
    /// When: a cron line of 5 or 6 fields, in UTC.
    pub cron: String,
}

/// A loop that an agent runs beside its handler, such as a build loop.
pub struct Worker {
    /// Its name in the registry.
    pub name: ComponentName,
    /// Runs until the token is cancelled; work in hand may be finished after that. It runs again after a crash.
    pub run: Box<dyn Fn(Context, CancellationToken) -> BoxFuture<'static, ()> + Send + Sync>,
}

/// A durable subscriber: it loads context, decides, acts, and says what changes.
#[async_trait]
pub trait Agent: Send + Sync + 'static {
    /// Says how the agent is woken.
    fn profile(&self) -> Profile;

    /// Returns whether the agent waits while those who do not have too much to do: what brings in new work stops first.
    fn yields(&self) -> bool {
        false
    }

    /// Returns whether an agent that is new to a project begins with what happens next, and not with its first event.
    fn begins_now(&self) -> bool {
        false
    }

    /// Sets right what a crash left behind; runs before the agent takes its first delivery.
    async fn recover(&self, _context: &Context) -> Result<(), AgentError> {
        Ok(())
    }

    /// Handles one event and returns what changes.
    ///
    /// The frame commits the change set together with the delivery. When somebody else changed a record in
    /// between, nothing is committed and the handler runs again on what is there then; so it must not act
    /// outside the store except in ways that may be repeated.
    async fn handle(&self, event: &Event, context: &Context) -> Result<ChangeSet, AgentError>;

    /// Tells whoever listens now what came of `event`; runs once, after the commit.
    ///
    /// A crash in between leaves it out, so nothing that has to happen belongs here.
    async fn committed(&self, _event: &Event, _context: &Context) {}

    /// Returns the loops that run beside the handler.
    fn workers(&self) -> Vec<Worker> {
        Vec::new()
    }
}

/// Says that an event could not be handled, and whether another try may help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// Another try may succeed; after five the delivery is a dead letter.
    #[error("{0}")]
    Transient(String),
    /// What it needs is away, which is told and ended elsewhere; tried again after a pause, and this try does not count.
    #[error("{reason}")]
    Postponed {
        /// How long to wait.
        after: Duration,
        /// What it waits for.
        reason: String,
    },
    /// No try will succeed; the delivery is a dead letter at once.
    #[error("{0}")]
    Permanent(String),
}

impl AgentError {
    /// Wraps an error that another try may cure.
    pub fn transient(error: impl Display) -> Self {
        Self::Transient(error.to_string())
    }

    /// Wraps an error that no further try will cure.
    pub fn permanent(error: impl Display) -> Self {
        Self::Permanent(error.to_string())
    }
}

impl From<ReadError> for AgentError {
    fn from(error: ReadError) -> Self {
        Self::transient(Words::of(&error))
    }
}

impl From<CommitError> for AgentError {
    fn from(error: CommitError) -> Self {
        let words = Words::of(&error);
        if error.is_permanent() {
            Self::permanent(words)
        } else {
            Self::transient(words)
        }
    }
}
