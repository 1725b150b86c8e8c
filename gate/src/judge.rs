//! Judges what one command of the gate did.

mod classify;

use ropewalk_schemas::amount;
use ropewalk_schemas::attempt::{FailureClass, TOO_FEW_TESTS, TestCounts};
use ropewalk_schemas::clip;
use ropewalk_schemas::task::Expectation;
use ropewalk_workspace::CommandStatus;
use ropewalk_workspace::sandbox::Denial;

use crate::counts;
use crate::obstacle::NOT_EXECUTABLE;

/// So many letters of a line that a command wrote go into a finding.
const SAID_LETTERS: usize = 200;

/// What a command did.
#[derive(Debug, Clone, Copy)]
pub struct Observation<'a> {
    /// How it ended.
    pub status: CommandStatus,
    /// Whether its program was not found.
    pub program_missing: bool,
    /// Everything it wrote.
    pub output: &'a str,
    /// The tests that its output reports.
    pub tests: Option<&'a TestCounts>,
    /// What the sandbox kept from it.
    pub denial: Option<&'a Denial>,
}

/// What follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    /// It ran and holds.
    Holds,
    /// It ran and does not hold.
    Fails {
        /// The class of the failure.
        class: FailureClass,
        /// One line for people.
        finding: String,
    },
    /// It could not run.
    Held {
        /// One line for people.
        finding: String,
    },
    /// It was ended from outside before it could say anything.
    Cancelled,
}

impl Ruling {
    /// Says whether it ran and does not hold, for another reason than its time. A signal may have ended it: what it runs can send one.
    pub(crate) fn ran_and_failed(&self) -> bool {
        matches!(self, Self::Fails { class, .. } if *class != FailureClass::Timeout)
    }

    /// Says whether it ran, and in time, so that it says something of what it ran on.
    pub(crate) fn ran(&self) -> bool {
        *self == Self::Holds || self.ran_and_failed()
    }
}

/// Judges a command by the expectation of its task, or by its exit code alone.
pub fn rule(name: &str, observed: Observation<'_>, expected: Option<&Expectation>) -> Ruling {
    let fails = |class, finding: String| Ruling::Fails { class, finding };
    if observed.program_missing && !names_own_file(observed.output) {
        let finding = format!(
            "`{name}` could not run: {}",
            said(observed.output, "not found")
        );
        return Ruling::Held { finding };
    }
    match observed.status {
        CommandStatus::Cancelled => Ruling::Cancelled,
        CommandStatus::Missing => Ruling::Held {
            finding: format!("`{name}` could not run: there is no such program"),
        },
        CommandStatus::TimedOut => fails(
            FailureClass::Timeout,
            format!("`{name}` was stopped at its time limit"),
        ),
        CommandStatus::Flooded => fails(
            FailureClass::ValidationFailed,
            format!("`{name}` wrote without end and was stopped"),
        ),
        CommandStatus::Signalled(signal) => fails(
            FailureClass::ValidationFailed,
            format!("`{name}` was ended by signal {signal}"),
        ),
        CommandStatus::Exited(0) => match counted(name, observed) {
            Some(finding) => fails(FailureClass::ValidationFailed, finding),
            None => meets(name, observed, expected),
        },
        CommandStatus::Exited(code) => match observed.denial {
            Some(denial) => fails(
                FailureClass::SandboxDenied,
                format!("`{name}` ended with exit code {code}: {denial}"),
            ),
            None if code == NOT_EXECUTABLE => fails(
                FailureClass::ValidationFailed,
                format!(
                    "`{name}` could not run, since what it starts may not be executed: {}",
                    said(observed.output, "Permission denied")
                ),
            ),
            None => fails(
                classify::output(observed.output, observed.tests),
                format!("`{name}` ended with exit code {code}"),
            ),
        },
    }
}

/// Says what the counted tests and suites show against a command that ended well.
fn counted(name: &str, observed: Observation<'_>) -> Option<String> {
    let failed = observed.tests.map_or(0, |tests| tests.failed);
    if failed > 0 {
        return Some(format!(
            "`{name}` ended with exit code 0, but reports {}",
            amount::counted(failed, "failed test")
        ));
    }
    let suites = counts::failed_suites(observed.output);
    if suites > 0 {
        return Some(format!(
            "`{name}` ended with exit code 0, but reports {}, of which no test is told to have failed",
            amount::counted(suites, "failed suite")
        ));
    }
    let tests = observed.tests?;
    (tests.passed == 0 && tests.ignored > 0).then(|| {
        format!(
            "`{name}` passed no test; {} were ignored, which proves nothing",
            tests.ignored
        )
    })
}

fn meets(name: &str, observed: Observation<'_>, expected: Option<&Expectation>) -> Ruling {
    let fails = |finding: String| Ruling::Fails {
        class: FailureClass::ValidationFailed,
        finding,
    };
    match expected {
        None | Some(Expectation::ExitZero) => Ruling::Holds,
        Some(Expectation::Contains(text)) if observed.output.contains(text.as_str()) => {
            Ruling::Holds
        }
        Some(Expectation::Contains(text)) => {
            fails(format!("the output of `{name}` does not contain `{text}`"))
        }
        Some(Expectation::Tests(least)) => match observed.tests {
            None => fails(format!(
                "the tests of `{name}` were not counted, since no known runner speaks in its output; {least} {TOO_FEW_TESTS}"
            )),
            // Asking for none at all would let an empty run pass.
            Some(tests) if tests.passed < (*least).max(1) => fails(format!(
                "`{name}` reports {} passed tests; {least} {TOO_FEW_TESTS}",
                tests.passed
            )),
            Some(_) => Ruling::Holds,
        },
    }
}

/// A shell that does not find a file of the repository says so in the same way as one that misses a tool; the
/// first is the task's own fault.
fn names_own_file(output: &str) -> bool {
    output.lines().any(|line| {
        let line = line.trim();
        line.ends_with("not found") && line.contains('/') && !line.contains(": /")
            || line.ends_with("No such file or directory") && line.contains("./")
    })
}

/// Returns the line that tells why something could not be started, which `sign` is part of, or else the last one.
fn said(output: &str, sign: &str) -> String {
    let mut said = output.lines().rev().filter(|line| !line.trim().is_empty());
    let last = said.clone().next();
    let line = said.find(|line| line.contains(sign)).or(last);
    let line = line.unwrap_or("there is no such program");
    clip::letters(line.trim(), SAID_LETTERS).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use CommandStatus::{Cancelled, Exited, Flooded, Missing, Signalled, TimedOut};

    fn judged(status: CommandStatus, output: &str, expected: &str) -> Ruling {
        let tests = crate::counts::count(output, None);
        let observed = Observation {
            status,
            program_missing: matches!(status, Missing | Exited(127)),
            output,
            tests: tests.as_ref(),
            denial: None,
        };
        let expected = Expectation::try_from(expected.to_owned()).unwrap();
        rule("check", observed, Some(&expected))
    }

    fn class(ruling: &Ruling) -> Option<FailureClass> {
        match ruling {
            Ruling::Fails { class, .. } => Some(*class),
            _ => None,
        }
    }

    const TWO: &str =
        "test a ... ok\ntest b ... ok\ntest result: ok. 2 passed; 0 failed; 0 ignored;";
    const NONE: &str = "test result: ok. 0 passed; 0 failed; 0 ignored;";

    #[test]
    fn only_what_ran_and_in_time_says_whether_it_holds() {
        let rows = [
            (Exited(0), "", (true, false)),
            (Exited(1), "", (true, true)),
            (Signalled(9), "", (true, true)),
            (Flooded, "", (true, true)),
            (TimedOut, "", (false, false)),
            (Missing, "", (false, false)),
            (Exited(127), "Cannot allocate memory", (false, false)),
            (Cancelled, "", (false, false)),
        ];
        for (status, output, expected) in rows {
            let ruling = judged(status, output, "exit 0");
            let found = (ruling.ran(), ruling.ran_and_failed());
            assert_eq!(found, expected, "{status:?} {output}");
        }
    }

    #[test]
    fn a_command_holds_only_with_exit_zero_and_its_expectation() {
        let rows = [
            (Exited(0), "", "exit 0", None),
            (
                Exited(1),
                "",
                "exit 0",
                Some(FailureClass::ValidationFailed),
            ),
            (
                Exited(1),
                "error[E0308]",
                "exit 0",
                Some(FailureClass::SyntaxError),
            ),
            (Exited(0), TWO, "tests >= 2", None),
            (
                Exited(0),
                TWO,
                "tests >= 3",
                Some(FailureClass::ValidationFailed),
            ),
            (
                Exited(0),
                NONE,
                "tests >= 0",
                Some(FailureClass::ValidationFailed),
            ),
            (
                Exited(0),
                "all good",
                "tests >= 1",
                Some(FailureClass::ValidationFailed),
            ),
            (
                Exited(1),
                TWO,
                "tests >= 1",
                Some(FailureClass::ValidationFailed),
            ),
            (Exited(0), "all good", "contains good", None),
            (
                Exited(0),
                "bad",
                "contains good",
                Some(FailureClass::ValidationFailed),
            ),
            (TimedOut, TWO, "tests >= 1", Some(FailureClass::Timeout)),
            (
                Flooded,
                TWO,
                "tests >= 1",
                Some(FailureClass::ValidationFailed),
            ),
            (
                Signalled(9),
                TWO,
                "tests >= 1",
                Some(FailureClass::ValidationFailed),
            ),
        ];
        for (status, output, expected, wanted) in rows {
            let ruling = judged(status, output, expected);
            assert_eq!(class(&ruling), wanted, "{status:?} {expected} {output}");
            assert_eq!(ruling == Ruling::Holds, wanted.is_none());
        }
        assert_eq!(judged(Cancelled, "", "exit 0"), Ruling::Cancelled);
    }

    #[test]
    fn what_a_runner_sums_up_counts_more_than_its_exit_code() {
        let rows = [
            "test result: FAILED. 1 passed; 2 failed; 0 ignored;",
            "test result: ok. 0 passed; 0 failed; 5 ignored;",
            "Ran 2 tests in 0.01s\n\nFAILED (failures=1)",
            "TAP version 13\nnot ok 1 - bad\n1..1\n# pass 0\n# fail 1\nTAP version 13\nok 1 - fine\n1..1\n# pass 1\n# fail 0",
            // Suites that failed outside any test.
            "Test Suites: 1 failed, 3 passed, 4 total\nTests:       9 passed, 9 total",
            " Test Files  1 failed | 2 passed (3)\n      Tests  9 passed (9)",
            "--- PASS: TestAdds (0.00s)\nok  \thabits\t0.002s\nFAIL\tmore [build failed]",
            "FAIL\tmore\t0.002s\nFAIL",
            "{\"Time\":\"t\",\"Action\":\"fail\",\"Package\":\"more\",\"Elapsed\":0}",
            "  ok  \thabits\t0.002s\n  FAIL\tmore [setup failed]\n  FAIL",
            // What failed behind, or of another package, is not undone; nor is what did not compile.
            "ok  \tmore\t0.002s\nFAIL\tmore\t0.002s",
            "FAIL\tmore\t0.002s\nok  \thabits\t0.002s",
            "FAIL\tmore [build failed]\nok  \tmore\t0.002s",
        ];
        for output in rows {
            for expected in ["exit 0", "tests >= 1", "contains e"] {
                let ruling = judged(Exited(0), output, expected);
                assert_eq!(
                    class(&ruling),
                    Some(FailureClass::ValidationFailed),
                    "{output} {expected}"
                );
            }
        }
        for output in [
            NONE,
            "test result: ok. 1 passed; 0 failed; 5 ignored;",
            "Test Suites: 1 skipped, 3 passed, 3 of 4 total\nTests:       9 passed, 9 total",
            "--- PASS: TestAdds (0.00s)\nok  \thabits\t0.002s",
            "FAIL\tis what it says",
            "FAIL\tx nans",
            "FAIL\tx\tinfs",
            // What failed was run again and passed.
            "FAIL\tmore\t0.010s\nok  \tmore\t0.010s",
            "  FAIL\tmore\t0.010s\n  ok  \tmore\t0.010s\tcoverage: 80.0% of statements",
            "{\"Action\":\"fail\",\"Package\":\"more\",\"Elapsed\":0}\n{\"Action\":\"pass\",\"Package\":\"more\",\"Elapsed\":0}",
        ] {
            assert_eq!(
                judged(Exited(0), output, "exit 0"),
                Ruling::Holds,
                "{output}"
            );
        }
    }

    #[test]
    fn one_failed_suite_is_told_as_one() {
        for (output, told) in [
            ("FAIL\tmore [build failed]", "reports 1 failed suite, of"),
            (
                "FAIL\ta [build failed]\nFAIL\tb\t0.1s",
                "reports 2 failed suites, of",
            ),
            (
                "test result: FAILED. 1 passed; 1 failed; 0 ignored;",
                "reports 1 failed test",
            ),
        ] {
            let Ruling::Fails { finding, .. } = judged(Exited(0), output, "exit 0") else {
                panic!("{output}");
            };
            assert!(finding.contains(told), "{finding}");
            assert!(!finding.ends_with("1 failed tests"), "{finding}");
        }
    }

    #[test]
    fn a_missing_tool_holds_and_a_missing_file_of_the_task_fails() {
        for (status, output) in [
            (Missing, ""),
            (Exited(127), "sh: 1: cargo: not found"),
            (Exited(127), "sh: line 1: cargo: command not found"),
        ] {
            let ruling = judged(status, output, "exit 0");
            assert!(matches!(ruling, Ruling::Held { .. }), "{output}");
        }
        let own = judged(Exited(127), "sh: 1: ./bin/tool: not found", "exit 0");
        assert_eq!(class(&own), Some(FailureClass::ValidationFailed));
    }

    #[test]
    fn a_line_that_is_too_long_for_a_finding_is_seen_to_be_cut() {
        for (letters, is_cut) in [(10, false), (SAID_LETTERS, true)] {
            let output = format!("sh: 1: {}: not found", "x".repeat(letters));
            let Ruling::Held { finding } = judged(Exited(127), &output, "exit 0") else {
                panic!("{output}");
            };
            assert_eq!(finding.ends_with('…'), is_cut, "{finding}");
        }
    }
}
