//! Reads Python's `unittest`, plain and with `-v`.

use ropewalk_schemas::attempt::TestCounts;

use super::add;

/// What an outcome calls a failure.
const FAILURES: [&str; 3] = ["failures", "errors", "unexpected successes"];

/// Adds up the summaries: `Ran 3 tests in 0.001s`, and `OK` or `FAILED (failures=1)` below it.
pub(super) fn count(output: &str) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    let mut seen = false;
    let mut lines = output
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let mut verbose = Vec::new();
    let mut dots = 0;
    while let Some(line) = lines.next() {
        if let Some(ran) = ran(line) {
            seen = true;
            let outcome = outcome(lines.clone());
            note(&mut counts, (ran, std::mem::take(&mut dots)), outcome);
        } else if let Some(of_line) = marks(line) {
            dots += of_line;
        } else if let Some(name) = heading(line) {
            if !counts.failed_names.contains(&name) {
                counts.failed_names.push(name);
            }
        } else {
            verbose.push(line);
        }
    }
    counts.names = passed(&verbose);
    seen.then_some(counts)
}

/// Reads the number of `Ran 3 tests in 0.001s`.
fn ran(line: &str) -> Option<u32> {
    let (number, rest) = line.strip_prefix("Ran ")?.split_once(" test")?;
    rest.contains(" in ").then(|| number.parse().ok()).flatten()
}

/// Finds the outcome of a run below its number, where a thread or what is cleared up may write something in between.
fn outcome<'a>(below: impl Iterator<Item = &'a str> + Clone) -> &'a str {
    let mut below = below.take_while(|line| ran(line).is_none());
    let tells_failures = |line: &str| FAILURES.iter().any(|label| number(line, label) > 0);
    let failed = below
        .clone()
        .find(|line| line.starts_with("FAILED (") && tells_failures(line));
    let passed = below
        .clone()
        .find(|line| line.starts_with("OK (") || line.starts_with("NO TESTS RAN ("));
    failed
        .or(passed)
        .or_else(|| below.next())
        .unwrap_or_default()
}

/// Reads the number of `label` in an outcome like `FAILED (failures=1, errors=1)`.
fn number(outcome: &str, label: &str) -> u32 {
    let inner = outcome.split_once('(').map_or("", |(_, inner)| inner);
    let parts = inner.trim_end_matches(')').split(", ");
    let values = parts.filter_map(|part| part.split_once('='));
    values
        .filter(|(name, _)| *name == label)
        .filter_map(|(_, number)| number.parse::<u32>().ok())
        .fold(0, u32::saturating_add)
}

/// Counts the tests that passed in a line of marks: `..s.F`; none where it is no such line.
fn marks(line: &str) -> Option<u32> {
    let is_mark = |letter: char| ".FEsxu".contains(letter);
    let dots = line.matches('.').count();
    line.chars()
        .all(is_mark)
        .then(|| u32::try_from(dots).unwrap_or(u32::MAX))
}

/// One test may fail in several of its parts, so that there can be more failures than tests. A module or a class that is
/// skipped as a whole is skipped once more than anything of it ran: there, the marks say how many passed.
fn note(counts: &mut TestCounts, (ran, dots): (u32, u32), outcome: &str) {
    let (mut failed, mut ignored) = (0, 0);
    for label in FAILURES {
        add(&mut failed, number(outcome, label));
    }
    for label in ["skipped", "expected failures"] {
        add(&mut ignored, number(outcome, label));
    }
    add(&mut counts.failed, failed);
    add(&mut counts.ignored, ignored);
    let passed = ran.saturating_sub(failed.saturating_add(ignored));
    let passed = if failed == 0 {
        passed.max(dots.min(ran))
    } else {
        passed
    };
    add(&mut counts.passed, passed);
}

/// Reads `FAIL: test_adds (test_sums.Sums.test_adds)`; what names a part of the test is left out.
fn heading(line: &str) -> Option<String> {
    let rest = line
        .strip_prefix("FAIL: ")
        .or_else(|| line.strip_prefix("ERROR: "))?;
    let end = rest.find(')')?;
    Some(rest[..=end].to_owned())
}

/// Names what `-v` says is ok; a test with a text of its own says so in the line below its name.
fn passed(lines: &[&str]) -> Vec<String> {
    let mut names = Vec::new();
    let is_name = |text: &str| text.ends_with(')') && text.contains(" (") && !text.contains("...");
    for (position, line) in lines.iter().enumerate() {
        let Some(text) = line.strip_suffix(" ... ok") else {
            continue;
        };
        let above = position.checked_sub(1).and_then(|above| lines.get(above));
        match above {
            Some(above) if !is_name(text) && is_name(above) => names.push((*above).to_owned()),
            _ => names.push(text.to_owned()),
        }
    }
    names
}
