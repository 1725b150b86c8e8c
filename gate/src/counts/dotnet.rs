//! Reads `dotnet test` in its three ways of summing up.

use ropewalk_schemas::attempt::TestCounts;

/// Adds up the summaries, one for each assembly where there are several.
pub(super) fn count(output: &str) -> Option<TestCounts> {
    let lines = || output.lines().map(str::trim);
    let mut counts = lines()
        .filter_map(|line| of_assembly(line).or_else(|| of_terminal(line)))
        .reduce(|one, other| sum(&one, &other))
        .or_else(|| of_console(output))?;
    counts.names = lines().filter_map(|line| named(line, "Passed ")).collect();
    counts.failed_names = lines().filter_map(|line| named(line, "Failed ")).collect();
    Some(counts)
}

fn sum(one: &TestCounts, other: &TestCounts) -> TestCounts {
    TestCounts {
        passed: one.passed + other.passed,
        failed: one.failed + other.failed,
        ignored: one.ignored + other.ignored,
        ..TestCounts::default()
    }
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

/// `Total tests: 3`, with `Passed: 2` and the others in lines of their own.
fn of_console(output: &str) -> Option<TestCounts> {
    let value = |label: &str| {
        output.lines().find_map(|line| {
            let number = line.trim().strip_prefix(label)?;
            number.trim().parse::<u32>().ok()
        })
    };
    value("Total tests:")?;
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
