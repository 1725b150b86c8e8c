//! Reads jest, vitest and the spec reporter of `node --test`.

use ropewalk_schemas::attempt::TestCounts;

use super::number_before;

/// Reads whichever of the three it is.
pub(super) fn count(output: &str) -> Option<TestCounts> {
    summary(output).or_else(|| node(output))
}

/// `Tests:  1 failed, 3 passed, 4 total` (jest) or `Tests  1 failed | 3 passed (4)` (vitest).
fn summary(output: &str) -> Option<TestCounts> {
    let line = output.lines().map(str::trim).find(|line| {
        (line.starts_with("Tests:") && line.ends_with("total"))
            || (line.starts_with("Tests ") && line.ends_with(')'))
            || *line == "No test files found, exiting with code 0"
            || line.starts_with("No tests found, exiting with code 0")
    })?;
    let of = |word: &str| number_before(line, word).unwrap_or(0);
    Some(TestCounts {
        passed: of(" passed"),
        failed: of(" failed"),
        ignored: of(" skipped") + of(" todo"),
        names: names(output),
    })
}

/// `ℹ tests 3`, `ℹ pass 3`, … as node prints them; with `#` instead it is TAP.
fn node(output: &str) -> Option<TestCounts> {
    let value = |word: &str| {
        output.lines().find_map(|line| {
            let rest = line.trim().strip_prefix('\u{2139}')?.trim_start();
            rest.strip_prefix(word)?.trim().parse::<u32>().ok()
        })
    };
    value("tests ")?;
    Some(TestCounts {
        passed: value("pass ").unwrap_or(0),
        failed: value("fail ").unwrap_or(0) + value("cancelled ").unwrap_or(0),
        ignored: value("skipped ").unwrap_or(0) + value("todo ").unwrap_or(0),
        names: names(output),
    })
}

/// Names are marked by a tick; a duration may follow in brackets or bare.
fn names(output: &str) -> Vec<String> {
    let mut names = Vec::new();
    for line in output.lines() {
        let trimmed = line.trim();
        let ticked = ["\u{2713}", "\u{2714}", "\u{221a}"]
            .iter()
            .find_map(|tick| trimmed.strip_prefix(tick));
        if let Some(name) = ticked {
            names.push(without_duration(name.trim()).to_owned());
        }
    }
    names
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
