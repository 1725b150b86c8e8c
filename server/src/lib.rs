//! Serves the verbs and views of `desk` over HTTP: one more surface beside the terminal, for pages and other programs.
//!
//! What it is not: it decides nothing that the terminal would not, runs no agent, and holds no truth but who is logged
//! in. Switched off, or lost for an hour, it changes nothing about the work.
//!
//! To add a resource: a file below `api/` with its handlers, each with the line that documents it, its row in `api.rs`,
//! its schemas in `document.rs`, and a test in `tests/http`. What it does and shows belongs into `desk`.
//!
//! To add a page: a file below `pages/` with its handlers, its row in `pages.rs`, its template below `templates/`, and a
//! test in `tests/http`. It shows what a view of `desk` holds, in the words of the terminal.

mod api;
mod counters;
mod document;
mod guard;
mod health;
mod hook;
mod idempotency;
mod listen;
mod login;
mod page;
mod pages;
mod partial_answers;
mod problem;
mod shared;
mod stream;
mod take;
mod traced;
mod wanted_events;

pub use document::{schema, schema_names};
pub use hook::{Hook, HookError};
pub use listen::{Address, Door, ListenError, Server};
pub use shared::{Capacity, Changes, Checkup, Folder, Options};
