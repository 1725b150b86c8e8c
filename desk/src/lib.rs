//! Holds what people do and see: the verbs that record what they wish, and the views behind each `list` and `show`.
//!
//! What it is not: it has no surface. The terminal and whatever else people use take arguments and show what comes back;
//! here is the one implementation for all of them. It runs no agent either: a verb commits what a person wants as an
//! event, and whoever takes that does the rest.
//!
//! To add a verb: write a function that takes a `Context` and commits one change set, in the file of its noun. An agent
//! that does the same on an answer takes the function that adds to a change set. To add a view: a struct that serialises to
//! what `--json` prints, and a function that loads it, in the file of its noun below `views/`.

mod advice;

pub mod alerts;
pub mod attachments;
pub mod builds;
pub mod comments;
pub mod dead_letters;
pub mod halt;
pub mod health;
pub mod ideas;
pub mod knowledge;
pub mod length;
pub mod people;
pub mod phones;
pub mod questions;
pub mod specifications;
pub mod subscribers;
pub mod views;
