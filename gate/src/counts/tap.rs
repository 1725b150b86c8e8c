//! Reads the Test Anything Protocol, which `node --test` speaks when it is piped.

use ropewalk_schemas::attempt::TestCounts;

/// Counts the leaves: node's own totals when it prints them, the top-level points otherwise.
pub(super) fn count(output: &str) -> Option<TestCounts> {
    let version = output
        .lines()
        .any(|line| line.trim().starts_with("TAP version"));
    let plan = output.lines().any(is_plan);
    let points: Vec<Point<'_>> = output.lines().filter_map(point).collect();
    if !version && (!plan || points.is_empty()) {
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
    // A file or a suite is a point in node's output too; its totals count tests alone.
    if let Some(passed) = total(output, "# pass ") {
        counts.passed = passed;
        counts.failed = total(output, "# fail ").unwrap_or(0);
        counts.ignored =
            total(output, "# skipped ").unwrap_or(0) + total(output, "# todo ").unwrap_or(0);
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

fn total(output: &str, label: &str) -> Option<u32> {
    output
        .lines()
        .rev()
        .find_map(|line| line.trim().strip_prefix(label)?.trim().parse().ok())
}
