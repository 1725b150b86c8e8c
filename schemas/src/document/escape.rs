//! Writes any text into Markdown so that it reads back the same: what Markdown or our own parser would take for
//! structure becomes a numeric entity, which every Markdown viewer shows as the character.

use std::fmt::Write as _;

/// Where a text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A heading: one line.
    Line,
    /// A cell of a table: one line, breaks as `<br>`.
    Cell,
    /// A list item: further lines are indented by two spaces.
    Item,
    /// A section of its own: lines as they are.
    Section,
}

/// Returns `text` as it is written at `place`.
pub(super) fn escaped(text: &str, place: Place) -> String {
    let mut result = String::with_capacity(text.len());
    let last = text.len();
    let mut line_start = true;
    for (at, letter) in text.char_indices() {
        let at_edge = at == 0 || at + letter.len_utf8() == last;
        let rest = text.get(at..).unwrap_or_default();
        if letter == '\n' && !at_edge && place != Place::Line {
            result.push_str(match place {
                Place::Cell => "<br>",
                Place::Item | Place::Line => "\n  ",
                Place::Section => "\n",
            });
            line_start = true;
            continue;
        }
        if must_hide(letter, rest, at_edge, line_start, place) {
            // Writing to a `String` cannot fail.
            write!(result, "&#{};", u32::from(letter)).unwrap_or_default();
        } else {
            result.push(letter);
        }
        line_start = false;
    }
    // A line of blanks only would be lost, since empty lines are written without indentation.
    match place {
        Place::Item => result
            .split('\n')
            .map(|line| if line == "  " { "" } else { line })
            .collect::<Vec<_>>()
            .join("\n"),
        _ => result,
    }
}

fn must_hide(letter: char, rest: &str, at_edge: bool, line_start: bool, place: Place) -> bool {
    match letter {
        '&' => rest.starts_with("&#"),
        '|' => place == Place::Cell,
        '<' => place == Place::Cell && rest.starts_with("<br>"),
        '[' => at_edge && place == Place::Item,
        '#' => line_start && place == Place::Section,
        ' ' if line_start => true,
        _ if letter.is_whitespace() => at_edge || letter != ' ',
        _ => letter.is_control() || letter == '\u{feff}',
    }
}

/// Returns the text that [`escaped`] wrote as `text`; in a cell, `<br>` is a line break.
pub(super) fn unescaped(text: &str, place: Place) -> String {
    let broken;
    let text = if place == Place::Cell {
        broken = text.replace("<br>", "\n");
        &broken
    } else {
        text
    };
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("&#") {
        result.push_str(before);
        let found = after.split_once(';').and_then(|(digits, behind)| {
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            let code = plain.then(|| digits.parse().ok()).flatten()?;
            Some((char::from_u32(code)?, behind))
        });
        if let Some((letter, behind)) = found {
            result.push(letter);
            rest = behind;
        } else {
            result.push_str("&#");
            rest = after;
        }
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_stays_readable() {
        for place in [Place::Line, Place::Item, Place::Section] {
            let text = "Adds R&D costs | keeps <br> & `code`, [links] and #tags.";
            assert_eq!(escaped(text, place), text);
        }
        for text in [
            "`habits keep` counts them",
            "counts with `habits keep`",
            "`x`",
        ] {
            assert_eq!(escaped(text, Place::Cell), text);
        }
        assert_eq!(escaped("a | b\nc", Place::Cell), "a &#124; b<br>c");
        assert_eq!(escaped("one\n\ntwo", Place::Item), "one\n\n  two");
        assert_eq!(
            escaped("# one\n## two", Place::Section),
            "&#35; one\n&#35;# two"
        );
    }

    #[test]
    fn hostile_text_reads_back() {
        let texts = [
            "",
            " ",
            "\n",
            "\n\na\n",
            "&#10;",
            "&#;",
            "<br>",
            "a<br>b",
            " a ",
            "a\n  b",
            "a\r\nb",
            "```",
            "---",
            "`x`",
            "[id] x",
            "a\n\n\nb",
            "\ta\u{a0}",
            "\u{feff}",
            "a\n b\n\n c",
            "|",
            "a\u{2028}b",
            "- x\n- y",
        ];
        for text in texts {
            for place in [Place::Line, Place::Cell] {
                let written = escaped(text, place);
                assert!(!written.contains('\n'), "{text:?}");
                assert_eq!(unescaped(&written, place), text, "{written:?}");
            }
        }
    }
}
