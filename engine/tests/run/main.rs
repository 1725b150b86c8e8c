//! Runs whole jobs on a scripted model and a real store, and looks at what the model was told.

mod compaction;
mod early;
mod fallback;
mod journal;
mod paid;
mod progress;
mod rules;
mod sent_back;
mod submission;
mod support;
mod tools;
mod turns;
