//! Looks for outputs that hide a test that failed, where the command ended well.

use super::count;

#[track_caller]
fn check(output: &str, failed: u32) {
    let counts = count(output, None).unwrap_or_else(|| panic!("not recognised:\n{output}"));
    assert_eq!(counts.failed, failed, "{output:?}");
}

#[test]
fn nothing_that_orders_a_terminal_about_hides_a_line() {
    for mark in [
        // A cursor that is kept and put back, and what is cut off.
        "\u{1b}7\u{1b}8\n",
        "\u{1b}\n",
        "\u{1b}[\n",
        "\u{1b}]0;title\n",
        "\u{1b}(B\u{1b}[?25h\u{1b}[2K",
        "\u{1b}[3~",
        "\u{1b}]0;title\u{7}",
        "\u{1b}]8;;https://example.org\u{1b}\\",
        "\u{8}\u{0}\u{16}",
        "50%\r100%\r",
        "50%\r\r\n",
    ] {
        check(&format!("{mark}1 failed, 2 passed in 0.12s\n"), 1);
        check(
            &format!("{mark}test result: FAILED. 1 passed; 1 failed; 0 ignored;\r\n"),
            1,
        );
        check(&format!("{mark}--- FAIL: TestMarks (0.00s)\n"), 1);
        check(&format!("1..1\n{mark}not ok 1 - marks\n"), 1);
    }
    // What would be part of a sequence in no terminal that is in use.
    check("\u{1b}--- FAIL: TestMarks (0.00s)\n", 1);
    check("\u{1b}(--- FAIL: TestMarks (0.00s)\n", 1);
}

#[test]
fn a_title_that_never_ends_is_text() {
    let output = "\u{1b}]1 failed, 2 passed in 0.12s\n3 passed in 0.10s\n";
    check(output, 1);
}

#[test]
fn a_test_that_failed_counts_though_its_binary_was_aborted() {
    let aborted = "running 2 tests\ntest marks ... FAILED\nfatal runtime error: stack overflow\n";
    let passed =
        "running 1 test\ntest adds ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored;\n";
    let failed = "running 1 test\ntest sums ... FAILED\ntest result: FAILED. 0 passed; 1 failed; 0 ignored;\n";
    check(aborted, 1);
    check(&format!("{aborted}{passed}"), 1);
    check(&format!("{aborted}{failed}{passed}"), 2);
    // A test wrote it, of a binary that tells how it went.
    let written = "running 1 test\ntest x ... FAILED\ntest adds ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored;\n";
    check(written, 0);
}

#[test]
fn the_word_of_a_plugin_hides_no_summary_of_pytest() {
    check("===== 1 failed, 2 passed, 1 retried in 0.12s =====\n", 1);
    for output in [
        "2 files, 3 folders in 0.12s\n",
        "1 failed, and more in 0.12s\n",
    ] {
        assert!(count(output, None).is_none(), "{output}");
    }
}

#[test]
fn a_report_that_breaks_off_tells_what_failed_before() {
    let failed = "<testcase name=\"marks\"><failure/></testcase>";
    for end in [
        "<testcase name=\"adds\">",
        "<testcase name=\"adds",
        "<testcase name=\"adds\"><system-out>",
    ] {
        check(&format!("<testsuite>{failed}{end}"), 1);
        let passed = format!("<testsuite><testcase name=\"sums\"/>{end}");
        assert!(count(&passed, None).is_none(), "{passed}");
    }
    check("<testsuite><testcase name=\"marks\"><failure>1 == 2", 1);
    // A title that speaks of such elements is no report.
    let told = "✔ writes <testsuite> for each file\n✔ writes <testcase> for each test\n✔ writes <failure> for each that fails\n";
    check(&format!("{told}ℹ tests 3\nℹ pass 3\nℹ fail 0\n"), 0);
}

#[test]
fn what_is_written_below_the_number_of_unittest_hides_no_outcome() {
    check(
        "Ran 2 tests in 0.001s\nException ignored in: <socket>\n\nFAILED (failures=1)\n",
        1,
    );
    for (output, expected) in [
        ("Ran 2 tests in 0.001s\nclosed\n\nOK (skipped=1)\n", (1, 1)),
        (
            "Ran 2 tests in 0.001s\n\nOK (skipped=1)\nFAILED (to close)\n",
            (1, 1),
        ),
        (
            "Ran 2 tests in 0.001s\n\nOK (skipped=1)\nFAILED (code=1)\n",
            (1, 1),
        ),
        (
            "Ran 0 tests in 0.000s\n\nNO TESTS RAN (skipped=1)\n",
            (0, 1),
        ),
    ] {
        let counts = count(output, None).unwrap();
        assert_eq!((counts.passed, counts.ignored), expected, "{output}");
        assert_eq!(counts.failed, 0, "{output}");
    }
    // That of another run is none of it.
    check(
        "Ran 2 tests in 0.001s\n\nOK\nRan 1 test in 0.001s\n\nFAILED (errors=1)\n",
        1,
    );
}

#[test]
fn the_name_of_a_module_hides_no_total_of_maven() {
    check(
        "[days] [ERROR] Tests run: 5, Failures: 1, Errors: 0, Skipped: 1\n",
        1,
    );
}
