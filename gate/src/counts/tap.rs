//! Reads the Test Anything Protocol, which `node --test` speaks when it is piped.

use ropewalk_schemas::attempt::TestCounts;

use super::sum;

/// How a run begins; some harnesses leave it out.
const VERSION: &str = "TAP version";

/// Adds up the runs.
pub(super) fn count(output: &str) -> Option<TestCounts> {
    let lines: Vec<&str> = output.lines().collect();
    let runs = lines.chunk_by(|_, next| !next.starts_with(VERSION));
    runs.filter_map(of_run).reduce(sum)
}

/// Counts the leaves of a run: its own totals where it says what it is and prints them, the top-level points otherwise.
fn of_run(lines: &[&str]) -> Option<TestCounts> {
    let has_version = lines.iter().any(|line| line.trim().starts_with(VERSION));
    let has_plan = lines.iter().any(|line| is_plan(line));
    let points: Vec<Point<'_>> = lines.iter().filter_map(|line| point(line)).collect();
    if !has_version && (!has_plan || points.is_empty()) {
        return None;
    }
    let mut counts = TestCounts::default();
    for point in points {
        match point {
            Point::Skipped => counts.ignored += 1,
            Point::Passed(name) => {
                counts.passed += 1;
                counts.names.push(name.to_owned());
            }
            Point::Failed(name) => {
                counts.failed += 1;
                counts.failed_names.push(name.to_owned());
            }
        }
    }
    // A file or a suite is a point in node's output too; its totals count tests alone. They come last, behind what tests print that
    // looks like them, and no total takes back a point that failed.
    if let Some(passed) = total(lines, "# pass ").filter(|_| has_version) {
        let of = |label: &str| total(lines, label).unwrap_or(0);
        let failed = of("# fail ").saturating_add(of("# cancelled "));
        counts.passed = passed;
        counts.failed = counts.failed.max(failed);
        counts.ignored = of("# skipped ").saturating_add(of("# todo "));
    }
    Some(counts)
}

enum Point<'a> {
    Passed(&'a str),
    Failed(&'a str),
    Skipped,
}

fn is_plan(line: &str) -> bool {
    line.strip_prefix("1..").is_some_and(|rest| {
        rest.split_whitespace()
            .next()
            .is_some_and(|last| last.parse::<u32>().is_ok())
    })
}

fn point(line: &str) -> Option<Point<'_>> {
    let (failed, rest) = match line.strip_prefix("not ok") {
        Some(rest) => (true, rest),
        None => (false, line.strip_prefix("ok")?),
    };
    let rest = rest
        .strip_prefix(' ')?
        .trim_start_matches(|letter: char| letter.is_ascii_digit());
    let (name, directive) = match rest.split_once(" # ") {
        Some((name, directive)) => (name, directive.to_ascii_uppercase()),
        None => (rest, String::new()),
    };
    if directive.starts_with("SKIP") || directive.starts_with("TODO") {
        return Some(Point::Skipped);
    }
    let name = name.trim().trim_start_matches("- ").trim();
    Some(if failed {
        Point::Failed(name)
    } else {
        Point::Passed(name)
    })
}

fn total(lines: &[&str], label: &str) -> Option<u32> {
    lines
        .iter()
        .rev()
        .find_map(|line| line.trim().strip_prefix(label)?.trim().parse().ok())
}
