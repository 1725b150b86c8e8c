//! Decides, purely: what may run and in which order, what a failure leads to, what becomes of the build.

pub mod budget;
pub(crate) mod commit_message;
pub mod counts;
pub mod failure;
pub mod isolation;
pub mod order;
pub mod readiness;
pub mod step;
pub mod validation;

#[cfg(test)]
pub(crate) mod fixture;
