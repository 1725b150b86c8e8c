//! Holds the rules of knowledge as pure functions (seed pipeline §6.3 and §10, design §12).

mod confidence;
mod duplicate;
mod hold_out;
mod promotion;
mod refusal;

pub use confidence::{
    Effect, FAILURE_SEEN, MERELY_TOLD, TaskOutcome, after_confirmation, after_effect,
    after_sighting, effect,
};
pub use duplicate::{Duplicate, duplicate};
pub use hold_out::holds_out;
pub use promotion::may_be_promoted;
pub use refusal::{LONGEST, LONGEST_TOPIC, MOST_NAMED, Refusal, is_lesson, refusal, teaches};
