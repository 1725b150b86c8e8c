//! Wakes inboxes when something was committed; what is to be delivered, the store decides.

pub(crate) mod embedded;
pub(crate) mod jetstream;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use ropewalk_schemas::ComponentName;
use ropewalk_store::Subscription;

use crate::error::BusError;
use jetstream::{JetStreamOptions, Notice};

/// Chooses what carries events between processes.
#[derive(Debug, Clone)]
pub enum TransportOptions {
    /// Nothing does: this process consumes alone, and others poke it after they committed.
    Embedded,
    /// A NATS server with JetStream.
    JetStream(JetStreamOptions),
}

/// Says how a transport is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportStatus {
    /// It works.
    Up,
    /// It was never reached yet, or is being set up.
    Starting,
    /// It fails and is tried again; events are safe in the store and wait.
    Down {
        /// Since when.
        since: DateTime<Utc>,
        /// What is wrong.
        reason: String,
    },
}

/// Wakes inboxes; losing a wake-up may delay a delivery until the next sweep, never lose it.
#[async_trait]
pub(crate) trait Transport: Send + Sync + std::fmt::Debug {
    /// Begins to wake the inbox of a subscriber, which the hub knows already.
    async fn attach(&self, subscription: &Subscription) -> Result<(), BusError>;

    /// Stops to wake an inbox.
    fn detach(&self, subscriber: &ComponentName);

    /// Says that a delivery is closed, or stored to be tried again.
    async fn settled(&self, subscriber: &ComponentName, sequence: i64);

    /// Lists the deliveries whose message is neither acknowledged nor given up.
    fn held(&self, subscriber: &ComponentName) -> Vec<i64>;

    /// Looks for deliveries that should have been handed out long ago.
    async fn sweep(&self);

    /// Says that another process may have committed something.
    fn poke(&self);

    /// Waits until everything that is committed by now has left this process.
    async fn flush(&self);

    /// Says how the transport is doing.
    fn status(&self) -> TransportStatus;

    /// Lists what happened to the broker that somebody should know, the oldest first.
    fn notices(&self) -> Vec<Notice> {
        Vec::new()
    }
}
