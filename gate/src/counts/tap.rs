//! Reads the Test Anything Protocol, which `node --test` speaks when it is piped.

use std::collections::BTreeMap;
use std::mem;

use ropewalk_schemas::attempt::TestCounts;

use super::sum;

/// How a run begins; some harnesses leave it out.
const VERSION: &str = "TAP version";

/// Adds up the runs.
pub(super) fn count(output: &str) -> Option<TestCounts> {
    let lines: Vec<&str> = output.lines().collect();
    let mut runs = Vec::new();
    let mut open = Run::default();
    for (position, line) in lines.iter().enumerate() {
        if is_version(line) {
            open.find_plan(&lines[position..]);
        }
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
    /// Whether the plan below a version was looked for: one look decides, and each reads all that is below.
    has_looked: bool,
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

    /// Finds how far it is indented, where it tells no version and its plan stands last: `below` begins with the version of what may be a
    /// part of it. It is one where the plan counts the points on both sides of it, and no part failed of which its point says nothing.
    fn find_plan(&mut self, below: &[&str]) {
        let (Some((&outer, &before)), Some(version)) =
            (self.points.first_key_value(), below.first())
        else {
            return;
        };
        let is_known = self.has_version || self.level.is_some_and(|level| level <= outer);
        if is_known || self.has_looked || indentation(version) <= outer {
            return;
        }
        self.has_looked = true;
        let mut points = before;
        let mut has_failed_part = false;
        for line in below {
            let is_part = indentation(line) > outer;
            match (plan(line), point(line)) {
                (Some(planned), _) if !is_part => {
                    if planned == points && !has_failed_part {
                        self.level = Some(outer);
                        self.planned = None;
                    }
                    return;
                }
                (_, Some(Point::Failed(_))) if is_part => has_failed_part = true,
                (_, Some(Point::Passed(_))) if !is_part && has_failed_part => return,
                (_, Some(_)) if !is_part => {
                    points += 1;
                    has_failed_part = false;
                }
                _ if is_version(line) && !is_part => return,
                _ => {}
            }
        }
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
        let level = self.level.or_else(|| self.level_of_failed())?;
        let points = self.own_points(level);
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

    /// Tells how far a run is indented that ended before its plan, by the points of it that failed.
    fn level_of_failed(&self) -> Option<usize> {
        let failed = self.lines.iter().filter(|line| is_numbered_failure(line));
        failed.map(|line| indentation(line)).min()
    }

    /// Lists the points of its own level, and what failed further in and is no part of any of them: the points of a part stand before the
    /// point that tells how the part went, and that one is planned; or they stand behind it, in braces. A point that is not ok tells of
    /// its part, and so does one whose failures are still to be mended.
    fn own_points(&self, level: usize) -> Vec<Point<'a>> {
        let mut own = Vec::new();
        let mut of_part: Vec<(usize, Point<'a>)> = Vec::new();
        let mut planned: Option<usize> = None;
        let mut seen = 0;
        // Whether the point answers for what failed in it whose braces are open.
        let mut open: Option<bool> = None;
        for &line in &self.lines {
            let indented = indentation(line);
            let is_part = indented > level;
            if let Some(more) = plan(line).filter(|_| indented == level) {
                planned = Some(planned.unwrap_or(0).saturating_add(more));
            }
            if !is_part && line.trim() == "}" && open.take() == Some(true) {
                own.extend(of_part.drain(..).map(|(_, failed)| failed));
            }
            let Some(told) = point(line) else { continue };
            let is_ok = line.trim_start().starts_with("ok");
            let is_plain = is_ok && !is_to_do(line);
            if is_part {
                // What is deeper stands last.
                while !is_ok && of_part.last().is_some_and(|(deep, _)| *deep > indented) {
                    of_part.pop();
                }
                if open != Some(false) && matches!(told, Point::Failed(_)) {
                    of_part.push((indented, told));
                }
                continue;
            }
            let is_over = planned.is_some_and(|planned| seen >= planned);
            if is_plain && (is_over || open == Some(true)) {
                own.extend(of_part.drain(..).map(|(_, failed)| failed));
            }
            of_part.clear();
            open = line.trim_end().ends_with(" {").then_some(is_plain);
            seen += 1;
            own.push(told);
        }
        own.extend(of_part.into_iter().map(|(_, failed)| failed));
        own
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
    if line.starts_with("Bail out!") {
        return Some(Point::Failed(line));
    }
    let (failed, rest) = match line.strip_prefix("not ok") {
        // It needs neither number nor name.
        Some("") => (true, " "),
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

fn is_to_do(line: &str) -> bool {
    let directive = line.split_once(" # ").map(|(_, directive)| directive);
    directive.is_some_and(|directive| directive.to_ascii_uppercase().starts_with("TODO"))
}

fn is_numbered_failure(line: &str) -> bool {
    let number = line.trim_start().strip_prefix("not ok ");
    number.is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
        && matches!(point(line), Some(Point::Failed(_)))
}

fn total(lines: &[&str], label: &str) -> Option<u32> {
    lines
        .iter()
        .rev()
        .find_map(|line| line.trim().strip_prefix(label)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::count;

    fn check(output: &str, expected: (u32, u32, u32), names: &[&str]) {
        let counts = count(output).unwrap_or_else(|| panic!("not recognised:\n{output}"));
        let counted = (counts.passed, counts.failed, counts.ignored);
        assert_eq!(counted, expected, "{output}");
        assert_eq!(counts.names, names, "{output}");
    }

    const PART: &str =
        "# Subtest: suite\n    TAP version 13\n    ok 1 - x\n    ok 2 - y\n    1..2\n";
    const FAILED_PART: &str =
        "# Subtest: suite\n    TAP version 13\n    ok 1 - x\n    not ok 2 - y\n    1..2\n";

    #[test]
    fn a_part_that_tells_a_version_is_no_run_where_the_plan_comes_last() {
        check(
            &format!("ok 1 - a\n{PART}ok 2 - suite\nok 3 - b\n1..3\n"),
            (3, 0, 0),
            &["a", "suite", "b"],
        );
        check(
            &format!("ok 1 - a\n{PART}ok 2 - suite\n{PART}ok 3 - more\n1..3\n"),
            (3, 0, 0),
            &["a", "suite", "more"],
        );
        check(
            &format!("ok 1 - a\n{FAILED_PART}not ok 2 - suite\nok 3 - b\n1..3\n"),
            (2, 1, 0),
            &["a", "b"],
        );
        check(
            &format!("ok 1 - a\n{FAILED_PART}not ok 2 - suite # TODO later\n1..2\n"),
            (1, 0, 1),
            &["a"],
        );
        // A part above it that tells none has a plan of its own.
        check(
            &format!("    ok 1 - x\n    1..1\nok 1 - a\n{PART}ok 2 - suite\n1..2\n"),
            (2, 0, 0),
            &["a", "suite"],
        );
    }

    #[test]
    fn a_part_is_explained_by_a_point_that_is_not_ok() {
        // Two files of Perl, of which `prove` says that they pass.
        let first = "ok 1 - a\n1..1\nok 1 - a\n# Subtest: s\n";
        check(
            &format!("{first}    not ok 1 - x\n    1..1\nnot ok 2 - s # TODO later\n1..2\n"),
            (2, 0, 1),
            &["a", "a"],
        );
        // Perl tells of a part that is still to be mended as of one that is ok.
        check(
            "ok 1 - a\n1..1\nok\n# Subtest: s\n    not ok 1 - x\n    1..1\nok 1 - s # TODO later\n1..1\n",
            (1, 0, 1),
            &["a"],
        );
        let inner = "        not ok 1 - x\n        1..1\n    not ok 1 - t # TODO later\n    1..1\n";
        check(
            &format!("{first}{inner}ok 2 - s\n1..2\n"),
            (3, 0, 0),
            &["a", "a", "s"],
        );
        check(
            &format!("{first}    not ok 1 - x\n    1..1\nnot ok 2 - s\n1..2\n"),
            (2, 1, 0),
            &["a", "a"],
        );
    }

    #[test]
    fn a_part_in_braces_stands_behind_its_point() {
        // Vitest.
        let output = "TAP version 13\n1..2\nnot ok 1 - a.test.ts # time=1.00ms {\n    1..2\n    not ok 1 - s # time=0.90ms {\n\
            \x20       1..1\n        not ok 1 - marks # time=0.50ms\n            ---\n            error:\n            ...\n    }\n\
            \x20   ok 2 - adds # time=0.10ms\n}\nok 2 - b.test.ts # time=1.00ms {\n    1..1\n    ok 1 - sums # time=0.20ms\n}\n";
        check(output, (1, 1, 0), &["b.test.ts"]);
        let counts = count(output).unwrap();
        assert_eq!(counts.failed_names, ["a.test.ts"]);
        check(
            "1..2\nnot ok 1 - a # TODO later {\n    not ok 1 - x\n    1..1\n}\nok 2 - b\n",
            (1, 0, 1),
            &["b"],
        );
        // Another test has the name `a {`.
        check(
            "ok 1 - a {\n    not ok 1 - x\n    1..1\nnot ok 2 - s # TODO later\n1..2\n",
            (1, 0, 1),
            &["a {"],
        );
    }

    #[test]
    fn whatever_lies_between_runs_hides_no_point_that_failed() {
        for output in [
            // The point of the part says nothing of it.
            format!("ok 1 - a\n{FAILED_PART}ok 2 - suite\n1..2\n"),
            // The run ends before its plan, or this is not its plan.
            format!("not ok 1 - a\n{PART}ok 2 - suite\n"),
            format!("not ok 1 - a\n{PART}ok 2 - suite\n1..9\n"),
            format!("ok 1 - a\n{FAILED_PART}"),
            format!("ok 1 - a\n{FAILED_PART}ok 1 - c\n1..1\n"),
            format!("ok 1 - a\n1..1\n{FAILED_PART}ok 1 - c\n1..1\n"),
            "ok 1 - a\nnot ok 2 - b\n".to_owned(),
            // What is indented without a version, and is no part of a point.
            "1..1\nok 1 - a\n    not ok 1 - x\n    1..1\n".to_owned(),
            "ok 1 - a\n    not ok 1 - x\n1..1\n".to_owned(),
            "ok 1 - a\n1..1\n    not ok 1 - x\n    1..1\nok 1 - c\n1..1\n".to_owned(),
            "ok 1 - a\n1..1\n    not ok 1 - x\n    1..1\nok 1 - c # SKIP\n1..1\n".to_owned(),
            // The braces are those of a point that passed.
            "1..2\nok 1 - a {\n    not ok 1 - x\n    1..1\n}\nok 2 - b\n".to_owned(),
            "1..2\nok 1 - a {\n    not ok 1 - x\n    1..1\n}\nnot ok 2 - b # TODO later\n"
                .to_owned(),
            "1..2\nok 1 - a {\n    not ok 1 - x\nok 2 - b\n".to_owned(),
            "1..2\nnot ok 1 - a # TODO later {\n}\nok 2 - b\n    not ok 1 - x\n".to_owned(),
            // A point needs neither number nor name.
            "1..2\nok\nnot ok\n".to_owned(),
            "1..3\nok 1 - a\nBail out! no database\n".to_owned(),
        ] {
            let counts = count(&output).unwrap_or_else(|| panic!("not recognised:\n{output}"));
            assert!(counts.failed > 0, "{output}");
        }
        for output in ["not ok 2 - later # TODO\n", "not ok\n", "not ok so far\n"] {
            assert!(count(output).is_none(), "{output}");
        }
    }
}
