//! Reads the reporters of mocha that end in `1 passing`, `1 pending` and `1 failing`.

use ropewalk_schemas::attempt::TestCounts;

use super::add;

/// Adds up the closing lines; only the first of them is always there.
pub(super) fn count(output: &str) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    let mut seen = false;
    for line in output.lines().filter(|line| line.starts_with("  ")) {
        let mut words = line.split_whitespace();
        let (Some(number), Some(word)) = (words.next(), words.next()) else {
            continue;
        };
        let Ok(number) = number.parse::<u32>() else {
            continue;
        };
        let rest = words.next();
        match (word, rest) {
            ("passing", Some(time)) if time.starts_with('(') => {
                seen = true;
                add(&mut counts.passed, number);
            }
            ("pending", None) if seen => add(&mut counts.ignored, number),
            ("failing", None) if seen => add(&mut counts.failed, number),
            _ => {}
        }
    }
    counts.names = super::javascript::names(output);
    seen.then_some(counts)
}
