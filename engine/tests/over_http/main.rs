//! Runs the tests of `run` once more, with the model that they script behind a provider that is asked over HTTP: in one
//! wire format or another, as the script has it.
//!
//! What is not here: `in_process`, which says why, and `fallback` and `paid`, which ask over HTTP by themselves.

#[path = "../run/called.rs"]
mod called;
#[path = "../run/compaction.rs"]
mod compaction;
#[path = "../run/early.rs"]
mod early;
mod formats;
#[path = "../run/journal.rs"]
mod journal;
#[path = "../run/progress.rs"]
mod progress;
#[path = "../run/rules.rs"]
mod rules;
#[path = "../run/sent_back.rs"]
mod sent_back;
#[path = "../run/submission.rs"]
mod submission;
#[path = "../run/support.rs"]
mod support;
#[path = "../run/tools.rs"]
mod tools;
mod transport;
#[path = "../run/turns.rs"]
mod turns;
