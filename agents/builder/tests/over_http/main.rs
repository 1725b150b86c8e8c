//! Runs those tests of `building` once more in which a model meets people and the gate, with the model that they script behind a
//! provider that is asked over HTTP: in one wire format or another, as the script has it.
//!
//! The others would take minutes and hold no more of it: how a conversation goes is what the engine's tests hold over
//! HTTP, and what comes of its end is the same however the model was asked.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what cannot be set up or found has to fail the test right there"
)]

#[path = "../building/attempts/asking.rs"]
mod asking;
#[path = "../building/steering/hearing.rs"]
mod hearing;
#[path = "../building/attempts/mending.rs"]
mod mending;
#[path = "../building/attempts/rules.rs"]
mod rules;
mod transport;
#[path = "../building/attempts/watched.rs"]
mod watched;
#[expect(
    dead_code,
    unused_imports,
    reason = "the tests of `building` use all of it"
)]
mod world;
