//! Reads what gotestsum adds to `go test`: how each run ended, and in its format `testname` how each test went.

use ropewalk_schemas::attempt::TestCounts;

/// What was written of one run.
pub(super) struct Run<'a> {
    pub(super) lines: &'a [&'a str],
    /// Whether gotestsum ended it.
    pub(super) is_closed: bool,
    /// Whether it ran again what had failed in the one before it, by `--rerun-fails`.
    pub(super) is_again: bool,
}

/// Cuts an output into runs, behind each of which gotestsum says which one it was.
///
/// Such a line may be written by a test too. `go test` itself tells of the package behind it; then, nothing ran again. Nor did it where
/// gotestsum tells more failures than there are: it adds them up from its first run on, and that one began further above.
pub(super) fn runs<'a>(lines: &'a [&'a str]) -> Vec<Run<'a>> {
    let mut runs = Vec::new();
    let mut before = None;
    let mut failed: u32 = 0;
    let mut misses_failures = false;
    for lines in lines.chunk_by(|line, _| ended_run(line).is_none()) {
        let end = lines.last().and_then(|line| ended_run(line));
        let number = end.map(|end| end.number);
        let more = super::count_run(lines, end.is_some()).map_or(0, |counts| counts.failed);
        failed = if number > Some(1) {
            failed.saturating_add(more)
        } else {
            more
        };
        misses_failures |= end.is_some_and(|end| end.failures > failed);
        runs.push(Run {
            lines,
            is_closed: end.is_some(),
            is_again: number > Some(1) && before == number.map(|number| number - 1),
        });
        before = number;
    }
    let is_of_go =
        |run: &Run<'_>| !run.is_closed && run.lines.iter().any(|line| super::is_told(line));
    let is_of_go = runs.last().is_some_and(is_of_go);
    if is_of_go || misses_failures {
        return vec![Run {
            lines,
            is_closed: !is_of_go,
            is_again: false,
        }];
    }
    runs
}

/// What gotestsum says behind a run.
#[derive(Clone, Copy)]
struct End {
    number: u32,
    /// How many tests failed in it and in the runs before it.
    failures: u32,
}

/// Reads the end of a run: `DONE 8 tests, 4 failures in 0.51s` of the first, `DONE 2 runs, 9 tests, 4 failures in 0.62s` of
/// the second. One that ended by an error did not run all that it was to run.
fn ended_run(line: &str) -> Option<End> {
    let (parts, time) = line.strip_prefix("DONE ")?.rsplit_once(" in ")?;
    if !super::is_time(time) {
        return None;
    }
    let mut end = End {
        number: 1,
        failures: 0,
    };
    let mut has_tests = false;
    for part in parts.split(", ") {
        let (number, word) = part.split_once(' ')?;
        let number: u32 = number.parse().ok()?;
        match word {
            "runs" if number > 1 => end.number = number,
            "test" | "tests" => has_tests = true,
            "failure" | "failures" => end.failures = number,
            "skipped" => {}
            _ => return None,
        }
    }
    has_tests.then_some(end)
}

/// Counts `PASS habits/days.TestAdds (0.00s)`, which says `(re-run 1)` behind the name where the test ran again.
pub(super) fn count(lines: &[&str]) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    let mut seen = false;
    for (word, name) in lines.iter().filter_map(|line| outcome(line)) {
        seen = true;
        super::add(&mut counts, word, name);
    }
    seen.then_some(counts)
}

fn outcome(line: &str) -> Option<(&'static str, &str)> {
    // So the format of GitHub folds what a test wrote.
    let line = line.strip_prefix("::group::").unwrap_or(line);
    let (word, rest) = [("PASS ", "pass"), ("FAIL ", "fail"), ("SKIP ", "skip")]
        .into_iter()
        .find_map(|(begin, word)| Some((word, line.strip_prefix(begin)?)))?;
    let (test, time) = rest.trim_start().split_once(" (")?;
    if !time.ends_with("s)") {
        return None;
    }
    Some((word, without_package(test)?))
}

/// Leaves out the package, in whose path there may be dots too: by these words begins what go takes for a test.
fn without_package(test: &str) -> Option<&str> {
    const WORDS: [&str; 4] = ["Test", "Example", "Fuzz", "Benchmark"];
    let is_name = |text: &&str| WORDS.iter().any(|word| text.starts_with(word));
    let behind_dots = test.match_indices('.').map(|(at, _)| &test[at + 1..]);
    [test].into_iter().chain(behind_dots).find(is_name)
}

#[cfg(test)]
mod tests {
    use super::super::count;

    fn check(output: &str, expected: (u32, u32, u32)) {
        let counts = count(output).unwrap_or_else(|| panic!("not recognised:\n{output}"));
        let counted = (counts.passed, counts.failed, counts.ignored);
        assert_eq!(counted, expected, "{output}");
        let named = u32::try_from(counts.failed_names.len()).unwrap();
        assert_eq!(counts.failed, named, "{output}");
    }

    /// What the format `testname` tells of two tests, of which one and a part of the other fail.
    const FIRST: &str = "PASS habits/v1.2/days.TestAdds (0.00s)\n=== RUN   TestMarks\n    a_test.go:5: no\n--- FAIL: TestMarks (0.00s)\n\
        FAIL habits/v1.2/days.TestMarks (0.00s)\n=== RUN   TestSums/of_two\n    --- FAIL: TestSums/of_two (0.00s)\n\
        FAIL habits/v1.2/days.TestSums/of_two (0.00s)\n=== RUN   TestSums\n--- FAIL: TestSums (0.00s)\n\
        FAIL habits/v1.2/days.TestSums (0.00s)\nSKIP habits/v1.2/days.TestLater (0.00s)\nFAIL habits/v1.2/days\n\n\
        DONE 5 tests, 1 skipped, 3 failures in 0.310s\n\n";
    const MARKS: &str =
        "PASS habits/v1.2/days.TestMarks (re-run 1) (0.00s)\nPASS habits/v1.2/days\n";
    const SUMS: &str = "PASS habits/v1.2/days.TestSums/of_two (re-run 1) (0.00s)\nPASS habits/v1.2/days.TestSums (re-run 1) (0.00s)\n\
        PASS habits/v1.2/days (coverage: 80.0% of statements)\n";
    const SUMS_FAIL: &str = "=== RUN   TestSums/of_two\n    --- FAIL: TestSums/of_two (0.00s)\n\
        FAIL habits/v1.2/days.TestSums/of_two (re-run 1) (0.00s)\n=== RUN   TestSums\n--- FAIL: TestSums (0.00s)\n\
        FAIL habits/v1.2/days.TestSums (re-run 1) (0.00s)\nFAIL habits/v1.2/days\n";
    /// What it sums up at the end.
    const FAILED: &str = "\n=== Failed\n=== FAIL: habits/v1.2/days TestMarks (0.00s)\n    a_test.go:5: no\n\n\
        === FAIL: habits/v1.2/days TestSums/of_two (0.00s)\n\n=== FAIL: habits/v1.2/days TestSums (0.00s)\n\n";

    #[test]
    fn of_a_test_that_gotestsum_ran_again_the_last_run_counts() {
        let second = "DONE 2 runs, 8 tests, 1 skipped, 3 failures in 0.520s\n";
        check(&format!("{FIRST}{MARKS}{SUMS}{FAILED}{second}"), (4, 0, 1));
        check(
            &format!("{FIRST}{MARKS}{SUMS_FAIL}{FAILED}{second}"),
            (2, 2, 1),
        );
        let sums = SUMS.replace("re-run 1", "re-run 2");
        let third = "DONE 3 runs, 10 tests, 1 skipped, 5 failures in 0.710s\n";
        check(
            &format!("{FIRST}{MARKS}{SUMS_FAIL}\n{second}\n{sums}{FAILED}{third}"),
            (4, 0, 1),
        );
        check(FIRST, (1, 3, 1));
        // A second package of which nothing ran again.
        let other = "--- FAIL: TestMarks (0.00s)\nFAIL habits/more.TestMarks (0.00s)\n";
        check(
            &format!("{other}{FIRST}{MARKS}{SUMS}{FAILED}{second}"),
            (4, 1, 1),
        );
    }

    #[test]
    fn other_formats_of_gotestsum_tell_of_a_second_run_too() {
        let verbose = "=== RUN   TestAdds\n--- PASS: TestAdds (0.00s)\n=== RUN   TestMarks\n--- FAIL: TestMarks (0.00s)\nFAIL\n\
            FAIL\tdays\t0.010s\n\nDONE 2 tests, 1 failure in 0.310s\n\n=== RUN   TestMarks\n--- PASS: TestMarks (0.00s)\nPASS\n\
            ok  \tdays\t0.010s\n\nDONE 2 runs, 3 tests, 1 failure in 0.520s\n";
        check(verbose, (2, 0, 0));
        let event = |action: &str| {
            format!("{{\"Action\":\"{action}\",\"Package\":\"days\",\"Test\":\"TestMarks\"}}\n")
        };
        let (failed, passed) = (event("fail"), event("pass"));
        check(
            &format!(
                "{failed}\nDONE 1 tests, 1 failure in 0.3s\n\n{passed}\nDONE 2 runs, 2 tests, 1 failure in 0.5s\n"
            ),
            (1, 0, 0),
        );
        // This one leaves the lines of go out.
        check(
            "  PASS days.TestAdds (0.00s)\n::group::FAIL days.TestMarks (0.00s)\n    a_test.go:5: no\n\n::endgroup::\n\
             DONE 2 tests, 1 failure in 0.3s\n",
            (1, 1, 0),
        );
    }

    #[test]
    fn without_the_word_of_gotestsum_nothing_that_failed_is_taken_back() {
        let failed = "--- FAIL: TestMarks (0.00s)\n";
        let passed = "--- PASS: TestMarks (0.00s)\n";
        let first = "DONE 2 tests, 1 failure in 0.3s\n";
        let second = "DONE 2 runs, 3 tests, 1 failure in 0.5s\n";
        for output in [
            format!("{failed}{passed}"),
            // Two calls of it, and ends that do not follow each other.
            format!("{failed}{first}{passed}DONE 1 tests in 0.2s\n"),
            format!("{failed}{passed}{second}"),
            format!("{failed}{first}{passed}DONE 3 runs, 3 tests, 1 failure in 0.5s\n"),
            format!("{failed}{first}{passed}DONE 2 runs, 3 tests, 1 failure, 1 error in 0.5s\n"),
            format!("{failed}{first}{passed}DONE 2 runs, 3 tests, 1 failure\n"),
            // A test of `go test` wrote it.
            format!("{failed}{first}{passed}{second}FAIL\nFAIL\tdays\t0.010s\nFAIL\n"),
            format!("{failed}{first}{passed}{second}--- PASS: TestWrites (0.00s)\n"),
            // A test wrote it that gotestsum ran.
            format!(
                "{failed}DONE 1 tests in 0.1s\n{passed}DONE 2 runs, 2 tests in 0.2s\n--- PASS: TestWrites (0.00s)\n\
                 DONE 8 tests, 1 failure in 0.5s\n"
            ),
            format!(
                "{failed}DONE 1 tests in 0.1s\nFAIL days.TestMarks (0.00s)\n{passed}DONE 2 runs, 2 tests in 0.2s\n\
                 DONE 8 tests, 1 failure in 0.5s\n"
            ),
        ] {
            let counts = count(&output).unwrap();
            assert_eq!(counts.failed, 1, "{output}");
        }
        // What is written behind it by others changes nothing.
        let built = format!("{failed}{first}{passed}{second}built\n");
        assert_eq!(count(&built).map(|counts| counts.failed), Some(0));
    }
}
