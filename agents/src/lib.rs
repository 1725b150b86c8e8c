//! Holds the agents that do the work: each one role on the frame of the `orchestrator` crate.
//!
//! What it is not: agents never import each other and never talk to each other except by events. They own no
//! storage, no transport and no child process; they load context, decide by pure functions and say what changes.
//!
//! To add an agent: write `<name>.rs` beside `<name>/` with `context.rs` (load), `decide.rs` (pure) and `act.rs`
//! (effects), implement `orchestrator::Agent` for it, and wire it in the `cli` crate.

mod failure;
pub mod idea_folder;
pub mod ideation;
pub mod improvement;
mod model_question;
pub mod monitor;
pub mod places;
pub mod pm;
pub mod repository;
pub mod specification;
mod withdrawal;
