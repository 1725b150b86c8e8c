//! Reads `cargo nextest run`.

use ropewalk_schemas::attempt::TestCounts;

use super::number_before;

/// Reads the summary and the `PASS` lines.
pub(super) fn count(output: &str) -> Option<TestCounts> {
    let summary = output
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("Summary [") && line.contains("tests run:"))
        .or_else(|| {
            output
                .lines()
                .map(str::trim)
                .find(|line| line.starts_with("Summary [") && line.contains("test run:"))
        })?;
    let (_, result) = summary.split_once("run:")?;
    let names = output
        .lines()
        .map(str::trim)
        .filter_map(|line| line.strip_prefix("PASS ["))
        .filter_map(|line| line.split_once(']'))
        .map(|(_, name)| name.trim().to_owned())
        .collect();
    Some(TestCounts {
        passed: number_before(result, " passed").unwrap_or(0),
        failed: number_before(result, " failed").unwrap_or(0)
            + number_before(result, " timed out").unwrap_or(0),
        ignored: number_before(result, " skipped").unwrap_or(0),
        names,
    })
}
