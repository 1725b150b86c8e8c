//! Tasks and builds beside and after each other.

mod against;
mod chain;
mod deadlock;
mod forty_tasks;
pub(crate) mod lifecycle;
mod several_files;
mod side_by_side;
mod too_late;
pub(crate) mod two_builds;
