//! Lets an attempt ask for files that its task did not declare.

use async_trait::async_trait;
use ropewalk_schemas::RepoPath;

/// Grants files to an attempt; it may take as long as their holders need.
#[async_trait]
pub trait FileGrants: Send + Sync {
    /// Asks for all of `files` or none.
    async fn request(&self, files: &[RepoPath], reason: &str) -> GrantReply;
}

/// Says what came of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantReply {
    /// The files may be written.
    Granted {
        /// Others changed them since the attempt began, and the tree of the attempt stands on that now.
        moved: bool,
    },
    /// The files may not be written; the model reads why.
    Denied(String),
    /// The attempt must stop now, for this reason.
    Ended(String),
}

/// Says whether a path is a test by the customs of the common languages.
pub(super) fn is_test(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let name = parts.next().unwrap_or_default().to_lowercase();
    let stem = name.split('.').next().unwrap_or_default();
    let in_tests = parts.any(|part| {
        matches!(
            part.to_lowercase().as_str(),
            "test" | "tests" | "__tests__" | "spec" | "specs" | "testdata"
        )
    });
    in_tests
        || stem.starts_with("test_")
        || stem.ends_with("_test")
        || stem.ends_with("_tests")
        || matches!(stem, "test" | "tests" | "conftest")
        || name.contains(".test.")
        || name.contains(".spec.")
}
