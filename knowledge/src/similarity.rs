//! Tells whether two texts say the same.

use std::collections::BTreeSet;

/// Words that turn the meaning of a sentence round.
const NEGATIONS: [&str; 10] = [
    "not", "no", "never", "don", "dont", "cannot", "without", "avoid", "isn", "doesn",
];
/// Texts at least so similar say the same.
const SAME: f64 = 0.6;

/// Writes a text as it is compared: lower case, only letters and digits, one blank between words.
pub fn normalise(text: &str) -> String {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    words.join(" ")
}

/// Returns how similar two texts are by their groups of three letters, 0 to 1.
pub fn similarity(a: &str, b: &str) -> f64 {
    let (a, b) = (trigrams(&normalise(a)), trigrams(&normalise(b)));
    let all = a.union(&b).count();
    if all == 0 {
        return 0.0;
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "a text has far fewer groups than a float can count"
    )]
    let share = a.intersection(&b).count() as f64 / all as f64;
    share
}

/// Says whether two texts say the same: they are similar, and neither denies what the other says.
pub fn says_the_same(a: &str, b: &str) -> bool {
    normalise(a) == normalise(b) || (negations(a) == negations(b) && similarity(a, b) >= SAME)
}

fn trigrams(text: &str) -> BTreeSet<[char; 3]> {
    text.split(' ')
        .filter(|word| !word.is_empty())
        .flat_map(|word| {
            let letters: Vec<char> = format!("  {word} ").chars().collect();
            letters
                .windows(3)
                .map(|window| [window[0], window[1], window[2]])
                .collect::<Vec<_>>()
        })
        .collect()
}

fn negations(text: &str) -> usize {
    normalise(text)
        .split(' ')
        .filter(|word| NEGATIONS.contains(word))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_lesson_is_told_from_another_one() {
        let cases = [
            ("Use TEXT for dates.", "use text, for dates", true),
            (
                "SQLite has no DATETIME type; store dates as TEXT in ISO-8601",
                "SQLite has no DATETIME type: store dates in TEXT as ISO-8601 strings",
                true,
            ),
            (
                "Integer division truncates; cast to f64 before dividing",
                "Integer division truncates, so cast to f64 before you divide",
                true,
            ),
            (
                "Use unwrap in library code",
                "Do not use unwrap in library code",
                false,
            ),
            (
                "SQLite has no DATETIME type; store dates as TEXT in ISO-8601",
                "SQLite has no BOOLEAN type; store flags as INTEGER 0 or 1",
                false,
            ),
            ("", "", true),
            ("a", "b", false),
        ];
        for (a, b, expected) in cases {
            assert_eq!(
                says_the_same(a, b),
                expected,
                "{a} / {b}: {}",
                similarity(a, b)
            );
            assert_eq!(says_the_same(b, a), expected, "{b} / {a}");
        }
    }

    #[test]
    fn similarity_goes_from_nothing_to_all() {
        assert!((similarity("habit tracker", "Habit Tracker!") - 1.0).abs() < f64::EPSILON);
        assert!(similarity("abc", "xyz").abs() < f64::EPSILON);
        assert!(similarity("", "").abs() < f64::EPSILON);
    }
}
