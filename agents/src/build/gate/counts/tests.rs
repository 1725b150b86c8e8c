//! Tries the parsers on output as the runners print it.

use super::*;

fn check(output: &str, expected: (u32, u32, u32), names: &[&str]) {
    let counts = count(output).unwrap_or_else(|| panic!("not recognised:\n{output}"));
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
fn output_that_reports_no_tests_is_not_counted() {
    for output in ["", "all good", "Finished in 3s", "ok", "1 passed the exam"] {
        assert_eq!(count(output), None, "{output}");
    }
}
