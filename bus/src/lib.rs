//! Delivers events to subscribers.
//!
//! Delivery: the store holds the truth in one delivery row per event and subscriber; this crate hands those rows out
//! through an [`Inbox`], in the order of each entity, and closes them together with the effects of their handling.
//! A transport only wakes: `embedded` follows the commits of this process, `jetstream` carries the events over NATS.
//! Where several processes take the same subscribers, each claims a row before it hands it out (`sharing`).
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
pub mod inbox;
pub mod live;
pub mod overheard;
pub mod poke;
pub mod sockets;
pub mod supervise;
pub mod tail;

pub use bus::{Bus, BusOptions, Consumer, Services};
pub use dead_letters::{DeadLetter, DeadLetters, alert_cause};
pub use error::BusError;
pub use inbox::{Delivery, Failure, Inbox};
pub use live::{LiveChannel, LiveEvent, LiveEvents};
pub use overheard::LiveRelay;
pub use poke::Poker;
pub use sharing::SharingOptions;
pub use sockets::{SocketError, SocketHome};
pub use tail::{Tail, TailError, TailEvents};
pub use transport::jetstream::{
    Auth, FirstConnection, JetStreamOptions, Notice, NoticeKind, StreamOptions,
};
pub use transport::{TransportOptions, TransportStatus};
