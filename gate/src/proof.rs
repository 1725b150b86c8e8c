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
    run.exit_code.is_some() && none && !says(DID_NOT_RUN) && !fails_outside_tests(run)
}

/// Returns whether a run tells no number of tests though one is asked for, and found no reason why there is none.
pub fn is_uncounted(run: &CheckRun, expected: &Expectation) -> bool {
    let asks = matches!(expected, Expectation::Tests(_));
    let could_run = run.exit_code.is_some() && obstacle::of(run).is_none();
    asks && could_run && run.tests.is_none() && !stumbles(run)
}

/// Decides what a pass is worth when the check fared like this on the tree before.
///
/// `run` is the run there, `ruling` what followed from it, and `with_work` the run that passed, where there is one yet.
pub fn of(
    ruling: &Ruling,
    (run, with_work): (&CheckRun, Option<&CheckRun>),
    expected: &Expectation,
    preserves: bool,
) -> Proof {
    match ruling {
        Ruling::Holds if preserves => Proof::Preserved,
        Ruling::Holds => Proof::PassedBefore,
        // Whatever it said, it held but for a number that nobody could read.
        Ruling::Fails { .. } if run.exit_code == Some(0) && is_uncounted(run, expected) => {
            Proof::TooFewTests
        }
        Ruling::Fails { class, .. }
            if checked(*class, run) && told_of_no_failure(run, with_work) =>
        {
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
/// `run` is the run there, `ruling` what followed from it, and `with_work` the run that passed.
pub fn of_tests_alone(
    ruling: &Ruling,
    (run, with_work): (&CheckRun, Option<&CheckRun>),
    expected: &Expectation,
) -> Proof {
    match of(ruling, (run, with_work), expected, false) {
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

/// Says whether a run tells that something of it did not come to check anything, or may not have.
pub fn stumbles(run: &CheckRun) -> bool {
    lacks_a_part(run) || fails_outside_tests(run)
}

/// Says whether a run tells that something of it did not come to check anything.
fn lacks_a_part(run: &CheckRun) -> bool {
    let mut signs = DID_NOT_RUN.iter().chain(SELECTED_NONE);
    let says_so = signs.any(|sign| run.output.contains(sign));
    // A test that ran and failed beside what did not compile says more.
    says_so || failed_tests(run) == 0 && counts::unbuilt_suites(&run.output) > 0
}

/// Says whether a runner tells of suites that failed and of no test that did: what failed stands outside any test, as what loads a file,
/// or clears up behind its tests.
fn fails_outside_tests(run: &CheckRun) -> bool {
    failed_tests(run) == 0 && counts::failed_suites(&run.output) > 0
}

fn failed_tests(run: &CheckRun) -> u32 {
    run.tests.as_ref().map_or(0, |tests| tests.failed)
}

/// Says whether a check that failed came as far as checking something.
fn checked(class: FailureClass, run: &CheckRun) -> bool {
    let could_run = run.exit_code.is_some() && obstacle::of(run).is_none();
    if class != FailureClass::ValidationFailed || !could_run {
        return false;
    }
    let stumbled = lacks_a_part(run);
    match &run.tests {
        _ if fails_outside_tests(run) => !stumbled,
        // That there are fewer tests than are asked for says nothing of the work.
        Some(tests) if tests.failed == 0 && run.exit_code == Some(0) => false,
        // Where tests were counted, their own number says more than a line among many.
        Some(tests) if tests.passed > 0 && tests.failed > 0 => fails_a_test(run),
        Some(tests) => (tests.passed > 0 || tests.failed > 0) && !stumbled,
        None => !stumbled,
    }
}

/// Says whether a check that has tests run told of none that failed: what failed may stand before them, in its line, in a script or in a
/// target.
fn told_of_no_failure(run: &CheckRun, with_work: Option<&CheckRun>) -> bool {
    let has_counted = |run: &CheckRun| run.tests.as_ref().is_some_and(|tests| tests.passed > 0);
    let runs_tests = has_counted(run)
        || with_work.is_some_and(has_counted)
        || is_line_of_tests(run)
        || fails_outside_tests(run);
    failed_tests(run) == 0 && runs_tests
}

/// Says whether the line of a check that nobody counts has tests run. A file of tests that an interpreter runs by itself, or a step of a
/// project that need not be one of a runner, says why it failed, unless it was never run.
fn is_line_of_tests(run: &CheckRun) -> bool {
    let is_silent = run.output.trim().is_empty();
    counts::has_known_runner(&run.command) || is_silent && counts::may_run_tests(&run.command)
}

/// Says whether a run that does not hold held but for the number of its tests.
fn has_too_few_tests(run: &CheckRun) -> bool {
    let tests = run.tests.as_ref();
    let all_pass = tests.is_some_and(|tests| tests.passed > 0 && tests.failed == 0);
    run.exit_code == Some(0) && all_pass && counts::failed_suites(&run.output) == 0
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
mod tests;
