//! Writes what a shell is given to read.

use std::borrow::Cow;

/// Writes a text as a shell reads one word: between quotes, where anything of it could mean something else.
pub fn shell_word(text: &str) -> Cow<'_, str> {
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.into()
    } else {
        format!("'{}'", text.replace('\'', r"'\''")).into()
    }
}

#[cfg(test)]
mod tests {
    use super::shell_word;

    #[test]
    fn a_text_is_one_word_for_a_shell() {
        for (text, word) in [
            ("/home/ada/a-b.c_d/é", "/home/ada/a-b.c_d/é"),
            ("/home/ada/my walks", "'/home/ada/my walks'"),
            ("/it's/$HOME", r"'/it'\''s/$HOME'"),
            ("a;$(b)", "'a;$(b)'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(text), word);
        }
    }
}
