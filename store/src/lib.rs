//! Keeps the truth in SQL: records, events, delivery rows, leases, and the change sets that move them together.
//!
//! A caller reads records with their versions, decides, and hands the store a [`ChangeSet`]: what to write if the
//! versions still hold, which events to emit, which delivery is thereby handled. One writer per process commits it
//! in one transaction together with whatever else is waiting. The same transaction routes each event to the
//! subscribers of that moment, so that an event and its delivery rows exist together or not at all.
//!
//! What it is not: it moves nothing over a network, decides nothing about work, and knows no agent. It does not
//! hand deliveries out; the `bus` does.
//!
//! The same statements run on SQLite and on PostgreSQL; where they cannot be the same, `database/dialect.rs` knows both.
//! To add a third database: a driver in `database/`, its fragments in `database/dialect.rs`, its tables in `migrations/`, and a
//! name in the harness of the tests, which run on each.
//!
//! To add a record: write its struct in `schemas`, describe its row with `record!` in `records/`, list its table in
//! [`records::TABLES`], and add a migration for each database that makes the table; a test compares them.

mod blobs;
mod change_set;
mod claims;
mod command;
mod database;
mod deliveries;
mod error;
mod events;
mod feed;
mod query;
mod reader;
mod record;
mod row;
mod spending;
mod store;
mod submission;
mod value;
mod writer;

pub mod records;

pub use change_set::{ChangeSet, Outcome};
pub use claims::Claims;
pub use database::location::{Location, Server};
pub use database::lock::{Instance, InstanceLock, InstanceLockError};
pub use deliveries::{
    DeliveryFilter, DeliveryKey, DeliveryPosition, DeliveryRow, DeliveryState, OpenDelivery,
};
pub use error::{
    BackupError, CONFLICTS, CommitError, CommitFailure, CommitOrRead, LocationError, OpenError,
    ReadError, unless_conflict,
};
pub use events::{CommitOutcome, EventFilter, EventKey, StartAt, StoredEvent, Subscription};
pub use feed::{CommitFeed, LagError};
pub use query::Query;
pub use record::{Column, ColumnKind, Record, Table, Versioned};
pub use records::{
    attempt_key, evidence_key, injection_key, path_key, revision_key, task_key, wait_key,
};
pub use store::Store;
pub use store::leaving::leave_behind;
pub use store::maintenance::{Health, Statistics};
pub use store::retention::{ForgetError, RetentionReport};
pub use value::Value;
