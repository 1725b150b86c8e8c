//! Reads jest, vitest and the spec reporter of `node --test`.

use ropewalk_schemas::attempt::TestCounts;

use super::{add, number_before};

/// Adds up `Tests:  1 failed, 3 passed, 4 total` (jest) and `Tests  1 failed | 3 passed (4)` (vitest).
pub(super) fn summaries(output: &str) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    let mut seen = false;
    for line in output.lines().map(str::trim) {
        let summary = (line.starts_with("Tests:") && line.ends_with("total"))
            || (line.starts_with("Tests ") && line.ends_with(')'));
        let nothing = line.starts_with("No test files found, exiting with code ")
            || line.starts_with("No tests found, exiting with code ");
        seen |= summary || nothing;
        if summary {
            let of = |word: &str| number_before(line, word).unwrap_or(0);
            add(&mut counts.passed, of(" passed"));
            add(&mut counts.failed, of(" failed"));
            add(&mut counts.ignored, of(" skipped"));
            add(&mut counts.ignored, of(" todo"));
        }
    }
    counts.names = names(output);
    counts.failed_names = failed_names(output);
    seen.then_some(counts)
}

/// Adds up the files of `Test Suites: 1 failed, 3 passed, 4 total` (jest) and `Test Files  1 failed | 3 passed (4)` (vitest) that
/// failed, be it outside any test.
pub(super) fn failed_files(output: &str) -> u32 {
    let lines = output.lines().map(str::trim);
    let summaries = lines.filter(|line| {
        line.starts_with("Test Suites:") && line.ends_with("total")
            || line.starts_with("Test Files ") && line.ends_with(')')
    });
    let failed = summaries.filter_map(|line| number_before(line, " failed"));
    failed.fold(0, u32::saturating_add)
}

/// Adds up `ℹ tests 3`, `ℹ pass 3`, … as node prints them; with `#` instead it is TAP.
pub(super) fn node(output: &str) -> Option<TestCounts> {
    let value = |word: &str| {
        let values = output.lines().filter_map(|line| {
            let rest = line.trim().strip_prefix('\u{2139}')?.trim_start();
            rest.strip_prefix(word)?.trim().parse::<u32>().ok()
        });
        values.reduce(u32::saturating_add)
    };
    value("tests ")?;
    let of = |word: &str| value(word).unwrap_or(0);
    Some(TestCounts {
        passed: of("pass "),
        failed: of("fail ").saturating_add(of("cancelled ")),
        ignored: of("skipped ").saturating_add(of("todo ")),
        names: names(output),
        failed_names: failed_names(output),
    })
}

/// Names are marked by a tick; a duration may follow in brackets or bare.
pub(super) fn names(output: &str) -> Vec<String> {
    marked(output, &["\u{2713}", "\u{2714}", "\u{221a}"])
}

fn failed_names(output: &str) -> Vec<String> {
    let mut names = marked(output, &["\u{2715}", "\u{2716}", "\u{d7}"]);
    // Node lists its failing tests a second time, below a heading that is marked too.
    names.retain(|name| name != "failing tests:");
    names.sort_unstable();
    names.dedup();
    names
}

fn marked(output: &str, marks: &[&str]) -> Vec<String> {
    let lines = output.lines().map(str::trim);
    lines
        .filter_map(|line| marks.iter().find_map(|mark| line.strip_prefix(mark)))
        // What is still to be done passes in node's eyes, and counts as ignored.
        .filter(|name| !name.ends_with("# TODO") && !name.ends_with("# SKIP"))
        .map(|name| without_duration(name.trim()).to_owned())
        .collect()
}

fn without_duration(name: &str) -> &str {
    if let Some((before, last)) = name.rsplit_once(' ') {
        let bare = last.trim_start_matches('(').trim_end_matches(')');
        let number = bare.trim_end_matches("ms").trim_end_matches('s');
        let timed = bare.ends_with('s') && number.parse::<f64>().is_ok();
        if timed {
            return before.trim_end();
        }
        // vitest and jest write `(3 ms)`, in two words.
        if last == "ms)"
            && let Some((before, number)) = before.rsplit_once(" (")
            && number.parse::<f64>().is_ok()
        {
            return before.trim_end();
        }
    }
    name
}
