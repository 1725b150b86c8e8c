//! Reads pytest.

use ropewalk_schemas::attempt::TestCounts;

use super::number_before;

/// Reads the closing line, framed by `=` or bare with `-q`, and the names of `-v` or `-rA`.
pub(super) fn count(output: &str) -> Option<TestCounts> {
    let closing = output.lines().rev().map(str::trim).find(|line| {
        let bare = line.trim_matches('=').trim();
        let timed = bare.contains(" in ") && bare.trim_end_matches(')').contains('s');
        timed
            && (bare.starts_with("no tests ran")
                || bare
                    .split(" in ")
                    .next()
                    .is_some_and(|parts| parts.split(", ").all(is_part)))
    })?;
    let names = output.lines().map(str::trim).filter_map(name).collect();
    let of = |word: &str| number_before(closing, word).unwrap_or(0);
    Some(TestCounts {
        passed: of(" passed"),
        failed: of(" failed") + of(" error"),
        ignored: of(" skipped") + of(" xfailed") + of(" deselected"),
        names,
    })
}

fn is_part(part: &str) -> bool {
    const WORDS: [&str; 10] = [
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
    ];
    part.trim()
        .split_once(' ')
        .is_some_and(|(number, word)| number.parse::<u32>().is_ok() && WORDS.contains(&word.trim()))
}

fn name(line: &str) -> Option<String> {
    if let Some(name) = line.strip_prefix("PASSED ") {
        return Some(name.trim().to_owned());
    }
    let (name, rest) = line.split_once(" PASSED")?;
    let framed = rest.trim().is_empty() || rest.trim_start().starts_with('[');
    (name.contains("::") && framed).then(|| name.trim().to_owned())
}
