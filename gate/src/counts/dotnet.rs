//! Reads `dotnet test` in its three ways of summing up.

use ropewalk_schemas::attempt::TestCounts;

use super::{most, sum};

/// How a summary begins that has its numbers in lines of their own.
const TOTAL: &str = "Total tests:";

/// Adds up the summaries of each way, one for each assembly where there are several. A run that sums up in two ways is counted once.
pub(super) fn count(output: &str) -> Option<TestCounts> {
    let lines: Vec<&str> = output.lines().map(str::trim).collect();
    let of_lines = |read: fn(&str) -> Option<TestCounts>| {
        let read_all = lines.iter().filter_map(|line| read(line));
        read_all.reduce(sum)
    };
    let blocks = lines.chunk_by(|_, next| !next.starts_with(TOTAL));
    let of_blocks = blocks.filter_map(of_console).reduce(sum);
    let ways = [of_lines(of_assembly), of_lines(of_terminal), of_blocks];
    let told = ways.into_iter().flatten();
    let mut counts = told.reduce(|one, other| most(one, &other))?;
    let names = |word: &str| -> Vec<String> {
        let names = lines.iter().filter_map(|line| named(line, word));
        names.collect()
    };
    counts.names = names("Passed ");
    counts.failed_names = names("Failed ");
    Some(counts)
}

/// `Passed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3, Duration: 5 ms - habits.dll (net8.0)`
fn of_assembly(line: &str) -> Option<TestCounts> {
    let rest = ["Passed!", "Failed!", "Skipped!"]
        .iter()
        .find_map(|word| line.strip_prefix(word))?;
    let rest = rest.trim_start().strip_prefix("- ")?;
    Some(TestCounts {
        passed: labelled(rest, "Passed:")?,
        failed: labelled(rest, "Failed:")?,
        ignored: labelled(rest, "Skipped:")?,
        ..TestCounts::default()
    })
}

/// `Test summary: total: 3, failed: 1, succeeded: 1, skipped: 1, duration: 1.2s`
fn of_terminal(line: &str) -> Option<TestCounts> {
    let rest = line.strip_prefix("Test summary: ")?;
    Some(TestCounts {
        passed: labelled(rest, "succeeded:")?,
        failed: labelled(rest, "failed:")?,
        ignored: labelled(rest, "skipped:")?,
        ..TestCounts::default()
    })
}

/// `Total tests: 3`, with `Passed: 2` and the others in lines of their own; where the host of the tests crashed, it is `Unknown`.
fn of_console(lines: &[&str]) -> Option<TestCounts> {
    let total = lines.first()?.strip_prefix(TOTAL)?.trim();
    if total != "Unknown" && total.parse::<u32>().is_err() {
        return None;
    }
    let value = |label: &str| {
        // What comes behind the time is of the next assembly.
        let mut summary = lines
            .iter()
            .take_while(|line| !line.starts_with("Total time:"));
        summary.find_map(|line| line.strip_prefix(label)?.trim().parse::<u32>().ok())
    };
    Some(TestCounts {
        passed: value("Passed:").unwrap_or(0),
        failed: value("Failed:").unwrap_or(0),
        ignored: value("Skipped:").unwrap_or(0),
        ..TestCounts::default()
    })
}

fn labelled(text: &str, label: &str) -> Option<u32> {
    let mut parts = text.split(", ");
    let part = parts.find_map(|part| part.trim().strip_prefix(label))?;
    part.trim().parse().ok()
}

/// `Passed Habits.Tests.Adds [5 ms]`
fn named(line: &str, word: &str) -> Option<String> {
    let (name, time) = line.strip_prefix(word)?.rsplit_once(" [")?;
    time.ends_with(']').then(|| name.to_owned())
}
