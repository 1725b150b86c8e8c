//! Finds in the output of a failure what it says.

use ropewalk_schemas::attempt::TOO_FEW_TESTS;
use ropewalk_schemas::clip;

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
        return clip::letters(said, LONGEST).into_owned();
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
    clip::letters(line, LONGEST).into_owned()
}

/// Says whether too few tests passed, and all of them did: that is of the plan, and nothing that they wrote says anything.
pub fn is_of_counts(error: &str) -> bool {
    error
        .lines()
        .next()
        .is_some_and(|said| said.contains(TOO_FEW_TESTS))
}

/// Says whether a text is nothing but lines of a source, or of what an assertion shows: it says what a test compares, and not
/// what goes wrong or what to do instead.
pub fn is_output(text: &str) -> bool {
    let mut lines = text
        .lines()
        .map(without_margin)
        .filter(|line| !line.is_empty())
        .peekable();
    lines.peek().is_some() && lines.all(|line| is_of_an_assertion(line) || is_source(line))
}

/// Takes away what runners put before a line that they show.
fn without_margin(line: &str) -> &str {
    let line = line.trim();
    let shown = line.strip_prefix("E ").or_else(|| line.strip_prefix("> "));
    shown.unwrap_or(line).trim_start()
}

fn is_of_an_assertion(line: &str) -> bool {
    const BEGINNINGS: [&str; 9] = [
        "AssertionError",
        "assert!",
        "assert_",
        "assertion `",
        "assertion failed",
        "self.assert",
        "expect(",
        "left: ",
        "right: ",
    ];
    const MARKS: [&str; 4] = ["==", "!=", "(", "<"];
    let is_statement = || {
        let compared = line
            .strip_prefix("assert ")
            .or_else(|| line.strip_prefix("assert("));
        compared.is_some_and(|compared| MARKS.iter().any(|mark| compared.contains(mark)))
    };
    BEGINNINGS.iter().any(|words| line.starts_with(words)) || is_statement()
}

/// Says whether a line is a call or a statement and no sentence about one.
fn is_source(line: &str) -> bool {
    const ENDS: [char; 7] = [')', ';', '{', '}', ',', '(', '['];
    let named = line.find(|letter: char| !letter.is_alphanumeric() && !"_.:!".contains(letter));
    let is_call = named.is_some_and(|end| end > 0 && line[end..].starts_with('('));
    let is_assigned = named.is_some_and(|end| end > 0 && line[end..].starts_with(" = "));
    (is_call && line.ends_with(ENDS)) || (is_assigned && line.ends_with([')', ';', '{', '(']))
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
        let long = telling_line(&format!("`x` failed\n\nerror: {}", "a".repeat(LONGEST)));
        assert!(long.ends_with("a…"), "what is cut says so: {long}");
        assert_eq!(long.chars().count(), LONGEST);
    }

    #[test]
    fn a_line_of_a_source_or_of_an_assertion_is_told_from_words() {
        let rows = [
            (
                r#"self.assertEqual(render(b), "1 x tea 2,55\nDiscount 10"#,
                true,
            ),
            ("AssertionError: '2,55' != '2.55'\nassert a == b", true),
            ("AssertionError: '2,55' != '2.55'", true),
            ("E   assert render(b) == '2.55'", true),
            (">       assert total == 3", true),
            ("assertion `left == right` failed: 1900", true),
            ("assert_eq!(leap(1900), false);", true),
            ("expect(total([])).toBe(0)", true),
            ("total = sum(lines)", true),
            ("assert.equal(add(1, 2), 3);", true),
            ("SQLite has no DATETIME type; store dates as TEXT", false),
            (
                "render(basket) rounds each line: round the sum once instead",
                false,
            ),
            (
                "Assert the sum in cents, since floats are never equal",
                false,
            ),
            (
                "assertEqual shows no difference of long texts: set maxDiff to None",
                false,
            ),
            ("type DATEE is unknown to sqlite", false),
            ("", false),
        ];
        for (text, expected) in rows {
            assert_eq!(is_output(text), expected, "{text}");
        }
    }
}
