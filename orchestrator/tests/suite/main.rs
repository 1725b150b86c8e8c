//! Runs agents in the frame over a real store and the embedded bus.

mod house;
mod questions;
mod running;
mod schedule;
mod waiting;
