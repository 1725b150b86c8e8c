//! Finds in the output of a failure what it says.

use ropewalk_schemas::attempt::TOO_FEW_TESTS;

/// The longest line that is taken, in letters.
const LONGEST: usize = 300;

/// Picks the line of an error that says most: a diagnosis before a symptom, and never what a runner always says.
pub fn telling_line(error: &str) -> String {
    const TELLING: [&str; 8] = [
        "error[",
        "error TS",
        "assert",
        "panicked at",
        "Error:",
        "error",
        "FAILED",
        "failed",
    ];
    const NOISE: [&str; 6] = [
        "error: test failed",
        "error: could not compile",
        "test result:",
        "failures:",
        "running ",
        "Compiling ",
    ];
    let said = error.lines().next().unwrap_or_default();
    if is_of_counts(error) {
        return said.chars().take(LONGEST).collect();
    }
    let lines: Vec<&str> = error
        .lines()
        .skip(1)
        .map(str::trim)
        .filter(|line| !NOISE.iter().any(|noise| line.starts_with(noise)) && has_words(line))
        .collect();
    let telling = TELLING
        .iter()
        .find_map(|word| lines.iter().find(|line| line.contains(word)))
        .or(lines.first())
        .copied();
    let line = telling.unwrap_or(said);
    line.chars().take(LONGEST).collect()
}

/// Says whether too few tests passed, and all of them did: that is of the plan, and nothing that they wrote says anything.
pub fn is_of_counts(error: &str) -> bool {
    error
        .lines()
        .next()
        .is_some_and(|said| said.contains(TOO_FEW_TESTS))
}

/// Says whether a line holds more than numbers and the marks of progress, such as `....s.. [ 25%]`.
fn has_words(line: &str) -> bool {
    line.chars()
        .any(|letter| letter.is_alphabetic() && !"sFExXpP".contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_says_most_becomes_the_lesson() {
        let rows = [
            (
                "`validation` ended with exit code 1: sqlite3\n\nnote\nParse error near line 1: near \"DATEE\"",
                "Parse error near line 1: near \"DATEE\"",
            ),
            (
                "`validation` ended\n\n   Compiling x\nerror: test failed, to rerun pass `--lib`\nrunning 1 test\ntest leap ... FAILED\n\
                 thread 'leap' panicked at src/lib.rs:3:\nassertion `left == right` failed: 1900\ntest result: FAILED.",
                "assertion `left == right` failed: 1900",
            ),
            ("nothing was changed", "nothing was changed"),
            ("`x` failed\n\nfirst\nsecond", "first"),
            ("`x` failed\n\n....sssss..s [ 25%]\n1 + 1\nsecond", "second"),
            (
                "`validation` reports 248 passed tests; 249 are asked for: pytest\n\n...sss [ 25%]\n248 passed in 3.10s",
                "`validation` reports 248 passed tests; 249 are asked for: pytest",
            ),
        ];
        for (error, lesson) in rows {
            assert_eq!(telling_line(error), lesson);
        }
    }
}
