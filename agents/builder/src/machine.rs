//! The lives of tasks and builds as two pure machines (design §6): states that carry what belongs to them, inputs, and
//! what follows from each.
//!
//! `apply` is total: an input that a state has no use for is refused by an error that names both, and nothing changes.
//! The records of the store are the written form of the states (`State::of`, `State::write`). Effects are data, which
//! `effects` turns into the change set that stores the record. What has to happen outside the store, such as ending
//! the process of an attempt, follows from the stored state alone, so that a crash after the commit loses nothing.
//!
//! `effects` alone calls `apply`. Whoever else changes a record does so by `apply_alone`, which takes no input that brings more.
//!
//! To add an input: a variant of `Input`, what it is called in `Input::wish`, its arm in `apply`. `tests/histories` draws the
//! diagram in `docs/machine.md` from there, and fails until its random histories play the input.

pub mod build;
pub mod effect;
pub mod task;

pub use effect::{Ask, Effect, TopicQuestion};
pub use ropewalk_schemas::illegal::IllegalRequest;

/// Why an input that brings more than a record is refused where nobody would store it.
const NOT_ALONE: &str = "what it brings beside its record would be lost";
