//! Decides about stuck tasks, contested files, and orphaned work. Pure (seed pipeline §8.2, design §15).

mod conflict;
mod ending;
mod handover;
mod spread;
mod stuck;

pub use conflict::{Claimant, Ruling, conflict};
pub use ending::stands_to_be_retried;
pub use handover::{Member, hands_over};
pub use spread::{Load, spread};
pub use stuck::{StuckAction, StuckLimits, stuck};
