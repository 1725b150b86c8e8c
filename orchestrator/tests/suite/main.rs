//! Runs agents in the frame over a real store and the embedded bus.

mod deaths;
mod house;
mod notices;
mod parts;
mod questions;
mod running;
mod schedule;
mod waiting;
