//! Reads `cargo nextest run`.

use ropewalk_schemas::attempt::TestCounts;

use super::{add, number_before};

/// Adds up the summaries, and reads the `PASS` and `FAIL` lines.
pub(super) fn count(output: &str) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    let mut seen = false;
    for line in output.lines().map(str::trim) {
        if let Some(result) = summary(line) {
            seen = true;
            let of = |word: &str| number_before(result, word).unwrap_or(0);
            add(&mut counts.passed, of(" passed"));
            for word in [" failed", " exec failed", " timed out"] {
                add(&mut counts.failed, of(word));
            }
            add(&mut counts.ignored, of(" skipped"));
        } else if let Some(name) = named(line, "PASS [") {
            counts.names.push(name);
        } else if let Some(name) = named(line, "FAIL [")
            && !counts.failed_names.contains(&name)
        {
            counts.failed_names.push(name);
        }
    }
    seen.then_some(counts)
}

fn summary(line: &str) -> Option<&str> {
    let (head, result) = line.strip_prefix("Summary [")?.split_once(" run:")?;
    (head.ends_with(" tests") || head.ends_with(" test")).then_some(result)
}

fn named(line: &str, word: &str) -> Option<String> {
    let (_, name) = line.strip_prefix(word)?.split_once(']')?;
    Some(name.trim().to_owned())
}
