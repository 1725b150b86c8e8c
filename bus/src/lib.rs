//! Delivers events to subscribers, and keeps workers from colliding.
//!
//! Delivery: the store holds the truth in one delivery row per event and subscriber; this crate hands those rows out
//! through an [`Inbox`], in the order of each entity, and closes them together with the effects of their handling.
//! A transport only wakes: `embedded` follows the commits of this process, `jetstream` carries the events over NATS.
//! Where several processes take the same subscribers, each claims a row before it hands it out (`sharing`).
//! Not colliding: file locks, ownership of files by builds, and the wait-for graph with its detector of rings.
//!
//! What it is not: it stores nothing of its own, it knows no agent, and losing a broker loses no event.
//!
//! To add one more transport: implement `Transport` in `transport/`, name it in [`TransportOptions`], and let it
//! pass the contract suite in `tests/contract.rs`.

mod bus;
mod error;
mod hub;
mod sharing;
mod transport;

pub mod dead_letters;
pub mod deadlock;
pub mod graph;
pub mod inbox;
pub mod judge;
pub mod live;
pub mod locks;
pub mod ownership;
pub mod poke;
pub mod supervise;
pub mod waits;

pub use bus::{Bus, BusOptions, Consumer, Services};
pub use dead_letters::DeadLetters;
pub use error::BusError;
pub use inbox::{Delivery, Failure, Inbox};
pub use live::{Live, LiveEvent, LiveEvents};
pub use poke::Poker;
pub use sharing::Sharing;
pub use transport::jetstream::{
    Auth, FirstConnection, JetStreamOptions, Notice, NoticeKind, StreamOptions,
};
pub use transport::{TransportOptions, TransportStatus};
