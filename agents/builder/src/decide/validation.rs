//! Decides what the result of a validation gives people to decide (seed pipeline §11.6).

use ropewalk_schemas::amount::and_more;
use ropewalk_schemas::attempt::{CheckKind, CheckRun, Evidence, Level, Verdict, planted_beside};
use ropewalk_schemas::clip;

/// So many files with too few tests are named.
const NAMED_FILES: usize = 5;

/// What people are asked about a validation.
#[derive(Debug, Clone, PartialEq)]
pub enum ValidationQuestion {
    /// Several checks did not hold.
    Failures {
        /// What stops a merge, a line each.
        critical: Vec<String>,
        /// What does not, a line each.
        warnings: Vec<String>,
    },
    /// A security check found a hole.
    Vulnerability(Vulnerability),
    /// Nobody has seen that a check can fail by what its tests find.
    Blind {
        /// The check, as a person accepts it.
        topic: String,
        /// The check.
        check: String,
        /// What was found.
        finding: String,
    },
    /// Tests cover less than they should.
    Coverage {
        /// What they cover, in percent.
        percent: f64,
        /// What they should cover.
        threshold: u32,
        /// Files that are covered too little, as the tool tells them.
        uncovered: Vec<String>,
    },
    /// Everything held.
    Passed {
        /// How many tests passed; none where they were not counted.
        tests: Option<u32>,
        /// What they cover, if that was measured.
        percent: Option<f64>,
        /// How the lint checks ended.
        lint: &'static str,
        /// How the security checks ended.
        security: &'static str,
    },
}

/// A hole that a security check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vulnerability {
    /// The check that found it.
    pub check: String,
    /// How bad it is, as the tool says; `high` when it does not.
    pub severity: &'static str,
    /// Where it is.
    pub file: String,
    /// The line.
    pub line: String,
    /// What the tool says.
    pub description: String,
}

/// Lists what a validation gives people to decide; one without levels ends silently but for checks that cannot fail, as its build
/// tells.
pub fn asked(evidence: &Evidence, threshold: u32) -> Vec<ValidationQuestion> {
    let blind = evidence.blind.iter().zip(&evidence.findings);
    let blind = blind.map(|(check, finding)| ValidationQuestion::Blind {
        topic: planted_beside(check),
        check: check.clone(),
        finding: finding.clone(),
    });
    let mut asked: Vec<ValidationQuestion> = blind.collect();
    if evidence.level.is_none() {
        return asked;
    }
    let broken: Vec<&CheckRun> = evidence.checks.iter().filter(|run| !held(run)).collect();
    let holes = broken.iter().filter(|run| is(run, CheckKind::Security));
    asked.extend(holes.map(|run| ValidationQuestion::Vulnerability(vulnerability(run))));
    if broken.len() > 1 {
        let told = |run: &&CheckRun| format!("- {}: {}", run.name, last_line(&run.output));
        let (warnings, critical): (Vec<&CheckRun>, Vec<&CheckRun>) =
            broken.iter().partition(|run| is(run, CheckKind::Lint));
        asked.push(ValidationQuestion::Failures {
            critical: critical.iter().map(told).collect(),
            warnings: warnings.iter().map(told).collect(),
        });
    }
    let measured = evidence
        .checks
        .iter()
        .filter(|run| is(run, CheckKind::Coverage))
        .find_map(|run| coverage(&run.output).map(|percent| (run, percent)));
    if let Some((run, percent)) = measured
        && percent < f64::from(threshold)
    {
        asked.push(ValidationQuestion::Coverage {
            percent,
            threshold,
            uncovered: uncovered(&run.output, f64::from(threshold)),
        });
    }
    if evidence.verdict == Verdict::Passed {
        asked.push(ValidationQuestion::Passed {
            tests: evidence.tests_passed(),
            percent: measured.map(|(_, percent)| percent),
            lint: outcome(evidence, CheckKind::Lint),
            security: outcome(evidence, CheckKind::Security),
        });
    }
    asked
}

/// Returns the level to recommend before a validation, when there is one to choose: deeper checks than usual.
pub fn recommended(deepest: Option<Level>, usual: Level) -> Option<Level> {
    deepest.filter(|deepest| *deepest > usual).map(|_| usual)
}

fn is(run: &CheckRun, kind: CheckKind) -> bool {
    run.kind == Some(kind)
}

/// Returns whether a check passed, with all of its tests.
pub fn held(run: &CheckRun) -> bool {
    run.exit_code == Some(0) && run.tests.as_ref().is_none_or(|tests| tests.failed == 0)
}

fn outcome(evidence: &Evidence, kind: CheckKind) -> &'static str {
    let mut of_kind = evidence
        .checks
        .iter()
        .filter(|run| is(run, kind))
        .peekable();
    if of_kind.peek().is_none() {
        "not run"
    } else if of_kind.all(held) {
        "passed"
    } else {
        "failed"
    }
}

fn vulnerability(run: &CheckRun) -> Vulnerability {
    let found = run.output.lines().find_map(place);
    let (file, line, description) =
        found.unwrap_or_else(|| ("unknown".to_owned(), "?".to_owned(), last_line(&run.output)));
    let plain = run.output.to_lowercase();
    let severity = ["critical", "high", "medium", "low"]
        .into_iter()
        .find(|severity| plain.contains(severity))
        .unwrap_or("high");
    Vulnerability {
        check: run.name.clone(),
        severity,
        file,
        line,
        description,
    }
}

/// Reads `file:line: what`, with the place anywhere in a line.
fn place(line: &str) -> Option<(String, String, String)> {
    line.split_whitespace().find_map(|word| {
        let mut parts = word.split(':');
        let (file, number) = (parts.next()?, parts.next()?);
        let is_place = !file.is_empty()
            && file.contains(['.', '/'])
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit());
        is_place.then(|| {
            let rest = line.split_once(word).map_or("", |(_, rest)| rest).trim();
            let told = if rest.is_empty() { line.trim() } else { rest };
            (file.to_owned(), number.to_owned(), told.to_owned())
        })
    })
}

/// Reads how much the tests cover, in percent, from what a coverage tool says of the whole.
pub fn coverage(output: &str) -> Option<f64> {
    output.lines().rev().find_map(|line| {
        let plain = line.to_lowercase();
        if plain.contains("all files") {
            // Jest and vitest print a table without signs: statements first.
            return plain.split('|').nth(1)?.trim().parse().ok();
        }
        let of_whole = ["total", "coverage"]
            .iter()
            .any(|word| plain.contains(word));
        of_whole.then(|| percent(&plain)).flatten()
    })
}

fn percent(line: &str) -> Option<f64> {
    let words = line.split(|letter: char| !(letter.is_ascii_digit() || ".%".contains(letter)));
    words
        .filter_map(|word| word.strip_suffix('%')?.parse().ok())
        .next_back()
}

fn uncovered(output: &str, threshold: f64) -> Vec<String> {
    let is_low = |line: &&str| {
        let plain = line.to_lowercase();
        let of_whole = ["total", "coverage", "all files"];
        !of_whole.iter().any(|word| plain.contains(word))
            && percent(line).is_some_and(|percent| percent < threshold)
    };
    let low = || output.lines().filter(is_low);
    let rest = and_more(low().count(), NAMED_FILES);
    let named = low().take(NAMED_FILES);
    let named = named.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    named.chain(rest).collect()
}

fn last_line(output: &str) -> String {
    let line = output.lines().rev().find(|line| !line.trim().is_empty());
    clip::letters(line.unwrap_or_default().trim(), 200).into_owned()
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::attempt::TestCounts;

    use super::*;
    use crate::decide::fixture::{build, noon};

    fn run(name: &str, kind: Option<CheckKind>, exit_code: i32, output: &str) -> CheckRun {
        CheckRun {
            name: name.to_owned(),
            kind,
            level: Some(Level::Standard),
            command: name.to_owned(),
            exit_code: Some(exit_code),
            duration_ms: 1,
            tests: None,
            flaky: Vec::new(),
            output: output.to_owned(),
        }
    }

    fn evidence(verdict: Verdict, checks: Vec<CheckRun>) -> Evidence {
        Evidence {
            build: build().id,
            task: None,
            attempt: None,
            commit: "1".repeat(40).parse().unwrap(),
            history: None,
            tree: String::new(),
            verdict,
            class: None,
            findings: Vec::new(),
            level: Some(Level::Standard),
            requirements: Vec::new(),
            installs: Vec::new(),
            checks,
            not_run: Vec::new(),
            blind: Vec::new(),
            proof: None,
            at: noon(),
        }
    }

    #[test]
    fn a_hole_is_told_with_its_place_and_severity() {
        let scan = run(
            "secrets",
            Some(CheckKind::Security),
            1,
            "scanning\n[CRITICAL] src/keys.rs:12: hard-coded secret\n1 finding",
        );
        let found = asked(&evidence(Verdict::Failed, vec![scan]), 80);
        let expected = Vulnerability {
            check: "secrets".to_owned(),
            severity: "critical",
            file: "src/keys.rs".to_owned(),
            line: "12".to_owned(),
            description: "hard-coded secret".to_owned(),
        };
        assert_eq!(found, [ValidationQuestion::Vulnerability(expected)]);
        let silent = run("secrets", Some(CheckKind::Security), 0, "a.rs:1: critical");
        assert!(matches!(
            asked(&evidence(Verdict::Passed, vec![silent]), 80)[..],
            [ValidationQuestion::Passed {
                security: "passed",
                ..
            }]
        ));
    }

    #[test]
    fn several_failures_are_sorted_and_one_alone_is_told_by_its_build() {
        let unit = run("unit", None, 1, "two tests failed");
        let lint = run("lint", Some(CheckKind::Lint), 1, "unused variable");
        let both = asked(&evidence(Verdict::Failed, vec![unit.clone(), lint]), 80);
        let expected = ValidationQuestion::Failures {
            critical: vec!["- unit: two tests failed".to_owned()],
            warnings: vec!["- lint: unused variable".to_owned()],
        };
        assert_eq!(both, [expected]);
        assert_eq!(asked(&evidence(Verdict::Failed, vec![unit]), 80), []);
    }

    #[test]
    fn coverage_is_asked_about_below_its_threshold_alone() {
        let tool = |output: &str| run("coverage", Some(CheckKind::Coverage), 0, output);
        let low = "src/a.rs 10 9 10.00%\nsrc/b.rs 10 1 90.00%\nTOTAL 20 10 50.00%";
        let found = asked(&evidence(Verdict::Passed, vec![tool(low)]), 80);
        let expected = ValidationQuestion::Coverage {
            percent: 50.0,
            threshold: 80,
            uncovered: vec!["src/a.rs 10 9 10.00%".to_owned()],
        };
        assert_eq!(found[0], expected);
        assert_eq!(found.len(), 2, "it passed all the same");
        let files = (1..=7).map(|number| format!("src/{number}.rs 10 9 10.00%"));
        let many: Vec<String> = files.chain(["TOTAL 70 63 10.00%".to_owned()]).collect();
        let many = many.join("\n");
        let found = asked(&evidence(Verdict::Passed, vec![tool(&many)]), 80);
        let ValidationQuestion::Coverage { uncovered, .. } = &found[0] else {
            panic!("{found:?}");
        };
        assert_eq!(uncovered.len(), NAMED_FILES + 1);
        assert_eq!(uncovered[NAMED_FILES], "and 2 more");
        let high = asked(&evidence(Verdict::Passed, vec![tool("TOTAL 10 1 80%")]), 80);
        assert!(matches!(
            high[..],
            [ValidationQuestion::Passed {
                percent: Some(_),
                ..
            }]
        ));
    }

    #[test]
    fn a_pass_counts_its_tests_and_what_has_no_level_asks_nothing() {
        let mut unit = run("unit", None, 0, "");
        unit.tests = Some(TestCounts {
            passed: 7,
            ..TestCounts::default()
        });
        let mut seen = evidence(Verdict::Passed, vec![unit]);
        let expected = ValidationQuestion::Passed {
            tests: Some(7),
            percent: None,
            lint: "not run",
            security: "not run",
        };
        assert_eq!(asked(&seen, 80), [expected]);
        seen.checks[0].tests = None;
        assert!(
            matches!(
                asked(&seen, 80)[..],
                [ValidationQuestion::Passed { tests: None, .. }]
            ),
            "what was not counted is not none"
        );
        seen.level = None;
        assert_eq!(asked(&seen, 80), []);
        seen.level = Some(Level::Quick);
        seen.verdict = Verdict::Held;
        assert_eq!(asked(&seen, 80), []);
    }

    #[test]
    fn coverage_is_read_from_what_tools_print() {
        let rows = [
            ("coverage: 78.3% of statements", Some(78.3)),
            ("TOTAL                 20      4    80%", Some(80.0)),
            ("87.50% coverage, 35/40 lines covered", Some(87.5)),
            (
                "All files      |   85.71 |      100 |     75 |   85.71 |",
                Some(85.71),
            ),
            (
                "TOTAL  10  2  80.00%  5  1  81.00%  50  9  82.00%",
                Some(82.0),
            ),
            ("nothing was measured", None),
        ];
        for (output, expected) in rows {
            assert_eq!(coverage(output), expected, "{output}");
        }
    }

    #[test]
    fn a_level_is_recommended_only_where_there_is_a_deeper_one() {
        let rows = [
            (None, Level::Standard, None),
            (Some(Level::Standard), Level::Standard, None),
            (Some(Level::Release), Level::Standard, Some(Level::Standard)),
            (Some(Level::Thorough), Level::Quick, Some(Level::Quick)),
        ];
        for (deepest, usual, expected) in rows {
            assert_eq!(recommended(deepest, usual), expected, "{deepest:?}");
        }
    }
}
