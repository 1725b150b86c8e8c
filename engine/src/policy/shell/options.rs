//! Reads from the options of a command where the text stands that it has a shell run.

use super::word::Word;

/// Long options of shells without a value, which some of them take behind one dash as well.
const LONG: [&str; 8] = [
    "login",
    "noediting",
    "noprofile",
    "norc",
    "posix",
    "pretty-print",
    "restricted",
    "verbose",
];

/// Long options of `script`, `su` and `runuser` with a value, which may be a word of its own.
const VALUED: [&str; 12] = [
    "--echo",
    "--group",
    "--log-in",
    "--log-io",
    "--log-out",
    "--log-timing",
    "--logging-format",
    "--output-limit",
    "--shell",
    "--supp-group",
    "--user",
    "--whitelist-environment",
];

/// Is where a shell takes what it runs from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScriptSource<'a> {
    /// This word; none where it is missing.
    Text(Option<&'a Word>),
    /// The file of this name.
    File(&'a Word),
    /// What it reads.
    Input,
    /// Nowhere: it only says something of itself.
    Nowhere,
}

/// Reads the words behind the name of a shell.
pub(super) fn script_source(words: &[Word]) -> ScriptSource<'_> {
    let (mut at, mut takes_text, mut reads, mut says) = (0, false, false, false);
    while let Some(word) = words.get(at) {
        let text = word.text.as_str();
        let dashes = text.len() - text.trim_start_matches('-').len();
        if dashes == 0 && (!text.starts_with('+') || text == "+") {
            break;
        }
        at += 1;
        match (dashes, &text[dashes..]) {
            (1 | 2, "") => break,
            (1 | 2, "rcfile" | "init-file") => at += 1,
            (1 | 2, "version" | "help") => says = true,
            (1 | 2, name) if LONG.contains(&name) => {}
            (0 | 1, letters) => {
                takes_text |= letters.contains('c');
                reads |= letters.contains('s');
                // Each names an option of the shell in a word of its own: `-eo pipefail`.
                at += letters.matches(['o', 'O']).count();
            }
            _ => {}
        }
    }
    match words.get(at) {
        text if takes_text => ScriptSource::Text(text),
        Some(file) if !reads => ScriptSource::File(file),
        _ if says => ScriptSource::Nowhere,
        _ => ScriptSource::Input,
    }
}

/// Returns the texts behind `-c` of `base`, which hands them to a shell, such as `su`; none where one is not known. Without one
/// the shell runs what it reads.
pub(super) fn command_texts(base: &str, words: &[Word]) -> Option<Vec<String>> {
    let valued = if base == "script" {
        "BEIOTmot"
    } else {
        "GgsUuw"
    };
    let mut texts = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let text = word.text.as_str();
        // To others the words behind it are options of the shell.
        if text == "--" && base == "script" {
            break;
        }
        let long = ["--command=", "--session-command="];
        let attached = long.iter().find_map(|name| text.strip_prefix(name));
        let letters = behind(text, 'c', valued);
        let told = attached.or(letters.filter(|told| !told.is_empty()));
        let (holder, told) = if let Some(told) = told {
            (Some(word), told)
        } else if letters.is_some() || matches!(text, "--command" | "--session-command") {
            let next = rest.next();
            (next, next.map_or("", |next| next.text.as_str()))
        } else {
            // That of `-t` stands in the same word, if there is one.
            let takes_rest = |letter| letter != 't' && behind(text, letter, valued) == Some("");
            if valued.chars().any(takes_rest) || VALUED.contains(&text) {
                rest.next();
            }
            continue;
        };
        if holder.is_some_and(|word| !word.is_fixed) {
            return None;
        }
        texts.push(told.to_owned());
    }
    Some(texts)
}

/// Returns the word of the directory to which `env` goes before it runs what it is given, and its name there if it is attached.
pub(super) fn directory_of_env(words: &[Word]) -> Option<(Option<&Word>, Option<&str>)> {
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let text = word.text.as_str();
        if !text.starts_with('-') || text == "--" {
            return None;
        }
        let (name, value) = text
            .split_once('=')
            .map_or((text, None), |(name, value)| (name, Some(value)));
        // Long names may be cut.
        if name.len() > "--".len() && "--chdir".starts_with(name) {
            return Some(match value {
                Some(value) => (Some(word), Some(value)),
                None => (rest.next(), None),
            });
        }
        match behind(text, 'C', "uS") {
            Some("") => return Some((rest.next(), None)),
            Some(value) => return Some((Some(word), Some(value))),
            None if behind(text, 'u', "CS") == Some("") || text == "--unset" => {
                rest.next();
            }
            None => {}
        }
    }
    None
}

/// Returns what stands behind an option of one letter in a word of such options, in which those of `valued` take the rest.
fn behind<'a>(text: &'a str, option: char, valued: &str) -> Option<&'a str> {
    let letters = text.strip_prefix('-')?;
    let (before, value) = letters.split_once(option)?;
    let is_free = |letter: char| letter.is_ascii_alphanumeric() && !valued.contains(letter);
    Some(value).filter(|_| before.chars().all(is_free))
}

/// Says whether a command sets a variable whose name may be a part of an option, as in `printf -vname`.
pub(super) fn sets_by_option(base: &str, words: &[Word]) -> bool {
    let option = match base {
        "printf" => 'v',
        "read" => 'a',
        "wait" => 'p',
        _ => return false,
    };
    words
        .iter()
        .any(|word| behind(&word.text, option, "").is_some())
}
