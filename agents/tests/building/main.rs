//! Builds approved plans with a scripted model, a real store and real git.

mod control;
mod crash;
mod failures;
mod house;
mod liars;
mod lifecycle;
mod side_by_side;
