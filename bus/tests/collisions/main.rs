//! Locks, ownership and rings of waits on a real store.

mod files;
mod history;
mod locks;
mod rings;
mod rounds;
mod world;
