//! Decides, purely: what may run and in which order, what a failure leads to, what becomes of the build.

pub mod amend;
pub mod answer;
pub mod classify;
pub mod counts;
pub mod failure;
pub mod install;
pub mod order;
pub mod purse;
pub mod readiness;
pub mod step;
pub mod validation;

#[cfg(test)]
pub(crate) mod fixture;
