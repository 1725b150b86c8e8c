//! The harness of the workspace's tests: real servers, started for one test and gone with it.
//!
//! A crate's integration tests take this crate as a dev-dependency and start what they need from
//! [`servers`]. It deliberately knows nothing of Ropewalk's own crates, so that every one of them
//! can use it, and it never skips: a server that cannot be started is an error naming its cure.
//!
//! To add one more server, say in [`servers`] where its program lies, which arguments make it
//! choose its own port, and how the line reads that names this port; have `./check` install it.

pub mod bombs;
pub mod fuzz;
pub mod labels;
pub mod likeness;
pub mod namespaces;
mod process;
pub mod program;
pub mod repository;
pub mod routes;
mod server_error;
pub mod servers;
pub mod soak;
