//! Shows what could steer a terminal, instead of letting it: texts come from models, from files and from people.

use std::borrow::Cow;

/// Returns `text` with every control character, every mark that reorders letters and every invisible one made visible;
/// lines and tabs stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text
        .chars()
        .any(|letter| needs_showing(letter) && letter != '\n' && letter != '\t')
    {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\n' | '\t' => shown.push(letter),
            // The end of a line as another system writes it.
            '\r' if letters.peek() == Some(&'\n') => {}
            '\0'..='\x1f' => shown.extend(char::from_u32(0x2400 + u32::from(letter))),
            '\x7f' => shown.push('\u{2421}'),
            _ if needs_showing(letter) => {
                shown.extend(format!("<U+{:04X}>", u32::from(letter)).chars());
            }
            _ => shown.push(letter),
        }
    }
    Cow::Owned(shown)
}

/// Says that a letter is obeyed or left out by a terminal instead of being shown.
fn needs_showing(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            // Soft hyphen, Arabic letter mark, Mongolian vowel separator.
            '\u{ad}' | '\u{61c}' | '\u{180e}'
            // Zero-width marks, directions, separators of lines and paragraphs, embeddings, isolates.
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            // Byte order mark, annotations, tags.
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            assert_eq!(visible(text), expected);
        }
    }

    #[test]
    fn ordinary_texts_stay_as_they_are() {
        for text in ["naïve — 漢字 🚀\n\tline", ""] {
            assert!(matches!(visible(text), Cow::Borrowed(_)), "{text}");
        }
    }
}
