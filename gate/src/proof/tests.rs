//! Tries what passes are worth.

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
        (101, "error: no test target named `x`", Proof::CouldNotRun),
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
            (&run(code, output), None),
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
        let found = of(
            &fails(class),
            (&run(1, ""), None),
            &Expectation::ExitZero,
            false,
        );
        assert_eq!(found, Proof::CouldNotRun);
    }
    let held = Ruling::Held {
        finding: String::new(),
    };
    let found = of(&held, (&run(127, ""), None), &Expectation::ExitZero, false);
    assert_eq!(found, Proof::CouldNotRun);
}

#[test]
fn suites_that_failed_outside_any_test_are_no_assertion_that_failed_whatever_the_exit_code() {
    let failed = fails(FailureClass::ValidationFailed);
    let tests = Expectation::Tests(1);
    // Whether what failed loads a file or clears up behind its tests, jest and vitest do not tell.
    let jest = "FAIL src/b.test.js\n  ReferenceError: two is not defined\n\nTest Suites: 1 failed, 1 total\nTests:       0 total\n";
    let unloaded = "FAIL src/b.test.js\n  Cannot find module './two'\n\nTest Suites: 1 failed, 1 total\nTests:       0 total\n";
    for (output, proof) in [
        (jest, Proof::FailedUncounted),
        (
            "Test Suites: 1 failed, 3 passed, 4 total\nTests:       9 passed, 9 total\n",
            Proof::FailedUncounted,
        ),
        (
            " Test Files  1 failed | 2 passed (3)\n      Tests  9 passed (9)\n",
            Proof::FailedUncounted,
        ),
        ("FAIL\tmore\t0.002s\nFAIL\n", Proof::FailedUncounted),
        (unloaded, Proof::CouldNotRun),
        (
            "--- PASS: TestAdds (0.00s)\nok  \thabits\t0.002s\nFAIL\tmore [build failed]\n",
            Proof::CouldNotRun,
        ),
        ("FAIL\tmore [build failed]\n", Proof::CouldNotRun),
        ("  FAIL\tmore [setup failed]\n", Proof::CouldNotRun),
    ] {
        for (code, expected) in [(0, &Expectation::ExitZero), (0, &tests), (1, &tests)] {
            let run = run(code, output);
            let found = [
                of(&failed, (&run, None), expected, false),
                of_tests_alone(&failed, (&run, None), expected),
            ];
            assert_eq!(found, [proof; 2], "{code} {output}");
            assert!(!is_uncounted(&run, expected), "{code} {output}");
        }
        assert!(!selected_no_test(&run(1, output)), "{output}");
        assert!(stumbles(&run(1, output)), "{output}");
    }
}

#[test]
fn a_test_that_failed_beside_a_suite_that_could_not_be_loaded_says_more() {
    let failed = fails(FailureClass::ValidationFailed);
    for output in [
        "Test Suites: 2 failed, 2 total\nTests:       1 failed, 8 passed, 9 total\n",
        // Without `-v` go tells of no test that passed.
        "--- FAIL: TestAdds (0.00s)\nFAIL\nFAIL\ta\t0.002s\nFAIL\tb [build failed]\nFAIL\n",
        "--- FAIL: TestAdds (0.00s)\nFAIL\nFAIL\ta\t0.002s\nFAIL\tb [setup failed]\nFAIL\n",
    ] {
        for code in [0, 1] {
            let run = run(code, output);
            let found = of(&failed, (&run, None), &Expectation::Tests(1), false);
            assert_eq!(found, Proof::AssertionFailed, "{code} {output}");
        }
    }
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
        let found = of_tests_alone(&ruling, (&run, None), &Expectation::ExitZero);
        assert_eq!(found, expected, "{output}");
    }
    let (network, failed) = (fails(FailureClass::Network), "not ok 1 - two\n1..1");
    for (ruling, code, output, expected) in [
        (Ruling::Holds, 0, "ok", Proof::PassedWithoutWork),
        (network, 1, failed, Proof::CouldNotRun),
    ] {
        let run = run(code, output);
        let found = of_tests_alone(&ruling, (&run, None), &Expectation::ExitZero);
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
        assert_eq!(
            of(&failed, (&run, None), expected, false),
            proof,
            "{output}"
        );
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
        let found = of(&failed, (&run, None), &Expectation::ExitZero, false);
        assert_eq!(found, proof, "{command}: {output}");
    }
}

#[test]
fn tests_that_are_counted_with_the_work_are_what_their_check_shows_wherever_a_guard_stands() {
    let passes = "Ran 1 test in 0.001s\n\nOK";
    let fails_one =
        "FAIL: test_two (test_a.A.test_two)\n\nRan 1 test in 0.001s\n\nFAILED (failures=1)\n";
    let stops = "make: *** [Makefile:2: two] Error 1";
    let stops_behind = format!("{passes}\n{stops}");
    let fails_and_stops = format!("{fails_one}{stops}");
    let is_not_loaded = "ImportError: Failed to import test module: test_a\n\nRan 1 test in 0.000s\n\nFAILED (errors=1)";
    for (command, before, with_work, proof) in [
        ("make -s two", stops, passes, Proof::FailedUncounted),
        (
            "npm run two",
            "> a@1.0.0 two\n> test -f test_a.py && python3 -m unittest test_a",
            passes,
            Proof::FailedUncounted,
        ),
        (
            "sh run.sh test_a.py",
            "test_a.py is missing",
            passes,
            Proof::FailedUncounted,
        ),
        (
            "python3 -c 'import a; assert a.two' && python3 test_a.py",
            "AssertionError",
            passes,
            Proof::FailedUncounted,
        ),
        // What ran before the guard failed no more than what stands behind it.
        (
            "make -s all",
            stops_behind.as_str(),
            passes,
            Proof::FailedUncounted,
        ),
        (
            "make -s two",
            fails_and_stops.as_str(),
            passes,
            Proof::AssertionFailed,
        ),
        (
            "python3 -m unittest test_a",
            is_not_loaded,
            passes,
            Proof::CouldNotRun,
        ),
        // What has no tests run says itself why it failed.
        ("make -s lint", stops, "", Proof::AssertionFailed),
        (
            "sh check.sh",
            "two is missing",
            "ok",
            Proof::AssertionFailed,
        ),
        // Of a runner that tells no numbers its line is known.
        (
            "test -f a_test.go && go test ./...",
            "",
            "ok  \ta\t0.002s",
            Proof::FailedUncounted,
        ),
    ] {
        let there = |code, output: &str| CheckRun {
            command: command.to_owned(),
            ..run(code, output)
        };
        let (before, with_work) = (there(1, before), there(0, with_work));
        let failed = fails(FailureClass::ValidationFailed);
        let runs = (&before, Some(&with_work));
        let found = of(&failed, runs, &Expectation::ExitZero, false);
        assert_eq!(found, proof, "{command}: {}", before.output);
        if proof == Proof::FailedUncounted {
            let alone = of_tests_alone(&failed, runs, &Expectation::ExitZero);
            assert_eq!(alone, proof, "{command}: {}", before.output);
        }
    }
}

#[test]
fn what_lacks_a_module_or_may_not_be_executed_could_not_run() {
    let failed = fails(FailureClass::ValidationFailed);
    for (code, output) in [
        (1, "/usr/bin/python3: No module named pytest"),
        (126, "sh: 1: ./gate.sh: Permission denied"),
    ] {
        let found = of(
            &failed,
            (&run(code, output), None),
            &Expectation::ExitZero,
            false,
        );
        assert_eq!(found, Proof::CouldNotRun, "{output}");
    }
}

#[test]
fn what_passed_before_proves_nothing_unless_it_was_to_be_preserved() {
    for (preserves, proof) in [(false, Proof::PassedBefore), (true, Proof::Preserved)] {
        let found = of(
            &Ruling::Holds,
            (&run(0, ""), None),
            &Expectation::ExitZero,
            preserves,
        );
        assert_eq!(found, proof);
    }
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
