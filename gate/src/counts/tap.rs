//! Reads the Test Anything Protocol, which `node --test` speaks when it is piped.

use std::collections::BTreeMap;
use std::mem;

use ropewalk_schemas::attempt::TestCounts;

use super::sum;

/// How a run begins; some harnesses leave it out.
const VERSION: &str = "TAP version";

/// Adds up the runs.
pub(super) fn count(output: &str) -> Option<TestCounts> {
    let mut runs = Vec::new();
    let mut open = Run::default();
    for line in output.lines() {
        if is_version(line) && !open.has_part(line) {
            runs.push(mem::replace(&mut open, Run::begin(line)));
        } else {
            open.take(line);
        }
    }
    runs.push(open);
    runs.iter().filter_map(Run::counts).reduce(sum)
}

/// A run, as far as it has been read.
#[derive(Default)]
struct Run<'a> {
    lines: Vec<&'a str>,
    has_version: bool,
    /// How far it is indented: as its version, or as its outermost plan where it tells none. Whoever passes a run on may indent the whole
    /// of it; what is indented more is a part of it.
    level: Option<usize>,
    /// How many points it plans itself.
    planned: Option<usize>,
    /// How many points there are of each indentation.
    points: BTreeMap<usize, usize>,
}

impl<'a> Run<'a> {
    fn begin(version: &'a str) -> Self {
        Self {
            lines: vec![version],
            has_version: true,
            level: Some(indentation(version)),
            ..Self::default()
        }
    }

    fn take(&mut self, line: &'a str) {
        let indented = indentation(line);
        if let Some(more) = plan(line) {
            let is_outer = self.level.is_none_or(|level| indented < level);
            if is_outer && !self.has_version {
                self.level = Some(indented);
                self.planned = None;
            }
            if self.level == Some(indented) {
                self.planned = Some(self.planned.unwrap_or(0).saturating_add(more));
            }
        }
        if point(line).is_some() {
            *self.points.entry(indented).or_default() += 1;
        }
        self.lines.push(line);
    }

    /// Says whether a version is that of a part: it is indented more, and points of the run itself are still to come.
    fn has_part(&self, version: &str) -> bool {
        let is_deeper = self.level.is_some_and(|level| indentation(version) > level);
        is_deeper && !self.is_over()
    }

    fn is_over(&self) -> bool {
        let Some((level, planned)) = self.level.zip(self.planned) else {
            return false;
        };
        let points = self.points.range(..=level).map(|(_, number)| number);
        points.sum::<usize>() >= planned
    }

    /// Counts its leaves: its own totals where it says what it is and prints them, the top-level points otherwise.
    fn counts(&self) -> Option<TestCounts> {
        let level = self.level?;
        let of_level = self.lines.iter().filter(|line| indentation(line) <= level);
        let points: Vec<Point<'_>> = of_level.filter_map(|line| point(line)).collect();
        if !self.has_version && points.is_empty() {
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
        let of = |label: &str| total(&self.lines, label);
        if let Some(passed) = of("# pass ").filter(|_| self.has_version) {
            let of = |label: &str| of(label).unwrap_or(0);
            let failed = of("# fail ").saturating_add(of("# cancelled "));
            counts.passed = passed;
            counts.failed = counts.failed.max(failed);
            counts.ignored = of("# skipped ").saturating_add(of("# todo "));
        }
        Some(counts)
    }
}

enum Point<'a> {
    Passed(&'a str),
    Failed(&'a str),
    Skipped,
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn is_version(line: &str) -> bool {
    line.trim_start().starts_with(VERSION)
}

/// Reads how many points a plan like `1..4` tells of.
fn plan(line: &str) -> Option<usize> {
    let rest = line.trim_start().strip_prefix("1..")?;
    rest.split_whitespace().next()?.parse().ok()
}

fn point(line: &str) -> Option<Point<'_>> {
    let line = line.trim_start();
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
