//! Keeps workers from colliding: file locks, ownership of files by builds, and the wait-for graph with its detector.
//!
//! What it is not: it holds no state of its own. Locks, owners and waits are rows of the store; this crate says which
//! changes take, renew and end them, who waits for whom, and which wait has to end so that a cycle does.
//!
//! To add one more thing to wait for: give it a variant in `schemas::wait::Resource`, say in `graph.rs` whether it is a
//! sink, and write the wait in the change set that makes somebody wait.

pub mod deadlock;
pub mod graph;
pub mod judge;
pub mod locks;
pub mod ownership;
pub mod waits;
