//! Finds in the output of a failure what it says.

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
    let lines: Vec<&str> = error
        .lines()
        .skip(1)
        .map(str::trim)
        .filter(|line| !line.is_empty() && !NOISE.iter().any(|noise| line.starts_with(noise)))
        .collect();
    let telling = TELLING
        .iter()
        .find_map(|word| lines.iter().find(|line| line.contains(word)))
        .or(lines.first())
        .copied();
    let line = telling.or_else(|| error.lines().next()).unwrap_or_default();
    line.chars().take(LONGEST).collect()
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
        ];
        for (error, lesson) in rows {
            assert_eq!(telling_line(error), lesson);
        }
    }
}
