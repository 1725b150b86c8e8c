//! Locks, ownership and cycles of waits on a real store.

mod cycles;
mod files;
mod history;
mod locks;
mod rounds;
mod world;
