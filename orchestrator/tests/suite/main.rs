//! Runs agents in the frame over a real store and the embedded bus.

mod deaths;
mod notices;
mod parts;
mod questions;
mod running;
mod schedule;
mod waiting;
mod world;
