//! Decides what a build teaches. Pure (seed pipeline §6.3, design §12).

mod divergence;
mod effect;
mod failure;
mod metrics;

pub use divergence::{IDEAS, PlannedTask, divergences, interpreted};
pub use effect::{Use, prevailing, uses};
pub use failure::{FailureFacts, lesson_of, should_record_gotcha};
pub use metrics::{TaskFacts, metrics};
