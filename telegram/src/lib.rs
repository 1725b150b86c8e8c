//! Brings the work to a phone: a bot in Telegram that tells people what happens, and takes what they say and press.
//!
//! What it is not: it decides nothing. What is said and pressed becomes a verb of `desk`, as from every other surface; what is
//! told are notices of the orchestrator. Nobody but those who are named or linked, in a chat that is, gets an answer.
//!
//! To add a command: its row in `commands.rs`, and what it does in `orders.rs`, or where it is about a build in `builds.rs`.

mod api;
mod bot;
mod builds;
mod client;
mod commands;
mod drafts;
mod files;
mod keyboard;
mod left;
mod orders;
mod port;
mod press;
mod replies;
mod starting;
mod styled;
mod surface;
mod talk;
mod updates;
mod words;

pub use api::ApiError;
pub use bot::Bot;
pub use bot::hook::{UpdateError, UpdateHook};
pub use client::{ClientError, HookStanding, TelegramClient};
pub use left::LeftUpdates;
pub use port::TelegramPort;
pub use surface::Parts;
