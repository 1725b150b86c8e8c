//! Builds approved plans with a scripted model, a real store and real git.
//!
//! The target `over_http` runs some of them once more, with HTTP in between.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what cannot be set up or found has to fail the test right there"
)]

mod attempts;
mod branches;
mod plans;
mod steering;
mod transport;
mod world;
