//! The raw limits that benchmarks compare with: the same work without Ropewalk.

pub(crate) mod git;
pub(crate) mod store;
pub(crate) mod stream;
