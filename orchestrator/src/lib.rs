//! Holds the frame that agents run in: the `Agent` trait, runner, router, registry, schedule, questions, notices, supervision.
//!
//! What it is not: it knows no agent by name and decides nothing about ideas, specifications or builds. It
//! takes a delivery, shows it to the subscriber, and commits what comes back together with the delivery.
//!
//! To add an agent: implement [`Agent`] in the `agents` crate, name its event patterns in its [`Profile`], and
//! hand it to [`Frame::start`] in the binary. To add a timer: [`timers::set`] it and take
//! `schedule.due` of its family by [`timers::patterns`].

pub mod agent;
pub mod context;
pub mod deaths;
pub mod frame;
pub mod notices;
mod parts;
pub mod questions;
pub mod registry;
pub mod router;
mod runner;
pub mod schedule;
pub mod timers;
mod traced;

pub use agent::{Agent, AgentError, Profile, Schedule, Worker};
pub use context::{Context, Services};
pub use deaths::Suspects;
pub use frame::{Frame, FrameError};
pub use registry::Registry;
