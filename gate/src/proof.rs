//! Decides what the pass of a check is worth, by how the same check fared on the tree before.

use ropewalk_schemas::attempt::{CheckRun, FailureClass, Proof};
use ropewalk_schemas::task::Expectation;

use crate::judge::Ruling;
use crate::{counts, obstacle};

/// What a tool says that did not come to check anything.
const DID_NOT_RUN: &[&str] = &[
    "No such file or directory",
    "file or directory not found",
    "cannot open ",
    "can't open file",
    "command not found",
    ": not found",
    "No rule to make target",
    "Missing script:",
    "missing script:",
    "Could not read package.json",
    "Couldn't find a package.json",
    "No package.json",
    "no test target named",
    "could not find `Cargo.toml`",
    "error: manifest path `",
    "ImportError",
    "unittest.loader._FailedTest",
    "Cannot find module",
    "cannot find package",
    "Could not find or load main class",
    "errors during collection",
    "error during collection",
    "is not a directory",
];
/// What pytest says that did not begin, since a file of tests could not be loaded.
const NOT_COLLECTED: &[&str] = &["errors during collection", "error during collection"];
/// What a test runner says that ran and found no test to run.
const SELECTED_NONE: &[&str] = &[
    "collected 0 items",
    "no tests ran",
    "NO TESTS RAN",
    "No tests found",
    "No test files found",
    "No tests to run",
    "No tests were found",
];

/// Returns whether a run came as far as looking for tests, and none was selected.
pub fn selected_no_test(run: &CheckRun) -> bool {
    let says = |signs: &[&str]| signs.iter().any(|sign| run.output.contains(sign));
    let none = match &run.tests {
        Some(tests) => tests.passed + tests.failed + tests.ignored == 0,
        None => says(SELECTED_NONE),
    };
    run.exit_code.is_some() && none && !says(DID_NOT_RUN)
}

/// Returns whether a run tells no number of tests though one is asked for, and found no reason why there is none.
pub fn is_uncounted(run: &CheckRun, expected: &Expectation) -> bool {
    let asks = matches!(expected, Expectation::Tests(_));
    let could_run = run.exit_code.is_some() && obstacle::of(run).is_none();
    asks && could_run && run.tests.is_none() && !stumbles(run)
}

/// Decides what a pass is worth when the check fared like this on the tree before.
///
/// `run` is the run there, `ruling` what followed from it.
pub fn of(ruling: &Ruling, run: &CheckRun, expected: &Expectation, preserves: bool) -> Proof {
    match ruling {
        Ruling::Holds if preserves => Proof::Preserved,
        Ruling::Holds => Proof::PassedBefore,
        // Whatever it said, it held but for a number that nobody could read.
        Ruling::Fails { .. } if run.exit_code == Some(0) && is_uncounted(run, expected) => {
            Proof::TooFewTests
        }
        Ruling::Fails { class, .. } if checked(*class, run) && told_of_no_test(run) => {
            Proof::FailedUncounted
        }
        Ruling::Fails { class, .. } if checked(*class, run) => Proof::AssertionFailed,
        Ruling::Fails { .. } if has_too_few_tests(run) => Proof::TooFewTests,
        Ruling::Fails { .. } | Ruling::Held { .. } | Ruling::Cancelled => Proof::CouldNotRun,
    }
}

/// Decides what a pass is worth when the check fared like this on the tree before with the new tests of the candidate and nothing
/// else of it.
///
/// `run` is the run there, `ruling` what followed from it.
pub fn of_tests_alone(ruling: &Ruling, run: &CheckRun, expected: &Expectation) -> Proof {
    match of(ruling, run, expected, false) {
        Proof::PassedBefore => Proof::PassedWithoutWork,
        _ if is_of_the_code(ruling) && fails_a_test(run) => Proof::NewTestsFailed,
        Proof::AssertionFailed if run.tests.is_none() => Proof::FailedUncounted,
        // Its tests were counted, and none of them failed: what did is that they could not be loaded.
        Proof::AssertionFailed => Proof::CouldNotRun,
        weak => weak,
    }
}

/// Says whether a check ran to its end and failed by what is in its tree, and not by a machine that lacked something.
fn is_of_the_code(ruling: &Ruling) -> bool {
    use FailureClass::{MissingDependency, SyntaxError, ValidationFailed};
    let Ruling::Fails { class, .. } = ruling else {
        return false;
    };
    matches!(class, ValidationFailed | MissingDependency | SyntaxError)
}

/// Says whether a test ran and failed, and not only a file of tests that could not be loaded.
fn fails_a_test(run: &CheckRun) -> bool {
    let Some(tests) = run.tests.as_ref().filter(|_| run.exit_code.is_some()) else {
        return false;
    };
    if NOT_COLLECTED.iter().any(|sign| run.output.contains(sign)) {
        return false;
    }
    let names = tests.failed_names.iter();
    let unloaded = names.filter(|name| is_of_a_file(name)).count();
    usize::try_from(tests.failed).is_ok_and(|failed| failed > unloaded)
}

/// Says whether a runner names so what it could not load: `unittest` a test of its own, `node` and `pytest` the file.
fn is_of_a_file(name: &str) -> bool {
    const SCRIPTS: [&str; 7] = [".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py"];
    // Of pytest a test has `::` in its name.
    let is_script = !name.contains(' ') && SCRIPTS.iter().any(|end| name.ends_with(end));
    is_script || name.contains("unittest.loader._FailedTest")
}

/// Says whether a run tells that something of it did not come to check anything.
pub fn stumbles(run: &CheckRun) -> bool {
    let mut signs = DID_NOT_RUN.iter().chain(SELECTED_NONE);
    signs.any(|sign| run.output.contains(sign))
}

/// Says whether a check that failed came as far as checking something.
fn checked(class: FailureClass, run: &CheckRun) -> bool {
    let could_run = run.exit_code.is_some() && obstacle::of(run).is_none();
    if class != FailureClass::ValidationFailed || !could_run {
        return false;
    }
    let stumbled = stumbles(run);
    match &run.tests {
        // That there are fewer tests than are asked for says nothing of the work.
        Some(tests) if tests.failed == 0 && run.exit_code == Some(0) => false,
        // Where tests were counted, their own number says more than a line among many.
        Some(tests) if tests.passed > 0 && tests.failed > 0 => fails_a_test(run),
        Some(tests) => (tests.passed > 0 || tests.failed > 0) && !stumbled,
        None => !stumbled,
    }
}

/// Says whether a check that has tests run told of none: what failed may stand before them. A file of tests that an interpreter
/// runs by itself, or a step of a project that need not be one of a runner, says why it failed, unless it was never run.
fn told_of_no_test(run: &CheckRun) -> bool {
    let is_silent = run.output.trim().is_empty();
    let is_of_tests =
        counts::has_known_runner(&run.command) || is_silent && counts::may_run_tests(&run.command);
    run.tests.is_none() && is_of_tests
}

/// Says whether a run that does not hold held but for the number of its tests.
fn has_too_few_tests(run: &CheckRun) -> bool {
    let tests = run.tests.as_ref();
    run.exit_code == Some(0) && tests.is_some_and(|tests| tests.passed > 0 && tests.failed == 0)
}

/// Returns the failed tests of a run if each of them passed on the tree before; none where that cannot be told.
///
/// Without names, tests that all passed before and have not become more are taken for the same ones.
pub fn passed_before(now: &CheckRun, before: &CheckRun) -> Option<Vec<String>> {
    let (now, before) = (now.tests.as_ref()?, before.tests.as_ref()?);
    if now.failed == 0 || before.failed > 0 {
        return None;
    }
    let named = usize::try_from(now.failed).is_ok_and(|failed| failed <= now.failed_names.len());
    if named && !before.names.is_empty() {
        let known = now
            .failed_names
            .iter()
            .all(|name| before.names.contains(name));
        return known.then(|| now.failed_names.clone());
    }
    let all =
        |tests: &ropewalk_schemas::attempt::TestCounts| tests.passed + tests.failed + tests.ignored;
    let number = format!("{} tests", now.failed);
    (all(now) <= all(before)).then(|| {
        if named {
            now.failed_names.clone()
        } else {
            vec![number]
        }
    })
}

#[cfg(test)]
mod tests {
    use ropewalk_workspace::CommandStatus;

    use super::*;
    use crate::counts::count;
    use crate::judge::{Observation, rule};

    fn run(exit_code: i32, output: &str) -> CheckRun {
        CheckRun {
            name: "validation".to_owned(),
            level: None,
            kind: None,
            command: "check".to_owned(),
            exit_code: Some(exit_code),
            duration_ms: 1,
            tests: count(output, None),
            flaky: Vec::new(),
            output: output.to_owned(),
        }
    }

    fn fails(class: FailureClass) -> Ruling {
        Ruling::Fails {
            class,
            finding: String::new(),
        }
    }

    #[test]
    fn a_runner_that_selects_no_test_is_told_from_one_that_could_not_run() {
        for (code, output, expected) in [
            (0, "test result: ok. 0 passed; 0 failed; 0 ignored;", true),
            (
                5,
                "collected 0 items\n\n=== no tests ran in 0.01s ===",
                true,
            ),
            (5, "Ran 0 tests in 0.000s\n\nNO TESTS RAN", true),
            (1, "No test files found, exiting with code 1", true),
            (
                4,
                "collected 0 items\n\nERROR: file or directory not found: tests/test_a.py",
                false,
            ),
            (
                2,
                "collected 0 items / 1 error\n1 error during collection",
                false,
            ),
            (101, "error: no test target named `habits`", false),
            (2, "grep: a.txt: No such file or directory", false),
            (1, "", false),
            (
                1,
                "test result: FAILED. 0 passed; 1 failed; 0 ignored;",
                false,
            ),
        ] {
            assert_eq!(selected_no_test(&run(code, output)), expected, "{output}");
        }
    }

    #[test]
    fn an_assertion_that_failed_is_told_from_a_check_that_could_not_run() {
        let rows = [
            (1, "", Proof::AssertionFailed),
            (
                1,
                "AssertionError: 1 != 2\n\nRan 1 test in 0.001s\n\nFAILED (failures=1)",
                Proof::AssertionFailed,
            ),
            (
                1,
                "test a ... ok\ntest b ... FAILED\nNo such file or directory\ntest result: FAILED. 1 passed; 1 failed; 0 ignored;",
                Proof::AssertionFailed,
            ),
            (
                2,
                "grep: a.txt: No such file or directory",
                Proof::CouldNotRun,
            ),
            (
                2,
                "sh: 0: cannot open check.sh: No such file",
                Proof::CouldNotRun,
            ),
            (
                2,
                "python3: can't open file '/x/a.py': [Errno 2] No such file or directory",
                Proof::CouldNotRun,
            ),
            (
                1,
                "ImportError: Failed to import test module: test_a\n\nRan 1 test in 0.000s\n\nFAILED (errors=1)",
                Proof::CouldNotRun,
            ),
            (
                101,
                "error: manifest path `habits/Cargo.toml` does not exist",
                Proof::CouldNotRun,
            ),
            (
                101,
                "error: no test target named `habits`",
                Proof::CouldNotRun,
            ),
            (
                0,
                "test result: ok. 0 passed; 0 failed; 0 ignored;",
                Proof::CouldNotRun,
            ),
            (0, "Ran 2 tests in 0.001s\n\nOK", Proof::TooFewTests),
            (
                2,
                "make: *** No rule to make target 'test'.  Stop.",
                Proof::CouldNotRun,
            ),
        ];
        for (code, output, expected) in rows {
            let found = of(
                &fails(FailureClass::ValidationFailed),
                &run(code, output),
                &Expectation::ExitZero,
                false,
            );
            assert_eq!(found, expected, "{output}");
        }
        for class in [
            FailureClass::SyntaxError,
            FailureClass::MissingDependency,
            FailureClass::Timeout,
        ] {
            let found = of(&fails(class), &run(1, ""), &Expectation::ExitZero, false);
            assert_eq!(found, Proof::CouldNotRun);
        }
        let held = Ruling::Held {
            finding: String::new(),
        };
        let found = of(&held, &run(127, ""), &Expectation::ExitZero, false);
        assert_eq!(found, Proof::CouldNotRun);
    }

    #[test]
    fn new_tests_that_failed_without_the_work_are_told_from_those_that_could_not_be_loaded() {
        let unloaded = "ERROR: test_b (unittest.loader._FailedTest.test_b)\nImportError: cannot import name 'two' from 'a'\n\n";
        let counted = |failures: &str, ran: u32, outcome: &str| {
            format!("{failures}Ran {ran} tests in 0.001s\n\nFAILED ({outcome})")
        };
        let rows = [
            (
                counted("FAIL: test_two (test_b.B.test_two)\n", 9, "failures=1"),
                Proof::NewTestsFailed,
            ),
            // What ran and met no such function ran.
            (
                counted("ERROR: test_two (test_b.B.test_two)\n", 9, "errors=1"),
                Proof::NewTestsFailed,
            ),
            (counted(unloaded, 9, "errors=1"), Proof::CouldNotRun),
            (counted(unloaded, 1, "errors=1"), Proof::CouldNotRun),
            (
                counted(
                    &format!("FAIL: test_two (test_c.C.test_two)\n{unloaded}ModuleNotFoundError: No module named 'd'\n"),
                    9,
                    "failures=1, errors=1",
                ),
                Proof::NewTestsFailed,
            ),
            (
                "collected 3 items / 1 error\n!!! Interrupted: 1 error during collection !!!\n1 error in 0.05s".to_owned(),
                Proof::CouldNotRun,
            ),
            (
                "TAP version 13\nok 1 - one\nnot ok 2 - /x/b.test.js\n1..2\n# pass 1\n# fail 1".to_owned(),
                Proof::CouldNotRun,
            ),
            (
                "TAP version 13\nok 1 - one\nnot ok 2 - two\n1..2\n# pass 1\n# fail 1".to_owned(),
                Proof::NewTestsFailed,
            ),
            ("FAIL: b.sh".to_owned(), Proof::FailedUncounted),
            (
                "sh: 0: cannot open b.sh: No such file".to_owned(),
                Proof::CouldNotRun,
            ),
        ];
        for (output, expected) in rows {
            let run = run(1, &output);
            let observed = Observation {
                status: CommandStatus::Exited(1),
                program_missing: false,
                output: &output,
                tests: run.tests.as_ref(),
                denial: None,
            };
            let ruling = rule("validation", observed, Some(&Expectation::ExitZero));
            let found = of_tests_alone(&ruling, &run, &Expectation::ExitZero);
            assert_eq!(found, expected, "{output}");
        }
        let (network, failed) = (fails(FailureClass::Network), "not ok 1 - two\n1..1");
        for (ruling, code, output, expected) in [
            (Ruling::Holds, 0, "ok", Proof::PassedWithoutWork),
            (network, 1, failed, Proof::CouldNotRun),
        ] {
            let run = run(code, output);
            let found = of_tests_alone(&ruling, &run, &Expectation::ExitZero);
            assert_eq!(found, expected, "{output}");
        }
    }

    #[test]
    fn tests_that_nobody_counted_are_no_assertion_that_failed() {
        let tests = Expectation::Tests(5);
        let failed = fails(FailureClass::ValidationFailed);
        let text = Expectation::Contains("good".to_owned());
        for (code, output, expected, proof, uncounted) in [
            (0, "all good", &tests, Proof::TooFewTests, true),
            (0, "", &tests, Proof::TooFewTests, true),
            (1, "FAIL: habits", &tests, Proof::AssertionFailed, true),
            (0, "all bad", &text, Proof::AssertionFailed, false),
            (
                1,
                "test result: FAILED. 1 passed; 1 failed; 0 ignored;",
                &tests,
                Proof::AssertionFailed,
                false,
            ),
            (
                0,
                "No test files found, exiting with code 0",
                &tests,
                Proof::CouldNotRun,
                false,
            ),
            (
                2,
                "sh: 0: cannot open tests/all.sh: No such file",
                &tests,
                Proof::CouldNotRun,
                false,
            ),
            (
                1,
                "/usr/bin/python3: No module named pytest",
                &tests,
                Proof::CouldNotRun,
                false,
            ),
        ] {
            let run = run(code, output);
            assert_eq!(of(&failed, &run, expected, false), proof, "{output}");
            assert_eq!(is_uncounted(&run, expected), uncounted, "{output}");
        }
    }

    #[test]
    fn a_check_that_runs_tests_and_told_of_none_is_no_assertion_that_failed() {
        let told = "AssertionError: 1 != 2\n\nRan 1 test in 0.001s\n\nFAILED (failures=1)";
        for (command, output, proof) in [
            (
                "test -f test_a.py && python3 -m unittest test_a",
                "",
                Proof::FailedUncounted,
            ),
            (
                "grep -q 'def a' a.py && python3 -m unittest",
                "\n",
                Proof::FailedUncounted,
            ),
            (
                "[ -f test_a.py ] || { echo none; exit 1; }; pytest",
                "none",
                Proof::FailedUncounted,
            ),
            (
                "test -f test_a.py && python3 test_a.py",
                "",
                Proof::FailedUncounted,
            ),
            (
                "test -f test_a.py && python3 -m unittest test_a",
                told,
                Proof::AssertionFailed,
            ),
            (
                "python3 test_a.py",
                "Traceback (most recent call last):\nAssertionError",
                Proof::AssertionFailed,
            ),
            ("test -f a.test.js && npm test", "", Proof::FailedUncounted),
            (
                "npm test",
                "> node test.js\nAssertionError [ERR_ASSERTION]: 1 == 2",
                Proof::AssertionFailed,
            ),
            // What was approved as an assertion is one.
            (
                "python3 -c 'from unittest import mock; import app; assert app.double'",
                "AssertionError",
                Proof::AssertionFailed,
            ),
            ("grep -q good a.txt", "", Proof::AssertionFailed),
            ("sh check.sh", "", Proof::AssertionFailed),
        ] {
            let run = CheckRun {
                command: command.to_owned(),
                ..run(1, output)
            };
            let failed = fails(FailureClass::ValidationFailed);
            let found = of(&failed, &run, &Expectation::ExitZero, false);
            assert_eq!(found, proof, "{command}: {output}");
        }
    }

    #[test]
    fn what_lacks_a_module_or_may_not_be_executed_could_not_run() {
        let failed = fails(FailureClass::ValidationFailed);
        for (code, output) in [
            (1, "/usr/bin/python3: No module named pytest"),
            (126, "sh: 1: ./gate.sh: Permission denied"),
        ] {
            let found = of(&failed, &run(code, output), &Expectation::ExitZero, false);
            assert_eq!(found, Proof::CouldNotRun, "{output}");
        }
    }

    #[test]
    fn what_passed_before_proves_nothing_unless_it_was_to_be_preserved() {
        for (preserves, proof) in [(false, Proof::PassedBefore), (true, Proof::Preserved)] {
            let found = of(
                &Ruling::Holds,
                &run(0, ""),
                &Expectation::ExitZero,
                preserves,
            );
            assert_eq!(found, proof);
        }
        assert!(!Proof::PassedBefore.is_any() && Proof::CouldNotRun.is_any());
    }

    #[test]
    fn a_test_that_failed_now_and_passed_before_may_be_flaky() {
        let cargo = |lines: &str, passed: u32, failed: u32| {
            run(
                1,
                &format!("{lines}test result: x. {passed} passed; {failed} failed; 0 ignored;"),
            )
        };
        let before = cargo("test a ... ok\ntest b ... ok\n", 2, 0);
        let old = cargo("test a ... ok\ntest b ... FAILED\n", 1, 1);
        assert_eq!(passed_before(&old, &before), Some(vec!["b".to_owned()]));
        let new = cargo("test a ... ok\ntest b ... ok\ntest c ... FAILED\n", 2, 1);
        assert_eq!(passed_before(&new, &before), None);
        assert_eq!(passed_before(&old, &old), None);
        assert_eq!(passed_before(&run(1, "no tests"), &before), None);
        // pytest names its failures alone.
        let before = run(0, "..\n2 passed in 0.01s");
        let now = run(
            1,
            "FAILED a.py::test_b - assert 0\n1 failed, 1 passed in 0.01s",
        );
        assert_eq!(
            passed_before(&now, &before),
            Some(vec!["a.py::test_b".to_owned()])
        );
        let more = run(
            1,
            "FAILED a.py::test_c - assert 0\n1 failed, 2 passed in 0.01s",
        );
        assert_eq!(passed_before(&more, &before), None);
    }
}
