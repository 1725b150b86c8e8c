//! Names a checkout that cannot be used any more: who replaces it notes it with the clone, for whoever tells people.

use std::path::PathBuf;

/// A checkout that is never used again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retirement {
    /// Where it was, and where its replacement is.
    pub checkout: PathBuf,
    /// Where it lies now, for people to look at and to remove.
    pub place: PathBuf,
    /// What stood against its use.
    pub reason: String,
}
