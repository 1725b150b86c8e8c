//! Reads `cargo test` and every other user of libtest.

use ropewalk_schemas::attempt::TestCounts;

use super::{add, number_before};

/// Adds up the `test result:` lines. A binary that is aborted prints none, so that each test counts which it told to have failed.
pub(super) fn count(output: &str) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    let mut seen = false;
    // What failed in a binary that has told no result yet.
    let mut open = 0;
    for line in output.lines() {
        let line = line.trim();
        if is_begin(line) {
            add(&mut counts.failed, std::mem::take(&mut open));
        } else if let Some(result) = line.strip_prefix("test result: ") {
            seen = true;
            open = 0;
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
            seen = true;
            open += 1;
            let name = name.split(" - should panic").next().unwrap_or(name);
            counts.failed_names.push(name.to_owned());
        }
    }
    add(&mut counts.failed, open);
    seen.then_some(counts)
}

/// Knows the line that a binary begins with: `running 12 tests`.
fn is_begin(line: &str) -> bool {
    let number = line.strip_prefix("running ").and_then(|rest| {
        rest.strip_suffix(" tests")
            .or_else(|| rest.strip_suffix(" test"))
    });
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}
