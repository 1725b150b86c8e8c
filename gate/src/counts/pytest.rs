//! Reads pytest, with subtests and without.

use ropewalk_schemas::attempt::TestCounts;

use super::add;

/// Adds up the closing lines, framed by `=` or bare with `-q`, and reads the names that its options make it print.
pub(super) fn count(output: &str) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    let mut seen = false;
    for line in output.lines().map(str::trim) {
        if let Some(parts) = closing(line) {
            seen = true;
            for (number, word) in parts {
                note(&mut counts, number, word);
            }
        } else if let Some(name) = passed(line) {
            counts.names.push(name);
        } else if let Some(name) = failed(line)
            && !counts.failed_names.contains(&name)
        {
            counts.failed_names.push(name);
        }
    }
    seen.then_some(counts)
}

/// Reads `3 failed, 2 passed, 5 subtests passed in 0.05s`; a subtest is a part of a test that is counted itself.
fn closing(line: &str) -> Option<Vec<(u32, &str)>> {
    let bare = line.trim_matches('=').trim();
    let (parts, time) = bare.rsplit_once(" in ")?;
    let seconds = time.split(' ').next()?.strip_suffix('s')?;
    seconds.parse::<f64>().ok()?;
    if parts == "no tests ran" {
        return Some(Vec::new());
    }
    let parts: Vec<(u32, &str)> = parts.split(", ").map(part).collect::<Option<_>>()?;
    parts
        .iter()
        .any(|(_, word)| is_known(word))
        .then_some(parts)
}

fn part(part: &str) -> Option<(u32, &str)> {
    let (number, word) = part.trim().split_once(' ')?;
    Some((number.parse().ok()?, word.trim()))
}

/// Knows the words of pytest itself; plugins add words of their own to them, as `1 retried`.
fn is_known(word: &str) -> bool {
    const WORDS: [&str; 14] = [
        "passed",
        "failed",
        "error",
        "errors",
        "skipped",
        "deselected",
        "xfailed",
        "xpassed",
        "warning",
        "warnings",
        "rerun",
        "subtests passed",
        "subtests failed",
        "subtests skipped",
    ];
    WORDS.contains(&word) || WORDS.contains(&word.replacen("subtest ", "subtests ", 1).as_str())
}

fn note(counts: &mut TestCounts, number: u32, word: &str) {
    match word {
        "passed" | "xpassed" => add(&mut counts.passed, number),
        "failed" | "error" | "errors" | "subtests failed" | "subtest failed" => {
            add(&mut counts.failed, number);
        }
        "skipped" | "xfailed" => add(&mut counts.ignored, number),
        _ => {}
    }
}

/// `PASSED test_a.py::test_adds` with `-rA`, `test_a.py::test_adds PASSED [ 50%]` with `-v`.
fn passed(line: &str) -> Option<String> {
    if let Some(name) = line.strip_prefix("PASSED ") {
        return Some(name.trim().to_owned());
    }
    let (name, rest) = line.split_once(" PASSED")?;
    let framed = rest.trim().is_empty() || rest.trim_start().starts_with('[');
    (name.contains("::") && framed).then(|| name.trim().to_owned())
}

/// `FAILED test_a.py::test_marks - assert 1 == 2`, as the short summary lists it.
fn failed(line: &str) -> Option<String> {
    let rest = line
        .strip_prefix("FAILED ")
        .or_else(|| line.strip_prefix("ERROR "))?;
    let name = rest.split(" - ").next().unwrap_or(rest).trim();
    name.contains("::").then(|| name.to_owned())
}
