//! Reads `cargo test` and every other user of libtest.

use ropewalk_schemas::attempt::TestCounts;

use super::number_before;

/// Adds up the `test result:` lines.
pub(super) fn count(output: &str) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    let mut seen = false;
    for line in output.lines() {
        let line = line.trim();
        if let Some(result) = line.strip_prefix("test result: ") {
            seen = true;
            counts.passed += number_before(result, " passed").unwrap_or(0);
            counts.failed += number_before(result, " failed").unwrap_or(0);
            counts.ignored += number_before(result, " ignored").unwrap_or(0);
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
