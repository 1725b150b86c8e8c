//! The lives of tasks and builds as two pure machines (design §6): states that carry what belongs to them, inputs, and
//! what follows from each.
//!
//! `apply` is total: an input that a state has no use for is refused by an error that names both, and nothing changes.
//! The records of the store are the written form of the states (`State::of`, `State::write`). Effects are data, which
//! `effects` turns into the change set that stores the record. What has to happen outside the store, such as ending
//! the process of an attempt, follows from the stored state alone, so that a crash after the commit loses nothing.
//!
//! To add an input: a variant of `Input`, what it is called in `Input::wish`, its arm in `apply`; the diagram in
//! `docs/machine.md` and the random histories of `tests/histories` follow from there.

pub mod build;
pub mod effect;
pub mod task;

pub use effect::{Ask, Effect, TopicQuestion};
pub use ropewalk_schemas::illegal::IllegalRequest;
