//! Tries the parsers on output as the runners print it.

use super::*;

mod hidden;

fn check(output: &str, expected: (u32, u32, u32), names: &[&str]) {
    let counts = count(output, None).unwrap_or_else(|| panic!("not recognised:\n{output}"));
    assert_eq!(
        (counts.passed, counts.failed, counts.ignored),
        expected,
        "{output}"
    );
    assert_eq!(counts.names, names, "{output}");
}

#[test]
fn cargo_adds_up_its_binaries() {
    check(
        "   Compiling habits v0.1.0\n     Running unittests src/lib.rs (target/debug/deps/habits-1)\n\n\
         running 3 tests\ntest tests::adds ... ok\ntest tests::slow ... ignored\ntest tests::refuses - should panic ... ok\n\n\
         test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n\
         running 1 test\ntest marks_a_day ... FAILED\n\nfailures:\n\n\
         test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        (2, 1, 1),
        &["tests::adds", "tests::refuses"],
    );
    check(
        "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        (0, 0, 0),
        &[],
    );
}

#[test]
fn nextest_prints_a_summary() {
    check(
        "    Starting 3 tests across 1 binary\n        PASS [   0.004s] habits tests::adds\n        FAIL [   0.005s] habits tests::marks\n\
         ------------\n     Summary [   0.010s] 2 tests run: 1 passed, 1 failed, 1 skipped\n",
        (1, 1, 1),
        &["habits tests::adds"],
    );
    check(
        "     Summary [   0.010s] 1 test run: 1 passed, 0 skipped\n",
        (1, 0, 0),
        &[],
    );
}

#[test]
fn pytest_closes_with_a_line() {
    check(
        "============================= test session starts ==============================\n\
         tests/test_a.py::test_adds PASSED                                       [ 50%]\n\
         tests/test_a.py::test_marks FAILED                                      [100%]\n\
         =========================== short test summary info ============================\n\
         FAILED tests/test_a.py::test_marks - assert 1 == 2\n\
         ================= 1 failed, 1 passed, 2 skipped in 0.12s ==================\n",
        (1, 1, 2),
        &["tests/test_a.py::test_adds"],
    );
    check("..\n2 passed in 0.01s\n", (2, 0, 0), &[]);
    // What was not asked for is not left out.
    check("310 deselected in 0.25s\n", (0, 0, 0), &[]);
    check("1 passed, 309 deselected in 0.25s\n", (1, 0, 0), &[]);
    check(
        "============================ no tests ran in 0.00s =============================\n",
        (0, 0, 0),
        &[],
    );
    check(
        "================== 3 passed, 1 warning in 62.01s (0:01:02) ===================\n",
        (3, 0, 0),
        &[],
    );
}

#[test]
fn jest_and_vitest_name_what_passed() {
    check(
        "PASS src/sum.test.js\n  sum\n    \u{2713} adds (3 ms)\n    \u{2715} marks (1 ms)\n    \u{25cb} skipped later\n\n\
         Test Suites: 1 failed, 1 total\nTests:       1 failed, 1 skipped, 1 passed, 3 total\nTime:        0.5 s\n",
        (1, 1, 1),
        &["adds"],
    );
    check(
        " \u{2713} src/sum.test.ts (2 tests) 3ms\n\n Test Files  1 passed (1)\n      Tests  2 passed | 1 skipped (3)\n   Duration  300ms\n",
        (2, 0, 1),
        &["src/sum.test.ts (2 tests)"],
    );
    check(
        "\u{1b}[1mTests:       \u{1b}[22m\u{1b}[32m2 passed\u{1b}[39m, 2 total\n",
        (2, 0, 0),
        &[],
    );
}

#[test]
fn node_speaks_in_two_ways() {
    check(
        "\u{2714} adds (0.5ms)\n\u{2716} marks (1.2ms)\n\u{2139} tests 2\n\u{2139} suites 0\n\u{2139} pass 1\n\u{2139} fail 1\n\
         \u{2139} cancelled 0\n\u{2139} skipped 0\n\u{2139} todo 0\n\u{2139} duration_ms 50\n",
        (1, 1, 0),
        &["adds"],
    );
    check(
        "TAP version 13\n# Subtest: adds\nok 1 - adds\n  ---\n  duration_ms: 0.5\n  ...\n# Subtest: later\nok 2 - later # SKIP\n\
         1..2\n# tests 2\n# pass 1\n# fail 0\n# cancelled 0\n# skipped 1\n# todo 0\n",
        (1, 0, 1),
        &["adds"],
    );
}

#[test]
fn tap_counts_its_points() {
    check(
        "1..4\nok 1 - adds\nnot ok 2 - marks\nok 3 # skip no database\nnot ok 4 - later # TODO not yet\n",
        (1, 1, 2),
        &["adds"],
    );
    check("TAP version 14\n1..0\n", (0, 0, 0), &[]);
}

/// What node 20 says of a test that passes and one that does not.
const NODE_FAILED: &str = "TAP version 13\n# Subtest: good\nok 1 - good\n  ---\n  duration_ms: 1.778047\n  ...\n# Subtest: bad\nnot ok 2 - bad\n  \
    ---\n  duration_ms: 2.007613\n  failureType: 'testCodeFailure'\n  error: '1 == 2'\n  code: 'ERR_ASSERTION'\n  ...\n1..2\n# tests 2\n\
    # suites 0\n# pass 1\n# fail 1\n# cancelled 0\n# skipped 0\n# todo 0\n# duration_ms 247.672184\n";
/// What it says of one that passes.
const NODE_PASSED: &str = "TAP version 13\n# Subtest: fine\nok 1 - fine\n  ---\n  duration_ms: 5.924955\n  ...\n1..1\n# tests 1\n# suites 0\n\
    # pass 1\n# fail 0\n# cancelled 0\n# skipped 0\n# todo 0\n# duration_ms 199.584293\n";

#[test]
fn two_runs_of_node_are_added_up() {
    let both = format!("{NODE_FAILED}{NODE_PASSED}");
    check(&both, (2, 1, 0), &["fine", "good"]);
    let all = "> test\n> node --test a.test.js && node --test b.test.js\n\n";
    check(&format!("{all}{both}"), (2, 1, 0), &["fine", "good"]);
}

#[test]
fn runs_that_are_indented_or_end_their_lines_otherwise_are_read_as_others() {
    let indented = |output: &str| -> String {
        let lines = output.lines().flat_map(|line| ["  ", line, "\n"]);
        lines.collect()
    };
    let both = format!("{NODE_FAILED}{NODE_PASSED}");
    let cut = both.replace('\n', "\r\n");
    for output in [
        indented(&both),
        format!("{}{NODE_PASSED}", indented(NODE_FAILED)),
        cut,
    ] {
        check(&output, (2, 1, 0), &["fine", "good"]);
    }
    let plain = "1..2\nok 1 - adds\nnot ok 2 - marks\n";
    for output in [
        indented(plain),
        indented(&format!("TAP version 13\n{plain}")),
    ] {
        check(&output, (1, 1, 0), &["adds"]);
    }
    // What stands further out than the run before it is no part of that.
    let outer = format!("{}not ok 1 - bad\n1..1\n", indented(NODE_PASSED));
    assert_eq!(count(&outer, None).map(|counts| counts.failed), Some(1));
}

#[test]
fn a_part_of_a_run_that_tells_a_version_of_its_own_is_no_run() {
    check(
        "TAP version 14\n# Subtest: suite\n    TAP version 14\n    ok 1 - in ok\n    not ok 2 - in bad\n    1..2\n\
         not ok 1 - suite\nok 2 - fine\n1..2\n",
        (1, 1, 0),
        &["fine"],
    );
}

#[test]
fn a_part_whose_run_tells_no_version_is_no_run_either() {
    check(
        "1..1\n# Subtest: suite\n    TAP version 13\n    not ok 1 - x\n    1..1\nok 1 - suite\n",
        (1, 0, 0),
        &["suite"],
    );
}

#[test]
fn what_is_indented_behind_a_run_that_is_over_is_a_run_of_its_own() {
    let indented = format!("\n{NODE_FAILED}{NODE_PASSED}").replace('\n', "\n  ");
    check(
        &format!("{NODE_PASSED}{indented}"),
        (3, 1, 0),
        &["fine", "fine", "good"],
    );
    check(
        &format!("1..1\nok 1 - adds\n{indented}"),
        (3, 1, 0),
        &["adds", "fine", "good"],
    );
    // One that was skipped as a whole.
    check(
        &format!("TAP version 13\n1..0 # skipped\n{indented}"),
        (2, 1, 0),
        &["fine", "good"],
    );
}

#[test]
fn a_cancelled_test_is_a_failed_one() {
    for cause in [
        "testTimeoutFailure'\n  error: 'test timed out after 50ms'",
        "cancelledByParent'\n  error: 'Promise resolution is still pending but the event loop has already resolved'",
    ] {
        let told = format!(
            "TAP version 13\n# Subtest: fine\nok 1 - fine\n  ---\n  duration_ms: 1.998238\n  ...\n# Subtest: slow\nnot ok 2 - slow\n  ---\n  \
             duration_ms: 52.256126\n  failureType: '{cause}\n  code: 'ERR_TEST_FAILURE'\n  ...\n1..2\n# tests 2\n# suites 0\n# pass 1\n\
             # fail 0\n# cancelled 1\n# skipped 0\n# todo 0\n# duration_ms 1201.267957\n"
        );
        check(&told, (1, 1, 0), &["fine"]);
    }
}

#[test]
fn what_a_test_of_node_prints_is_none_of_its_totals() {
    // `console.log` of `# fail 0`, `TAP version 13`, `pass 9` and `fail 0`, as node passes it on.
    check(
        "TAP version 13\n# \\# fail 0\n# TAP version 13\n# pass 9\n# fail 0\n# Subtest: suite\n    # Subtest: in ok\n    ok 1 - in ok\n      ---\n      \
         duration_ms: 2.539849\n      ...\n    # Subtest: in bad\n    not ok 2 - in bad\n      ---\n      failureType: 'testCodeFailure'\n      ...\n    \
         1..2\nnot ok 1 - suite\n  ---\n  type: 'suite'\n  failureType: 'subtestsFailed'\n  error: '1 subtest failed'\n  ...\n1..1\n# tests 2\n\
         # suites 1\n# pass 1\n# fail 1\n# cancelled 0\n# skipped 0\n# todo 0\n",
        (1, 1, 0),
        &[],
    );
}

#[test]
fn go_counts_tests_not_packages() {
    check(
        "=== RUN   TestAdds\n--- PASS: TestAdds (0.00s)\n=== RUN   TestMarks\n--- FAIL: TestMarks (0.00s)\n--- SKIP: TestLater (0.00s)\nFAIL\n",
        (1, 1, 1),
        &["TestAdds"],
    );
    check("?   \texample\t[no test files]\n", (0, 0, 0), &[]);
    check(
        "{\"Action\":\"run\",\"Package\":\"example\",\"Test\":\"TestAdds\"}\n{\"Action\":\"pass\",\"Package\":\"example\",\"Test\":\"TestAdds\",\"Elapsed\":0}\n\
         {\"Action\":\"pass\",\"Package\":\"example\",\"Elapsed\":0}\n",
        (1, 0, 0),
        &["example/TestAdds"],
    );
}

#[test]
fn junit_counts_its_cases() {
    check(
        "<?xml version=\"1.0\"?><testsuites><testsuite name=\"a\" tests=\"4\">\
         <testcase classname=\"A\" name=\"adds &gt; one\" time=\"0.1\"/>\
         <testcase classname=\"A\" name='marks'><failure message=\"x > y\">boom</failure></testcase>\
         <testcase classname=\"A\" name=\"later\"><skipped/></testcase>\
         <testcase name=\"bare\"></testcase></testsuite></testsuites>",
        (2, 1, 1),
        &["A::adds &gt; one", "bare"],
    );
}

#[test]
fn unittest_sums_up_below_a_line() {
    check(
        "..F.s.E\n======================================================================\n\
         ERROR: test_err (test_a.A.test_err)\n----------------------------------------------------------------------\n\
         Traceback (most recent call last):\nValueError: x\n\n\
         ======================================================================\nFAIL: test_sub (test_a.A.test_sub) (i=1)\n\
         ----------------------------------------------------------------------\nAssertionError: 1 == 1\n\n\
         ----------------------------------------------------------------------\nRan 7 tests in 0.001s\n\n\
         FAILED (failures=2, errors=1, skipped=1, expected failures=1)\n",
        (2, 3, 2),
        &[],
    );
    check(
        "test_doc (test_a.A.test_doc)\nAdds two numbers. ... ok\ntest_ok (test_a.A.test_ok) ... ok\n\
         test_skip (test_a.A.test_skip) ... skipped 'later'\n\n\
         ----------------------------------------------------------------------\nRan 3 tests in 0.001s\n\nOK (skipped=1)\n",
        (2, 0, 1),
        &["test_doc (test_a.A.test_doc)", "test_ok (test_a.A.test_ok)"],
    );
    check("Ran 0 tests in 0.000s\n\nOK\n", (0, 0, 0), &[]);
    check("Ran 0 tests in 0.000s\n\nNO TESTS RAN\n", (0, 0, 0), &[]);
    // A module that is skipped as a whole is no test that ran.
    check(
        ".s\n----------------------------------------------------------------------\nRan 1 test in 0.001s\n\nOK (skipped=1)\n",
        (1, 0, 1),
        &[],
    );
    check(
        "s\nRan 1 test in 0.001s\n\nOK (skipped=1)\n",
        (0, 0, 1),
        &[],
    );
    // Two runs one after the other.
    check(
        "Ran 2 tests in 0.1s\n\nOK\nRan 1 test in 0.1s\n\nFAILED (failures=1)\n",
        (2, 1, 0),
        &[],
    );
}

#[test]
fn pytest_with_subtests_counts_tests() {
    check(
        "753 passed, 21052 subtests passed in 61.20s\n",
        (753, 0, 0),
        &[],
    );
    check(
        "SUBFAILED(i=1) test_p.py::test_sub - assert 1 != 1\nFAILED test_p.py::test_sub - contains 1 failed subtest\n\
         ERROR test_p.py::test_err - ValueError\n\
         = 3 failed, 2 passed, 1 skipped, 1 xfailed, 1 xpassed, 1 error, 5 subtests passed in 0.05s =\n",
        (3, 4, 2),
        &[],
    );
    check(
        "1 passed in 0.01s\n1 failed, 2 passed in 0.02s\n",
        (3, 1, 0),
        &[],
    );
}

#[test]
fn mocha_says_what_passes() {
    check(
        "\n\n  sum\n    \u{2714} adds\n    1) fails\n    - later\n\n\n  1 passing (3ms)\n  1 pending\n  1 failing\n\n\
         1) sum\n       fails:\n     Error: no\n",
        (1, 1, 1),
        &["adds"],
    );
    check("\n  .!,\n\n  12 passing (2s)\n", (12, 0, 0), &[]);
}

#[test]
fn dotnet_sums_up_in_three_ways() {
    check(
        "  Passed Habits.Tests.Adds [5 ms]\n  Failed Habits.Tests.Marks [1 ms]\n\n\
         Failed!  - Failed:     1, Passed:     2, Skipped:     1, Total:     4, Duration: 5 ms - habits.dll (net8.0)\n\
         Passed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3, Duration: 5 ms - more.dll (net8.0)\n",
        (5, 1, 1),
        &["Habits.Tests.Adds"],
    );
    check(
        "Test summary: total: 4, failed: 1, succeeded: 2, skipped: 1, duration: 1.2s\n",
        (2, 1, 1),
        &[],
    );
    check(
        "Total tests: 3\n     Passed: 2\n     Failed: 1\n Total time: 1.1 Seconds\n",
        (2, 1, 0),
        &[],
    );
}

#[test]
fn each_assembly_of_dotnet_counts() {
    let first =
        "Test Run Successful.\nTotal tests: 2\n     Passed: 2\n Total time: 0.8747 Seconds\n";
    let second = "Passed: 9\nFailed: 0\n\nTest Run Failed.\nTotal tests: 3\n     Passed: 1\n     Failed: 1\n    Skipped: 1\n Total time: 1.1 Seconds\n";
    check(&format!("{first}{second}"), (3, 1, 1), &[]);
    let crashed = "Test Run Aborted.\nTotal tests: Unknown\n     Passed: 1\n     Failed: 1\n Total time: 1.1 Seconds\n";
    check(&format!("{first}{crashed}"), (3, 1, 0), &[]);
    // One run that sums up in two ways.
    let again = "Test summary: total: 2, failed: 0, succeeded: 2, skipped: 0, duration: 1.2s\n";
    check(&format!("{first}{again}"), (2, 0, 0), &[]);
}

#[test]
fn maven_and_gradle_are_read() {
    check(
        "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 1, Time elapsed: 0.05 s -- in habits.AddTest\n\
         [ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.05 s <<< FAILURE! -- in habits.MarkTest\n\
         [INFO] Results:\n[ERROR] Tests run: 5, Failures: 1, Errors: 0, Skipped: 1\n",
        (3, 1, 1),
        &[],
    );
    check(
        "> Task :test\n\nHabitsTest > adds() PASSED\n\nHabitsTest > marks() FAILED\n    java.lang.AssertionError\n\n\
         HabitsTest > later() SKIPPED\n\n3 tests completed, 1 failed, 1 skipped\n",
        (1, 1, 1),
        &["HabitsTest > adds()"],
    );
    check("3 tests completed, 1 failed\n", (2, 1, 0), &[]);
}

#[test]
fn of_what_gradle_logs_and_sums_up_the_higher_number_counts() {
    // A build that logs what passed, and ends well whatever fails.
    check(
        "> Task :test\n\nHabitsTest > adds() PASSED\n\nHabitsTest > more() PASSED\n\n3 tests completed, 1 failed\nThere were failing tests. \
         See the report at: build/reports/tests/test/index.html\n\nBUILD SUCCESSFUL in 2s\n",
        (2, 1, 0),
        &["HabitsTest > adds()", "HabitsTest > more()"],
    );
    // One that logs what fails, which is what it does unasked.
    check(
        "> Task :a:test FAILED\n\nHabitsTest > marks() FAILED\n    java.lang.AssertionError\n\n9 tests completed, 1 failed, 2 skipped\n",
        (6, 1, 2),
        &[],
    );
    // Of two tasks it sums up the one that failed alone, and logs both.
    check(
        "> Task :a:test\n\nHabitsTest > adds() PASSED\n\nHabitsTest > more() PASSED\n\n> Task :b:test FAILED\n\nMarksTest > marks() FAILED\n\n\
         1 test completed, 1 failed\n",
        (2, 1, 0),
        &["HabitsTest > adds()", "HabitsTest > more()"],
    );
}

#[test]
fn failed_tests_have_names_too() {
    let rows = [
        (
            "test a ... FAILED\ntest result: FAILED. 0 passed; 1 failed; 0 ignored;\n",
            "a",
        ),
        (
            "        FAIL [   0.005s] habits marks\n     Summary [   0.010s] 1 test run: 0 passed, 1 failed, 0 skipped\n",
            "habits marks",
        ),
        (
            "FAILED a.py::test_b - assert 1\n1 failed in 0.1s\n",
            "a.py::test_b",
        ),
        (
            "FAIL: test_b (a.A.test_b)\nRan 1 test in 0.1s\n\nFAILED (failures=1)\n",
            "test_b (a.A.test_b)",
        ),
        (
            "    \u{2715} marks (1 ms)\nTests:       1 failed, 1 total\n",
            "marks",
        ),
        ("1..1\nnot ok 1 - marks\n", "marks"),
        ("--- FAIL: TestMarks (0.00s)\nFAIL\n", "TestMarks"),
    ];
    for (output, name) in rows {
        let counts = count(output, None).unwrap();
        assert_eq!(
            (counts.failed, counts.failed_names),
            (1, vec![name.to_owned()]),
            "{output}"
        );
    }
}

#[test]
fn a_failure_that_any_runner_tells_is_a_failure() {
    let both = "test result: ok. 3 passed; 0 failed; 0 ignored;\n1 failed, 2 passed in 0.1s\n";
    let counts = count(both, None).unwrap();
    assert_eq!((counts.passed, counts.failed), (3, 1));
}

/// What runners say of a test that passes and one that does not, and of one that passes.
const RUNS: &[(&str, &str)] = &[
    (
        "test adds ... ok\ntest marks ... FAILED\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        "test more ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
    ),
    (
        "     Summary [   0.010s] 2 tests run: 1 passed, 1 exec failed, 0 skipped\n",
        "     Summary [   0.010s] 1 test run: 1 passed, 0 skipped\n",
    ),
    ("1 failed, 1 passed in 0.02s\n", "1 passed in 0.01s\n"),
    (
        ".F\nRan 2 tests in 0.001s\n\nFAILED (failures=1)\n",
        ".\nRan 1 test in 0.001s\n\nOK\n",
    ),
    (
        "Test Suites: 1 failed, 1 total\nTests:       1 failed, 1 passed, 2 total\n",
        "Test Suites: 1 passed, 1 total\nTests:       1 passed, 1 total\n",
    ),
    (
        " Test Files  1 failed (1)\n      Tests  1 failed | 1 passed (2)\n   Duration  300ms\n",
        " Test Files  1 passed (1)\n      Tests  1 passed (1)\n   Duration  300ms\n",
    ),
    (
        "\u{2139} tests 2\n\u{2139} suites 0\n\u{2139} pass 1\n\u{2139} fail 0\n\u{2139} cancelled 1\n\u{2139} skipped 0\n\u{2139} todo 0\n",
        "\u{2139} tests 1\n\u{2139} suites 0\n\u{2139} pass 1\n\u{2139} fail 0\n\u{2139} cancelled 0\n\u{2139} skipped 0\n\u{2139} todo 0\n",
    ),
    (NODE_FAILED, NODE_PASSED),
    (
        "  s\n    \u{2714} good\n    1) bad\n\n\n  1 passing (6ms)\n  1 failing\n\n",
        "  \u{2714} fine\n\n  1 passing (2ms)\n\n",
    ),
    // The reporter of mocha that speaks TAP.
    (
        "ok 1 s good\nnot ok 2 s bad\n  no\n  Error: no\n# tests 2\n# pass 1\n# fail 1\n1..2\n",
        "ok 1 fine\n# tests 1\n# pass 1\n# fail 0\n1..1\n",
    ),
    // Tape.
    (
        "TAP version 13\n# good\nok 1 yes\nnot ok 2 no\n  ---\n    operator: equal\n  ...\n\n1..2\n# tests 2\n# pass  1\n# fail  1\n\n",
        "TAP version 13\n# fine\nok 1 yes\n\n1..1\n# tests 1\n# pass  1\n\n# ok\n\n",
    ),
    // Perl.
    ("ok 1 - good\nnot ok 2 - bad\n1..2\n", "ok 1 - fine\n1..1\n"),
    (
        "Failed!  - Failed:     1, Passed:     1, Skipped:     0, Total:     2, Duration: 5 ms - habits.dll (net8.0)\n",
        "Passed!  - Failed:     0, Passed:     1, Skipped:     0, Total:     1, Duration: 5 ms - more.dll (net8.0)\n",
    ),
    (
        "Test summary: total: 2, failed: 1, succeeded: 1, skipped: 0, duration: 1.2s\n",
        "Test summary: total: 1, failed: 0, succeeded: 1, skipped: 0, duration: 1.2s\n",
    ),
    (
        "Test Run Failed.\nTotal tests: 2\n     Passed: 1\n     Failed: 1\n Total time: 1.1 Seconds\n",
        "Test Run Successful.\nTotal tests: 1\n     Passed: 1\n Total time: 1.1 Seconds\n",
    ),
    (
        "[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0\n",
        "[INFO] Tests run: 1, Failures: 0, Errors: 0, Skipped: 0\n",
    ),
    (
        "HabitsTest > adds() PASSED\n\n2 tests completed, 1 failed\n",
        "MoreTest > adds() PASSED\n\n",
    ),
    (
        "--- PASS: TestAdds (0.00s)\n--- FAIL: TestMarks (0.00s)\nFAIL\nFAIL\thabits\t0.002s\n",
        "--- PASS: TestMore (0.00s)\nPASS\nok  \tmore\t0.002s\n",
    ),
    (
        "<testsuite><testcase name=\"adds\"/><testcase name=\"marks\"><failure/></testcase></testsuite>\n",
        "<testsuite><testcase name=\"more\"/></testsuite>\n",
    ),
];

#[test]
fn runs_of_one_runner_are_added_up() {
    for (failed, passed) in RUNS {
        for both in [format!("{failed}{passed}"), format!("{passed}{failed}")] {
            let counts = count(&both, None).unwrap();
            let counted = (counts.passed, counts.failed, counts.ignored);
            assert_eq!(counted, (2, 1, 0), "{both}");
        }
    }
}

#[test]
fn no_run_hides_what_failed_in_another() {
    for (failed, _) in RUNS {
        for (_, passed) in RUNS {
            for both in [format!("{failed}{passed}"), format!("{passed}{failed}")] {
                let counts = count(&both, None).unwrap();
                assert!(counts.failed > 0, "{both}");
            }
        }
    }
}

#[test]
fn no_claim_makes_a_count_begin_at_nothing_again() {
    for claim in [
        "test result: FAILED. 0 passed; 4294967295 failed; 0 ignored;\n",
        "     Summary [   0.010s] 2 tests run: 0 passed, 4294967295 failed, 1 exec failed, 0 skipped\n",
        "4294967295 failed, 1 error in 0.02s\n",
        "Ran 1 test in 0.001s\n\nFAILED (failures=4294967295, errors=1)\n",
        "Tests:       4294967295 failed, 2 total\n",
        "\u{2139} tests 2\n\u{2139} pass 0\n\u{2139} fail 4294967295\n\u{2139} cancelled 1\n",
        "TAP version 13\n1..1\n# pass 0\n# fail 4294967295\n# cancelled 1\n",
        "  0 passing (6ms)\n  4294967295 failing\n",
        "Failed!  - Failed: 4294967295, Passed: 0, Skipped: 0, Total: 1, Duration: 5 ms - habits.dll (net8.0)\n",
        "[ERROR] Tests run: 2, Failures: 4294967295, Errors: 1, Skipped: 0\n",
        "2 tests completed, 4294967295 failed\n",
    ] {
        let counts = count(&claim.repeat(2), None).unwrap();
        assert_eq!(counts.failed, u32::MAX, "{claim}");
    }
}

#[test]
fn a_project_describes_its_own_runner() {
    let settings = ropewalk_config::settings::CountPatterns {
        passed: Some(r"^OK: (\d+)$".to_owned()),
        failed: Some("^BAD ".to_owned()),
        ignored: None,
    };
    let patterns = Patterns::from(&settings);
    let counts = count("OK: 3\nBAD a\nBAD b\nOK: 4\n", Some(&patterns)).unwrap();
    assert_eq!((counts.passed, counts.failed, counts.ignored), (7, 2, 0));
    assert_eq!(count("all is well", Some(&patterns)), None);
}

#[test]
fn output_that_reports_no_tests_is_not_counted() {
    for output in [
        "",
        "all good",
        "Finished in 3s",
        "ok",
        "1 passed the exam",
        "--- a/file\n+++ b/file",
        "3 passing thoughts",
    ] {
        assert_eq!(count(output, None), None, "{output}");
    }
}
