//! Checks candidates and whole builds on clean checkouts: commands, counts of tests, scope, stubs, what was weakened.
//!
//! What it is not: no agent. It reads no store, asks no model and no person, and writes nothing but evidence, which
//! whoever asked commits. Only what passed here may be called complete.
//!
//! To read one more test runner: write `counts/<runner>.rs` with a function from text to counts, and add its row to
//! `counts.rs`. To judge one more property of a difference: write a pure function in a file of `difference/` and call it where
//! `difference.rs` looks at the lines.

pub mod candidate;
pub mod checks;
mod control;
pub mod counts;
mod difference;
mod error;
pub mod install;
pub mod judge;
pub mod line;
pub mod obstacle;
pub mod packages;
mod parent;
pub mod project;
pub mod proof;
pub mod runner;
pub mod shell;
mod site;
pub mod trial;
pub mod whole;

pub use difference::{emptiness, kept_files, protected, scope, stubs};
pub use error::GateError;
