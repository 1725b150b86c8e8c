//! Locks, ownership and rings of waits on a real store.

mod cycles;
mod files;
mod history;
mod locks;
mod rounds;
mod world;
