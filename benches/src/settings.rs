//! Says how to measure, and how the processes of a benchmark call each other.

use std::time::Duration;

/// How to measure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings {
    /// The benchmarks by name; empty means all.
    pub(crate) names: Vec<String>,
    /// How long each side of a ratio is measured.
    pub(crate) time: Duration,
    /// How often each benchmark runs; the run with the median ratio is shown.
    pub(crate) repeat: usize,
    /// Whether to print JSON instead of a table.
    pub(crate) json: bool,
}

/// The word with which this program calls itself.
pub(crate) const CHILD: &str = "--child";

/// The line that a child prints when it is ready.
pub(crate) const READY: &str = "ready";
