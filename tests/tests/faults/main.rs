//! Real faults on the program itself: each test makes sure that its fault happened, that the work went on after it, and
//! that nothing was lost or done twice.
//!
//! A trial begins with a copy of one approved project, whose build has twelve small tasks.

#[path = "../scenarios/picture.rs"]
#[expect(dead_code, reason = "what a rehearsal needs is not needed here")]
mod picture;
#[path = "../scenarios/project.rs"]
mod project;
#[path = "../scenarios/running.rs"]
#[expect(dead_code, reason = "what a rehearsal needs is not needed here")]
mod running;

mod ledger;
mod trial;

mod seams;
