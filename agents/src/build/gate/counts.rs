//! Counts tests in the output of the common test runners.

mod cargo;
mod go;
mod javascript;
mod junit;
mod nextest;
mod pytest;
mod tap;

use ropewalk_schemas::attempt::TestCounts;

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
    javascript::count,
    tap::count,
    go::count,
];

/// Counts the tests that `output` reports; none when it reports none in any known way.
pub fn count(output: &str) -> Option<TestCounts> {
    let plain = without_colour(output);
    let mut counts = PARSERS.iter().find_map(|parser| parser(&plain))?;
    counts.names.sort_unstable();
    counts.names.truncate(NAMES);
    Some(counts)
}

/// Takes out terminal colours, which runners keep when they are told to.
fn without_colour(output: &str) -> String {
    let mut plain = String::with_capacity(output.len());
    let mut letters = output.chars();
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' {
            for skipped in letters.by_ref() {
                if skipped.is_ascii_alphabetic() {
                    break;
                }
            }
        } else {
            plain.push(letter);
        }
    }
    plain
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
