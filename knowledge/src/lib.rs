//! Remembers what was learned: records lessons once, finds those that apply to a file, and weighs their effect.
//!
//! What it is not: it asks no model, emits no event and commits nothing. Every function that changes something
//! returns a [`ropewalk_store::ChangeSet`] and the payloads of the events that belong to it, so that an agent
//! commits them together with its delivery.
//!
//! To add one more step to the life of an item: write its rule in [`decide`] as a pure function with a table test,
//! and its change set in [`lifecycle`].

pub mod applies;
pub mod decide;
pub mod draft;
pub mod inject;
pub mod lifecycle;
pub mod record;
pub mod retrieve;
pub mod similarity;
pub mod telling;
pub mod wishes;

pub use applies::{Fit, fit, generalise};
pub use decide::{Effect, Refusal, is_lesson, teaches};
pub use draft::Draft;
pub use inject::{InjectionResult, PlannedInjection, inject, settle};
pub use lifecycle::{Change, confirm, deprecate, promote, reinforce};
pub use record::{RecordOutcome, RecordResult, record};
pub use retrieve::{patterns, retrieve, search};
pub use telling::{is_of_counts, is_output, telling_line};
pub use wishes::{Wish, wishes};
