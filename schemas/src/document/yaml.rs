//! Reads YAML with one-line errors, and writes it by hand so that the result is calm to read and to diff.

use std::fmt::Write as _;

use serde::de::DeserializeOwned;

/// Says why YAML cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct YamlError {
    /// The line inside the YAML, from 1.
    pub(super) line: usize,
    /// What is wrong.
    pub(super) reason: String,
}

/// Reads `text`.
pub(super) fn read<Value: DeserializeOwned>(text: &str) -> Result<Value, YamlError> {
    let options = serde_saphyr::options! { with_snippet: false, emit_comments: false };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let line = error.location().map_or(1, |place| place.line());
        let reason = error.to_string().lines().collect::<Vec<_>>().join(" ");
        YamlError {
            line: usize::try_from(line).unwrap_or(1).max(1),
            reason: without_place(&reason).to_owned(),
        }
    })
}

/// Takes the place off the end of a reason: it counts from the block, and the caller counts from the document.
fn without_place(reason: &str) -> &str {
    match reason.rsplit_once(" at line ") {
        Some((before, place)) if place.len() < 30 && place.contains("column") => before,
        _ => reason,
    }
}

/// Returns `text` as a scalar on one line: plain where that is safe, in double quotes otherwise.
pub(super) fn scalar(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    let mut result = String::with_capacity(text.len() + 2);
    result.push('"');
    for letter in text.chars() {
        match letter {
            '"' => result.push_str("\\\""),
            '\\' => result.push_str("\\\\"),
            '\n' => result.push_str("\\n"),
            '\t' => result.push_str("\\t"),
            '\r' => result.push_str("\\r"),
            _ if is_hidden(letter) => {
                // Writing to a `String` cannot fail.
                write!(result, "\\U{:08X}", u32::from(letter)).unwrap_or_default();
            }
            _ => result.push(letter),
        }
    }
    result.push('"');
    result
}

/// Returns `text` as the value of a key at no indentation: a literal block where several lines read well as one.
pub(super) fn value(text: &str) -> String {
    let fits_literal = text.contains('\n')
        && !text.starts_with([' ', '\n', '\t'])
        && !text
            .chars()
            .any(|letter| letter != '\n' && is_hidden(letter));
    let kept_lines = text.lines().all(|line| !line.ends_with([' ', '\t']));
    let chomped = text.trim_end_matches('\n');
    let breaks = text.len() - chomped.len();
    if !fits_literal || !kept_lines || breaks > 1 || chomped.is_empty() {
        return scalar(text);
    }
    let mark = if breaks == 1 { "|" } else { "|-" };
    let lines = chomped.split('\n').map(|line| {
        if line.is_empty() {
            String::new()
        } else {
            format!("  {line}")
        }
    });
    format!("{mark}\n{}", lines.collect::<Vec<_>>().join("\n"))
}

fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}'
        )
}

/// Whether a plain scalar is surely taken for this very text, by any reader of YAML.
fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 10] = [
        "true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan",
    ];
    let begins = text.starts_with(|first: char| first.is_ascii_alphabetic());
    let ends = !text.ends_with(' ');
    let letters = text.bytes().all(|byte| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b' ' | b'_' | b'-' | b'.' | b'/' | b',' | b'(' | b')')
    });
    begins && ends && letters && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_words_are_left_plain_and_all_else_is_quoted() {
        for plain in ["src/lib.rs", "T-001", "exit 0", "adds, then sums (twice)"] {
            assert_eq!(scalar(plain), plain);
        }
        for text in [
            "",
            "yes",
            "3",
            "a: b",
            "a #b",
            "- a",
            "é",
            "x ",
            "{a}",
            "1e3",
            "2026-01-01",
        ] {
            assert!(scalar(text).starts_with('"'), "{text}");
        }
    }

    #[test]
    fn any_text_reads_back() {
        let texts = [
            "",
            "a\nb\n",
            "a\nb",
            "a\n\n  b\n",
            " a\nb",
            "a\nb\n\n",
            "a \nb",
            "\u{1}\u{85}\u{2028}\u{feff}",
            "\"\\",
            "a\tb",
            "# x\n- y: z\n",
            "```\nx\n```",
            "\n",
            "a\r\nb",
        ];
        for text in texts {
            for written in [scalar(text), value(text)] {
                let read: std::collections::BTreeMap<String, String> =
                    read(&format!("before: x\nkey: {written}\nafter: y\n")).unwrap();
                assert_eq!(read.get("key").map(String::as_str), Some(text), "{written}");
            }
        }
    }

    #[test]
    fn an_error_is_one_line_and_knows_its_place() {
        let error = read::<Vec<u32>>("- 1\n- 2\n- x\n").unwrap_err();
        assert_eq!(error.line, 3);
        assert!(!error.reason.contains('\n'), "{}", error.reason);
    }
}
