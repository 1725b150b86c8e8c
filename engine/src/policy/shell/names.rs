//! Tells commands apart that may set a variable whose name does not stand in the line.

use super::options::behind;
use super::word::Word;
use super::wrapped::starts_behind;

/// Options of declarations that leave other names and values as they are written.
const PLAIN: &str = "Aafgiprx-";

/// Says whether a command may set a variable whose name, or whose value, is not what stands in the line: one whose name is
/// a part of an option, as in `printf -vname`, is put together, or stands for another.
pub(super) fn builds_names(base: &str, words: &[Word]) -> bool {
    let has = |option| {
        let mut texts = words.iter().map(|word| word.text.as_str());
        texts.any(|text| behind(text, option, "").is_some())
    };
    let builds = |words: &[Word]| {
        let mut names = words.iter().filter(|word| !word.text.starts_with('-'));
        names.any(|word| !shows_name(word))
    };
    match base {
        "printf" => has('v') || words.first().is_some_and(may_name),
        "wait" => has('p'),
        "read" => has('a') || builds(words),
        "mapfile" | "readarray" => builds(words),
        "getopts" => builds(words.get(1..).unwrap_or_default()),
        "declare" | "export" | "local" | "readonly" | "typeset" => {
            builds(words) || words.iter().any(|word| changes_values(&word.text))
        }
        "env" | "sudo" | "doas" => {
            // Behind it stand the words of the command that it runs.
            let last = starts_behind(base, words).pop().unwrap_or(words.len());
            words
                .iter()
                .take(last.saturating_add(1))
                .filter(|word| !word.text.starts_with('-'))
                .any(|word| (!word.is_fixed || word.text.contains('=')) && !shows_name(word))
        }
        _ => false,
    }
}

/// Says whether the format of `printf` may come to an option that names a variable.
fn may_name(format: &Word) -> bool {
    let is_unknown = |letter| matches!(letter, '$' | '`' | '~' | '<' | '>' | '{' | '-');
    if format.is_fixed || !format.text.starts_with(is_unknown) {
        return false;
    }
    let (_, end) = format.split();
    let ends_name = end.ends_with(']') || end.chars().all(is_of_name);
    // `"$@"` comes to several words.
    format.is_bare || ends_name || format.text.contains('@')
}

/// Says whether the name of the variable in a word stands in the line as it is.
fn shows_name(word: &Word) -> bool {
    let text = word.text.as_str();
    let name = text.split(['=', '+', '[']).next().unwrap_or_default();
    let is_name = !name.is_empty() && name.chars().all(is_of_name);
    (text.is_empty() && word.is_fixed) || (is_name && name.len() <= word.written_start)
}

/// Says whether an option of a declaration has a variable stand for another, or changes the letters of its value.
fn changes_values(text: &str) -> bool {
    let letters = text.strip_prefix('-');
    letters.is_some_and(|letters| letters.chars().any(|letter| !PLAIN.contains(letter)))
}

/// Says whether a letter may be one of the name of a variable.
pub(super) fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}
