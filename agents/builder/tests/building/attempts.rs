//! One task: what its attempts do, how they fail, and what the gate takes.

mod asking;
mod budget;
mod compaction;
mod crash;
mod evidence;
mod failures;
mod gate;
mod gate_rules;
mod history;
mod installs;
mod liars;
mod mending;
mod outage;
mod reach;
mod rules;
mod setup;
mod step_by_step;
mod stuck;
mod told;
mod watched;
