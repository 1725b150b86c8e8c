//! Decides about stuck tasks, contested files, orphaned work and answers. Pure (seed pipeline §8.2, design §15).

mod answer;
mod conflict;
mod knot;
mod spread;
mod stuck;

pub use answer::{
    BuildReply, ChangeReply, StuckReply, TaskReply, build_reply, change_reply, stuck_reply,
    task_reply,
};
pub use conflict::{Claimant, Ruling, conflict};
pub use knot::{Member, hands_over};
pub use spread::{Load, spread};
pub use stuck::{Stuck, StuckLimits, stuck};
