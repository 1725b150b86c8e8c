//! Builds approved plans with a scripted model, a real store and real git.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what cannot be set up or found has to fail the test right there"
)]

mod amending;
mod budget;
mod chain;
mod consent;
mod control;
mod crash;
mod deadlock;
mod evidence;
mod failures;
mod forty_tasks;
mod gate;
mod gate_rules;
mod giving_up;
mod house;
mod installs;
mod landing;
mod liars;
mod lifecycle;
mod listener;
mod meeting;
mod mending;
mod merging;
mod milestones;
mod outage;
mod people;
mod publishing;
mod reach;
mod reopening;
mod script;
mod side_by_side;
mod step_by_step;
mod stuck;
mod two_builds;
mod verdicts;
mod whole;
