//! Replaces a text exactly, or, where it does not occur exactly, with regard only to what a model may misread:
//! blanks, quotes, dashes and composed letters.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;
use unicode_normalization::UnicodeNormalization;

/// Where a new text goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Place {
    #[default]
    Instead,
    Before,
    After,
}

/// Says why nothing was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReplaceError {
    /// The old text does not occur.
    Missing,
    /// The old text occurs more than once: in which lines it begins.
    Ambiguous(Vec<usize>),
    /// Old and new text are the same.
    Same,
    /// There is nothing to put before or after it.
    Nothing,
}

/// Puts `new` in the place of `old`, before or after it, where it occurs once, or everywhere if `all`.
pub(super) fn replace(
    text: &str,
    old: &str,
    (new, place): (&str, Place),
    all: bool,
) -> Result<String, ReplaceError> {
    match place {
        Place::Instead if old == new => return Err(ReplaceError::Same),
        Place::Before | Place::After if new.is_empty() => return Err(ReplaceError::Nothing),
        _ => {}
    }
    let mut places: Vec<Range<usize>> = text
        .match_indices(old)
        .map(|(start, found)| start..start + found.len())
        .collect();
    if places.is_empty() {
        places = similar_places(text, old);
    }
    match places.len() {
        0 => Err(ReplaceError::Missing),
        count if count > 1 && !all => Err(ReplaceError::Ambiguous(lines_of(text, &places))),
        _ => {
            let gives_way = |found: Range<usize>| match place {
                Place::Instead => found,
                Place::Before => found.start..found.start,
                Place::After => found.end..found.end,
            };
            let places: Vec<Range<usize>> = places.into_iter().map(gives_way).collect();
            Ok(splice(text, &places, new))
        }
    }
}

/// Numbers the lines, from 1, in which the places begin.
fn lines_of(text: &str, places: &[Range<usize>]) -> Vec<usize> {
    let line = |place: &Range<usize>| text[..place.start].matches('\n').count() + 1;
    places.iter().map(line).collect()
}

fn splice(text: &str, places: &[Range<usize>], new: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut end = 0;
    for place in places {
        result.push_str(&text[end..place.start]);
        result.push_str(new);
        end = place.end;
    }
    result.push_str(&text[end..]);
    result
}

/// Is one letter as it is compared, and the bytes of the text that it stands for.
#[derive(Debug, Clone)]
struct Letter {
    plain: char,
    place: Range<usize>,
}

fn similar_places(text: &str, old: &str) -> Vec<Range<usize>> {
    let text = plain(text);
    let old = plain(old);
    let mut places = Vec::new();
    let mut start = 0;
    // A text of blanks alone would match anywhere.
    if old.iter().all(|letter| letter.plain.is_whitespace()) {
        return places;
    }
    while start + old.len() <= text.len() {
        let window = &text[start..start + old.len()];
        let whole = starts_whole(&text, start) && starts_whole(&text, start + old.len());
        if whole && window.iter().zip(&old).all(|(a, b)| a.plain == b.plain) {
            places.push(window[0].place.start..window[window.len() - 1].place.end);
            start += old.len();
        } else {
            start += 1;
        }
    }
    places
}

/// Says that a letter of the text begins at `index`, not a part of one that was taken apart.
fn starts_whole(text: &[Letter], index: usize) -> bool {
    index == 0 || index >= text.len() || text[index].place.start != text[index - 1].place.start
}

/// Writes a text as it is compared: letters decomposed, quotes and dashes straight, runs of blanks as one, no
/// blanks before the end of a line.
fn plain(text: &str) -> Vec<Letter> {
    let mut letters: Vec<Letter> = Vec::new();
    for (start, letter) in text.char_indices() {
        let place = start..start + letter.len_utf8();
        match straight(letter) {
            '\r' => {}
            ' ' => match letters.last_mut() {
                Some(last) if last.plain == ' ' => last.place.end = place.end,
                _ => letters.push(Letter { plain: ' ', place }),
            },
            '\n' => {
                if letters.last().is_some_and(|last| last.plain == ' ') {
                    letters.pop();
                }
                letters.push(Letter { plain: '\n', place });
            }
            other => letters.extend(std::iter::once(other).nfkd().map(|plain| Letter {
                plain,
                place: place.clone(),
            })),
        }
    }
    letters
}

fn straight(letter: char) -> char {
    match letter {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' | '\u{2032}' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' | '\u{2033}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\t' | '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_replaced_where_it_occurs() {
        let cases: [(&str, &str, &str, Result<&str, ReplaceError>); 13] = [
            ("a b c", "b", "x", Ok("a x c")),
            ("a b\nb", "b", "x", Err(ReplaceError::Ambiguous(vec![1, 2]))),
            ("a", "b", "x", Err(ReplaceError::Missing)),
            ("a", "a", "a", Err(ReplaceError::Same)),
            // An exact occurrence wins over similar ones.
            (
                "say \"x\" or \u{201c}x\u{201d}",
                "\"x\"",
                "y",
                Ok("say y or \u{201c}x\u{201d}"),
            ),
            ("say \u{201c}hi\u{201d}!", "\"hi\"", "'hi'", Ok("say 'hi'!")),
            (
                "let s = \"it's\";",
                "it\u{2019}s",
                "is",
                Ok("let s = \"is\";"),
            ),
            ("a\tb  c", "a b c", "x", Ok("x")),
            ("a  \nb\r\nc", "a\nb\nc", "x", Ok("x")),
            ("1 \u{2013} 2", "1 - 2", "-1", Ok("-1")),
            ("caf\u{e9} au lait", "cafe\u{301}", "the", Ok("the au lait")),
            // Half of a composed letter is no occurrence.
            ("caf\u{e9}", "cafe", "x", Err(ReplaceError::Missing)),
            ("a   b", "\t", "x", Err(ReplaceError::Missing)),
        ];
        for (text, old, new, expected) in cases {
            assert_eq!(
                replace(text, old, (new, Place::Instead), false),
                expected.map(str::to_owned),
                "{text:?} {old:?}"
            );
        }
    }

    #[test]
    fn every_occurrence_is_replaced_on_request() {
        assert_eq!(
            replace("a b a", "a", ("aa", Place::Instead), true).unwrap(),
            "aa b aa"
        );
        assert_eq!(
            replace(
                "\u{2018}a\u{2019} \u{2018}a\u{2019}",
                "'a'",
                ("b", Place::Instead),
                true
            )
            .unwrap(),
            "b b"
        );
    }

    #[test]
    fn what_is_put_before_or_after_a_text_leaves_it_as_it_stands() {
        let quoted = "say \u{201c}hi\u{201d}!\r\nbye\r\n";
        for (text, old, put, all, expected) in [
            ("a b c", "b", ("x ", Place::Before), false, Ok("a x b c")),
            ("a b c", "b", (" x", Place::After), false, Ok("a b x c")),
            ("a b a", "a", ("x", Place::After), true, Ok("ax b ax")),
            (
                "a b a",
                "a",
                ("x", Place::After),
                false,
                Err(ReplaceError::Ambiguous(vec![1, 1])),
            ),
            // What the old text was misread from stays as well.
            (
                quoted,
                "\"hi\"!",
                (" So.", Place::After),
                false,
                Ok("say \u{201c}hi\u{201d}! So.\r\nbye\r\n"),
            ),
            ("a", "a", ("a", Place::Before), false, Ok("aa")),
            (
                "a",
                "b",
                ("x", Place::After),
                false,
                Err(ReplaceError::Missing),
            ),
            (
                "a",
                "a",
                ("", Place::After),
                false,
                Err(ReplaceError::Nothing),
            ),
        ] {
            let done = replace(text, old, put, all);
            assert_eq!(
                done,
                expected.map(str::to_owned),
                "{text:?} {old:?} {put:?}"
            );
        }
    }

    /// What is replaced exactly is replaced as everybody would, and what is not is left alone.
    #[test]
    fn fuzz_edit() {
        let check = |input: &[u8]| {
            let input = String::from_utf8_lossy(input);
            let mut parts = input.splitn(3, "\n====\n");
            let [text, old, new] = [(); 3].map(|()| parts.next().unwrap_or_default());
            let exact = text.matches(old).count();
            let once = replace(text, old, (new, Place::Instead), false);
            match &once {
                Ok(changed) if exact == 1 => assert_eq!(*changed, text.replacen(old, new, 1)),
                Ok(_) | Err(ReplaceError::Missing) => assert_eq!(exact, 0),
                Err(ReplaceError::Ambiguous(lines)) => {
                    let all = text.matches('\n').count() + 1;
                    assert!(lines.len() > 1 && lines.iter().all(|line| *line <= all));
                }
                Err(ReplaceError::Same) => assert_eq!(old, new),
                Err(ReplaceError::Nothing) => panic!("a replacement may be empty"),
            }
            if exact == 1 && !new.is_empty() {
                let after = replace(text, old, (new, Place::After), false);
                assert_eq!(after, Ok(text.replacen(old, &format!("{old}{new}"), 1)));
            }
            let all = replace(text, old, (new, Place::Instead), true);
            if exact > 0 && old != new {
                assert_eq!(all, Ok(text.replace(old, new)));
            }
            format!(
                "{exact} {:?}",
                once.map(|_| ())
                    .map_err(|error| std::mem::discriminant(&error))
            )
        };
        let words = [
            "\n====\n", "  ", "\u{2019}", "e\u{301}", "\u{2013}", "\t", "\r\n", "\u{a0}",
        ];
        ropewalk_tests::fuzz::Target {
            name: "edit",
            words: &words,
            check: &check,
        }
        .run();
    }
}
