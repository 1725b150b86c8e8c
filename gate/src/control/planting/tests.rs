//! Tries what is made of a run beside planted tests.

use super::*;
use crate::control::tests::run;

fn failed(failed: u32, output: &str) -> CheckRun {
    let mut run = run(Some(2), &[], output);
    if let Some(tests) = &mut run.tests {
        tests.failed = failed;
    }
    run
}

#[test]
fn what_holds_tells_of_no_test_that_failed_whatever_it_prints() {
    let fails = |class| Ruling::Fails {
        class,
        finding: String::new(),
    };
    let held = Ruling::Held {
        finding: String::new(),
    };
    let printed = "test_case_1: FAIL fast is off";
    for (ruling, output, told) in [
        (Ruling::Holds, printed, false),
        (fails(FailureClass::ValidationFailed), printed, true),
        (fails(FailureClass::Timeout), printed, true),
        (held.clone(), printed, true),
        (held, "", false),
    ] {
        let there = (run(Some(2), &[], output), ruling);
        assert_eq!(tells(&there, "case_1"), told, "{there:?}");
    }
}

#[test]
fn more_tests_told_of_than_counted_are_looked_at_in_parts() {
    let ruling = || Ruling::Fails {
        class: FailureClass::ValidationFailed,
        finding: String::new(),
    };
    for (run, told, is_more) in [
        (failed(1, ""), 2, true),
        (failed(0, ""), 1, true),
        (failed(2, ""), 2, false),
        // Others failed, too.
        (failed(5, ""), 2, false),
        // Nobody counts.
        (run(None, &[], ""), 2, false),
    ] {
        let there = (run, ruling());
        assert_eq!(is_overtold(&there, told), is_more, "{there:?} {told}");
    }
    let tests = ["a", "b", "c"].map(|name| PlantedTest {
        path: "test_a.py".to_owned(),
        name: name.to_owned(),
        may_skip: false,
    });
    let all: Vec<&PlantedTest> = tests.iter().collect();
    let sizes = |count: usize| -> Vec<usize> {
        let halves = halves(&all[..count]);
        halves.iter().map(Vec::len).collect()
    };
    assert_eq!(
        [sizes(0), sizes(1), sizes(2), sizes(3)],
        [vec![], vec![1], vec![1, 1], vec![1, 2]]
    );
    for (output, counted, expected) in [
        ("a: FAIL\nb: FAIL\nc: FAIL", 1, &["a", "b c"][..]),
        ("a: FAIL\nb: FAIL\nc: FAIL", 3, &[]),
        // Those that nobody told of are planted by themselves.
        ("b: FAIL", 1, &["a c"]),
        ("b: FAIL", 0, &["a", "b c"]),
        ("boom", 1, &[]),
    ] {
        let next = next_parts(&(failed(counted, output), ruling()), &all);
        let names = next.iter().map(|part| {
            let names: Vec<&str> = part.iter().map(|test| test.name.as_str()).collect();
            names.join(" ")
        });
        let names: Vec<String> = names.collect();
        assert_eq!(names, expected, "{output} {counted}");
    }
}

#[test]
fn a_planted_test_is_told_of_by_the_names_that_failed_or_in_a_line_that_says_so() {
    let cases = [
        (run(Some(2), &["a.case_1.test"], ""), true),
        (run(Some(2), &["a.other"], "FAILED case_1"), true),
        (run(None, &[], "not ok 3 - case_1"), true),
        (run(None, &[], "AssertionError: case_1 cannot pass"), true),
        (run(Some(2), &["a.other"], "FAILED other"), false),
        // The line of a source that could not even run.
        (
            run(None, &[], "it('case_1', () => {\nReferenceError"),
            false,
        ),
        (run(None, &[], ""), false),
    ];
    for (run, told) in cases {
        assert_eq!(is_told(&run, "case_1"), told, "{run:?}");
    }
}
