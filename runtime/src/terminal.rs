//! Shows what could steer a terminal, instead of letting it: texts come from models, from files and from people.

use std::borrow::Cow;

use serde_json::Value;

/// Returns `text` with every control character, every mark that reorders letters and every invisible one made visible;
/// lines and tabs stay, and so does what joins letters that are written joined, or faces to one.
pub fn visible(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for (place, letter) in text.char_indices() {
        let behind = &text[place + letter.len_utf8()..];
        match letter {
            '\n' | '\t' => shown.push(letter),
            // The end of a line as another system writes it.
            '\r' if behind.starts_with('\n') => {}
            '\0'..='\x1f' => shown.extend(char::from_u32(0x2400 + u32::from(letter))),
            '\x7f' => shown.push('\u{2421}'),
            _ if needs_showing(letter) && !is_joining(&text[..place], letter, behind) => {
                shown.extend(format!("<U+{:04X}>", u32::from(letter)).chars());
            }
            _ => shown.push(letter),
        }
    }
    Cow::Owned(shown)
}

/// Returns whether nobody would see anything of `text`: it is empty, or only blanks and letters that nobody draws.
pub fn is_unseen(text: &str) -> bool {
    let is_drawn = |letter: char| {
        // What chooses the shape of a letter has none.
        let is_shape = matches!(letter, '\u{fe00}'..='\u{fe0f}');
        !letter.is_whitespace() && !needs_showing(letter) && !is_shape
    };
    !text.chars().any(is_drawn)
}

/// Returns a JSON text in which the same letters are written as escapes: whoever reads it gets what was there.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    // In the line breaks and blanks between its parts there is nothing to escape.
    let is_open = |letter: char| needs_showing(letter) && !letter.is_ascii_whitespace();
    if !json.chars().any(is_open) {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len());
    for letter in json.chars() {
        if is_open(letter) {
            let mut units = [0; 2];
            let units = letter.encode_utf16(&mut units).iter();
            shown.extend(units.map(|unit| format!("\\u{unit:04x}")));
        } else {
            shown.push(letter);
        }
    }
    Cow::Owned(shown)
}

/// Shows them in every text of `value`, for whoever takes the texts up as they are.
pub fn show_in(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(shown) = visible(text) {
                *text = shown;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(show_in),
        Value::Object(fields) => fields.values_mut().for_each(show_in),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns a line of a log as a terminal may have it: colours stay, since what was logged cannot hold any (the log
/// writes their beginning as text), and lines within stand apart from those of the log.
pub(crate) fn visible_log(line: &str) -> String {
    let (line, end) = match line.strip_suffix('\n') {
        Some(line) => (line, "\n"),
        None => (line, ""),
    };
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(begin) = rest.find('\x1b') {
        shown.push_str(&visible(&rest[..begin]));
        rest = &rest[begin..];
        let colour = colour_bytes(rest).unwrap_or_default();
        shown.push_str(&rest[..colour]);
        if colour == 0 {
            shown.push_str(&visible("\x1b"));
        }
        rest = &rest[colour.max(1)..];
    }
    shown.push_str(&visible(rest));
    shown.replace('\n', "\n    ") + end
}

/// Returns how long the change of colour is that `text` begins with.
fn colour_bytes(text: &str) -> Option<usize> {
    let codes = text.strip_prefix("\x1b[")?;
    let end = codes.find(|letter: char| !letter.is_ascii_digit() && letter != ';')?;
    codes[end..].starts_with('m').then_some(end + 3)
}

/// Returns whether every letter of `text` may be shown as it is. Whole pages are looked through, so that letters that are
/// one byte are not decoded.
fn is_plain(text: &str) -> bool {
    let mut rest = text;
    while let Some(place) = unusual(rest.as_bytes()) {
        // The first byte of a letter, since no byte of a longer one is usual.
        let mut letters = rest[place..].chars();
        if letters.next().is_none_or(needs_showing) {
            return false;
        }
        rest = letters.as_str();
    }
    true
}

/// Returns the place of the first byte that is no letter, line or tab of ASCII.
fn unusual(text: &[u8]) -> Option<usize> {
    /// So many at once are compared by one instruction or two.
    const AT_ONCE: usize = 64;
    let is_usual = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    let all_usual = |chunk: &[u8]| chunk.iter().fold(true, |all, byte| all & is_usual(byte));
    let usual = text.chunks(AT_ONCE).take_while(|chunk| all_usual(chunk));
    let begin = usual.map(<[u8]>::len).sum();
    let place = text[begin..].iter().position(|byte| !is_usual(byte))?;
    Some(begin + place)
}

/// Joins what stands on its sides, where letters are written so; faces of several parts are made of it too.
const JOINER: char = '\u{200d}';
/// Keeps apart what would be written joined.
const NON_JOINER: char = '\u{200c}';

/// Returns whether a letter joins, or keeps apart, what stands on both of its sides: it says nothing by itself and changes
/// how these are drawn. Anywhere else it would only hide.
fn is_joining(before: &str, letter: char, behind: &str) -> bool {
    let mut back = before.chars().rev();
    let (Some(last), Some(next)) = (back.next(), behind.chars().next()) else {
        return false;
    };
    let is_shape = matches!(last, '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}');
    let drawn = if is_shape { back.next() } else { Some(last) };
    match letter {
        JOINER if is_picture(next) => drawn.is_some_and(is_picture),
        JOINER | NON_JOINER => is_written_joined(last) && is_written_joined(next),
        _ => false,
    }
}

/// Returns whether a letter belongs to a script whose letters change by what stands beside them: Arabic, Syriac and their
/// kin, those of India, Myanmar, Khmer, Mongolian.
fn is_written_joined(letter: char) -> bool {
    let is_of_them = matches!(letter,
        '\u{600}'..='\u{8ff}' | '\u{900}'..='\u{dff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{18af}'
        | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}');
    is_of_them && !needs_showing(letter)
}

/// Returns whether a letter is a picture.
const fn is_picture(letter: char) -> bool {
    matches!(letter, '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

/// Says that a letter is obeyed or left out by a terminal instead of being shown.
fn needs_showing(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            // Soft hyphen, joiner of graphemes, Arabic letter mark, fillers and vowels without a shape.
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{3164}' | '\u{ffa0}'
            // Zero-width marks, directions, separators of lines and paragraphs, embeddings, isolates.
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            // Byte order mark, annotations, marks of music, tags, variants that nobody draws.
            | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_would_see_is_unseen() {
        for text in [
            "",
            " \n\u{a0}",
            "\u{200b}",
            "\u{202e}\u{200b} \u{fe0f}",
            "\u{3164}",
        ] {
            assert!(is_unseen(text), "{text:?}");
        }
        for text in ["a\u{200b}", "\u{202e}-", "\u{2764}\u{fe0f}"] {
            assert!(!is_unseen(text), "{text:?}");
        }
    }

    #[test]
    fn what_would_be_obeyed_is_shown() {
        for (text, expected) in [
            ("a\x1b[31mred\u{7}\r\n\tb", "a␛[31mred␇\n\tb"),
            ("over\rwritten", "over␍written"),
            ("\u{9b}31m\u{7f}", "<U+009B>31m␡"),
            ("rm \u{202e}txt.exe\u{2066}", "rm <U+202E>txt.exe<U+2066>"),
            (
                "pay\u{200b}pal\u{feff}\u{e0041}",
                "pay<U+200B>pal<U+FEFF><U+E0041>",
            ),
            ("x\u{3164}y\u{e0101}", "x<U+3164>y<U+E0101>"),
        ] {
            assert_eq!(visible(text), expected);
        }
    }

    #[test]
    fn what_joins_letters_or_faces_stays_and_is_shown_where_it_hides() {
        for text in [
            "👨\u{200d}👩\u{200d}👧",
            "👩🏽\u{200d}🔬 ❤\u{fe0f}\u{200d}🔥",
            "می\u{200c}خواهم",
            "क्\u{200d}ष ക്\u{200d}ക",
        ] {
            assert_eq!(visible(text), text);
        }
        for (text, expected) in [
            ("pay\u{200d}pal", "pay<U+200D>pal"),
            ("\u{200d}👧", "<U+200D>👧"),
            ("👨\u{200d}", "👨<U+200D>"),
            ("👨\u{200d}\u{200d}👧", "👨<U+200D><U+200D>👧"),
            ("👨\u{200c}👧", "👨<U+200C>👧"),
            ("می\u{200b}خواهم", "می<U+200B>خواهم"),
            ("می\u{200c} خواهم", "می<U+200C> خواهم"),
        ] {
            assert_eq!(visible(text), expected);
        }
    }

    #[test]
    fn json_says_the_same_without_letting_it_be_obeyed() {
        let value = serde_json::json!({ "a\u{202e}": ["\x1b]0;x\u{7}", "\u{9b}1m\u{7f}", "\u{e0041}", "naïve\n"] });
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        let shown = visible_json(&pretty);
        assert!(
            !shown
                .chars()
                .any(|letter| needs_showing(letter) && letter != '\n')
        );
        assert!(
            shown.contains("a\\u202e") && shown.contains("\\udb40\\udc41"),
            "{shown}"
        );
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).unwrap(),
            value
        );
        assert!(matches!(visible_json("{\n  \"a\": 1\n}"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_line_of_the_log_keeps_its_colours_and_is_not_forged() {
        for (line, expected) in [
            (
                "\x1b[2mnow\x1b[0m said \u{202e}x\n",
                "\x1b[2mnow\x1b[0m said <U+202E>x\n",
            ),
            ("a\x1b]0;title\u{7}\x1b[2Jb\n", "a␛]0;title␇␛[2Jb\n"),
            ("said\nINFO forged\n", "said\n    INFO forged\n"),
            ("plain", "plain"),
            ("cut \x1b[3", "cut ␛[3"),
        ] {
            assert_eq!(visible_log(line), expected);
        }
    }

    #[test]
    fn one_letter_is_found_wherever_it_stands() {
        for place in 0..200 {
            let mut text = "a".repeat(200);
            text.insert(place, '\u{202e}');
            text.insert(place / 2, 'é');
            assert!(visible(&text).contains("<U+202E>"), "{place}");
        }
    }

    #[test]
    fn ordinary_texts_stay_as_they_are() {
        for text in ["naïve — 漢字 🚀\n\tline", ""] {
            assert!(matches!(visible(text), Cow::Borrowed(_)), "{text}");
        }
    }
}
