//! Real faults on the program itself: each test makes sure that its fault happened, that the work went on after it, and
//! that nothing was lost or done twice.
//!
//! A trial begins with a copy of one approved project, whose build has twelve small tasks. The tests whose names begin
//! with `soak_` do a few rounds here and as many as `ROPEWALK_SOAK_…` says in `./check --soak`; they print the counts.

#![expect(clippy::print_stdout, reason = "the long tier prints its counts")]

#[path = "../scenarios/picture.rs"]
#[expect(dead_code, reason = "what a rehearsal needs is not needed here")]
mod picture;
#[path = "../scenarios/project.rs"]
mod project;
#[path = "../scenarios/running.rs"]
mod running;

mod ledger;
mod sleepy;
mod trial;

mod archives;
mod broker;
mod clocks;
mod deaths;
mod disks;
mod events;
mod halting;
mod offers;
mod phones;
mod processes;
mod seams;
mod storage;
mod surfaces;
mod takeover;
mod team;
mod telling;
