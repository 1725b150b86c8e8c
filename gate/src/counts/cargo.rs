//! Reads `cargo test` and every other user of libtest.

use ropewalk_schemas::attempt::TestCounts;

use super::{add, number_before};

/// Adds up the `test result:` lines.
pub(super) fn count(output: &str) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    let mut seen = false;
    for line in output.lines() {
        let line = line.trim();
        if let Some(result) = line.strip_prefix("test result: ") {
            seen = true;
            let of = |word: &str| number_before(result, word).unwrap_or(0);
            add(&mut counts.passed, of(" passed"));
            add(&mut counts.failed, of(" failed"));
            add(&mut counts.ignored, of(" ignored"));
        } else if let Some(name) = line
            .strip_prefix("test ")
            .and_then(|test| test.strip_suffix(" ... ok"))
        {
            // A test that should panic says so behind its name; the name alone tells it again.
            let name = name.split(" - should panic").next().unwrap_or(name);
            counts.names.push(name.to_owned());
        } else if let Some(name) = line
            .strip_prefix("test ")
            .and_then(|test| test.strip_suffix(" ... FAILED"))
        {
            let name = name.split(" - should panic").next().unwrap_or(name);
            counts.failed_names.push(name.to_owned());
        }
    }
    seen.then_some(counts)
}
