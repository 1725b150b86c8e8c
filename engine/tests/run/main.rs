//! Runs whole jobs on a scripted model and a real store, and looks at what the model was told.
//!
//! The target `over_http` runs the same tests once more, with HTTP in between.

mod called;
mod compaction;
mod early;
mod fallback;
mod in_process;
mod journal;
mod paid;
mod progress;
mod rules;
mod sent_back;
mod submission;
mod support;
mod tools;
mod transport;
mod turns;
