//! Checks a candidate on a clean checkout; only the gate writes `complete`.

pub mod checks;
pub mod counts;
pub(crate) mod house;
pub(crate) mod install;
pub mod judge;
pub(crate) mod run;
pub mod scope;
pub mod stubs;
pub mod tamper;
pub mod weakened;
pub(crate) mod whole;
