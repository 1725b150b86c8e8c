//! Checks a candidate on a clean checkout; only the gate writes `complete`.

pub mod counts;
pub mod judge;
pub(crate) mod run;
pub mod scope;
pub mod stubs;
pub mod tamper;
pub mod weakened;
