//! Counts tests in the output of the common test runners, and of those that a project describes itself.

mod cargo;
mod custom;
mod dotnet;
mod go;
mod java;
mod javascript;
mod junit;
mod known;
mod mocha;
mod nextest;
mod pytest;
mod runners;
mod tap;
mod text;
mod unittest;

use ropewalk_schemas::attempt::TestCounts;

pub use custom::Patterns;
pub(crate) use known::{has_known_runner, may_run_tests};
pub use runners::can_count;

/// More names than this are not kept; the counts stay whole.
const NAMES: usize = 2_000;

/// A parser: what it counted, or none when the output is not its runner's.
type Parser = fn(&str) -> Option<TestCounts>;

/// The parsers, the most specific format first; the first that recognises its runner is believed.
const PARSERS: &[Parser] = &[
    junit::count,
    nextest::count,
    cargo::count,
    pytest::count,
    unittest::count,
    javascript::summaries,
    javascript::node,
    mocha::count,
    tap::count,
    dotnet::count,
    java::maven,
    java::gradle,
    go::count,
];

/// Counts the tests that `output` reports; none when it reports none in any known way, which is not the same as no test.
///
/// What the project describes goes first. Where several runners speak, the first tells how many passed, and a failure
/// that any of them tells is a failure.
pub fn count(output: &str, patterns: Option<&Patterns>) -> Option<TestCounts> {
    let plain = text::plain(output);
    let custom = patterns
        .and_then(|patterns| patterns.count(&text::shown(output), &plain))
        .into_iter();
    let known = PARSERS.iter().filter_map(|parser| parser(&plain));
    let mut all = custom.chain(known);
    let mut counts = all.next()?;
    for other in all {
        if counts.failed == 0 && other.failed > 0 {
            counts.failed = other.failed;
            counts.failed_names = other.failed_names;
        }
    }
    for names in [&mut counts.names, &mut counts.failed_names] {
        names.sort_unstable();
        names.truncate(NAMES);
    }
    Some(counts)
}

/// Counts the suites that runners say failed, be it outside any test of them: files of jest and vitest, packages of go.
pub(crate) fn failed_suites(output: &str) -> u32 {
    let plain = text::plain(output);
    javascript::failed_files(&plain).saturating_add(go::failed_packages(&plain))
}

/// Counts the suites of which a runner says that nothing could run: packages of go that did not compile. Of jest and vitest a file that
/// failed outside any test may have run some.
pub(crate) fn unbuilt_suites(output: &str) -> u32 {
    go::unbuilt_packages(&text::plain(output))
}

/// Adds to a number that a runner may claim to be beyond all bounds: what is counted never wraps to nothing.
fn add(count: &mut u32, more: u32) {
    *count = count.saturating_add(more);
}

/// Adds up what two runs tell.
fn sum(mut one: TestCounts, other: TestCounts) -> TestCounts {
    add(&mut one.passed, other.passed);
    add(&mut one.failed, other.failed);
    add(&mut one.ignored, other.ignored);
    one.names.extend(other.names);
    one.failed_names.extend(other.failed_names);
    one
}

/// Takes of each number the higher one, where one run tells of itself in two ways and neither need be whole. The names are those of the
/// first.
fn most(one: TestCounts, other: &TestCounts) -> TestCounts {
    TestCounts {
        passed: one.passed.max(other.passed),
        failed: one.failed.max(other.failed),
        ignored: one.ignored.max(other.ignored),
        ..one
    }
}

/// Reads the number before `word`, as in `3 passed`.
fn number_before(text: &str, word: &str) -> Option<u32> {
    let (before, _) = text.split_once(word)?;
    let digits: Vec<char> = before
        .trim_end()
        .chars()
        .rev()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.into_iter().rev().collect::<String>().parse().ok()
}

#[cfg(test)]
mod tests;
