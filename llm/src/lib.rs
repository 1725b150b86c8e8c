//! Speaks to language models: one [`Model`] trait over Anthropic Messages, OpenAI-compatible chat, Responses,
//! Gemini and a script.
//!
//! What it is not: it keeps no conversation, runs no tool, stores no usage and never decides what to ask. It reads
//! no environment; a key is handed to [`provider::build`]. No type of a provider's wire format leaves its module.
//!
//! To add one more provider that speaks a known format: write a data file in `providers/` and list it in
//! [`provider`]. To add a format: write `<format>/body.rs` (request to JSON, pure), `<format>/decode.rs` (a
//! `Decoder` from events to deltas, pure) and a kind in [`provider`]; sending, time-outs, cancellation and error
//! classes come from `wire`, and repeating comes from [`retry`].

pub mod anthropic;
pub mod bounded;
pub mod cassette;
pub mod error;
pub mod gemini;
pub mod image;
pub mod message;
pub mod model;
pub mod openai;
pub mod price;
pub mod print;
pub mod provider;
pub mod reply;
pub mod request;
pub mod responses;
pub mod retry;
pub mod scripted;
mod wire;

pub use bounded::BoundedModel;
pub use cassette::{Cassette, CassetteError, Recorder};
pub use error::{ModelError, TimeoutKind};
pub use image::{Image, ImageError};
pub use message::{Block, Message, Role, ToolUse};
pub use model::Model;
pub use price::{Cost, Price, PriceTable};
pub use provider::{
    BuildError, DatedPrices, PriceSource, ProviderConfig, ProviderKind, build,
    shipped_key_variables,
};
pub use reply::{Delta, Reply, ReplyStream, StopReason, Usage, complete};
pub use request::{Effort, ModelRequest, ScriptKey, ToolChoice, ToolSpec};
pub use retry::{RetryPolicy, RetryingModel};
pub use scripted::{Script, ScriptedModel};
pub use wire::Limits;
