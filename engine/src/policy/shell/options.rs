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

/// Long options of `su` and `runuser`, and the letters that mean the same.
const LONG_OF_SU: [(&str, char); 14] = [
    ("command", 'c'),
    ("fast", 'f'),
    ("group", 'g'),
    ("help", 'h'),
    ("login", 'l'),
    ("no-pty", 'T'),
    ("preserve-environment", 'p'),
    ("pty", 'P'),
    ("session-command", 'c'),
    ("shell", 's'),
    ("supp-group", 'G'),
    ("user", 'u'),
    ("version", 'V'),
    ("whitelist-environment", 'w'),
];
/// Those of `script`.
const LONG_OF_SCRIPT: [(&str, char); 16] = [
    ("append", 'a'),
    ("command", 'c'),
    ("echo", 'E'),
    ("flush", 'f'),
    ("force", 'f'),
    ("help", 'h'),
    ("log-in", 'I'),
    ("log-io", 'B'),
    ("log-out", 'O'),
    ("log-timing", 'T'),
    ("logging-format", 'm'),
    ("output-limit", 'o'),
    ("quiet", 'q'),
    ("return", 'e'),
    ("timing", 't'),
    ("version", 'V'),
];

/// Is where a shell takes what it runs from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScriptSource<'a> {
    /// This word; none where it is missing, or not known to be one.
    Text(Option<&'a Word>),
    /// The file of this name.
    File(&'a Word),
    /// What it reads.
    Input,
    /// Nowhere: it only says something of itself, or runs its arguments.
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
    // One may come to several words, of which one is an option; the other is the beginning of a document, which the grammar
    // has not told apart.
    let is_unclear = |word: &Word| {
        (word.is_pattern && word.text.starts_with(['*', '?', '[', '{']))
            || word.text.starts_with('\n')
    };
    let passed = words.get(..at).unwrap_or(words);
    if passed.iter().any(|word| word.is_pattern) || words.get(at).is_some_and(is_unclear) {
        return ScriptSource::Text(None);
    }
    match words.get(at) {
        text if takes_text => ScriptSource::Text(text),
        Some(file) if !reads => ScriptSource::File(file),
        _ if says => ScriptSource::Nowhere,
        _ => ScriptSource::Input,
    }
}

/// Is what a command hands to a shell, such as `su`.
#[derive(Debug, Default)]
pub(super) struct ShellCall {
    /// The texts behind `-c`. Without one the shell runs what its own words say.
    pub(super) texts: Vec<String>,
    /// The words that are no options of the command.
    operands: Vec<Word>,
    /// Whether it starts no shell: it only says something of itself, or runs its arguments.
    is_shell_free: bool,
}

impl ShellCall {
    /// Returns where the shell takes what it runs from that `base` starts without a text.
    pub(super) fn source(&self, base: &str) -> ScriptSource<'_> {
        if self.is_shell_free {
            return ScriptSource::Nowhere;
        }
        if base == "script" {
            return ScriptSource::Input;
        }
        let is_login = self.operands.first().is_some_and(|word| word.text == "-");
        // The next one names the user, the others are words of the shell.
        let rest = self.operands.get(usize::from(is_login) + 1..);
        script_source(rest.unwrap_or_default())
    }
}

/// Reads the words behind `base`, which hands some of them to a shell; none where that cannot be told.
pub(super) fn shell_call(base: &str, words: &[Word]) -> Option<ShellCall> {
    let (mut call, mut is_behind) = (ShellCall::default(), false);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let text = known(word)?;
        if is_behind || text == "-" || !text.starts_with('-') {
            call.operands.push(word.clone());
            continue;
        }
        if text == "--" {
            if base == "script" {
                break;
            }
            // The words behind it are options of the shell.
            is_behind = true;
            continue;
        }
        let (letter, attached) = option(base, text)?;
        match (letter, attached) {
            ('h' | 'V', _) => call.is_shell_free = true,
            // It takes no text then, and the others are those of what it runs.
            ('u', _) if base == "runuser" => {
                call.is_shell_free = true;
                break;
            }
            ('c', _) => {
                let text = attached.map_or_else(|| rest.next().map_or(Some(""), known), Some);
                call.texts.push(text?.to_owned());
            }
            // That of `-t` stands in the same word, if there is one.
            (letter, None) if letter != 't' && valued(base).contains(letter) => {
                rest.next().map_or(Some(""), known)?;
            }
            _ => {}
        }
    }
    Some(call)
}

/// Returns the text of a word that is this one and no other.
fn known(word: &Word) -> Option<&str> {
    Some(word.text.as_str()).filter(|_| word.is_fixed && !word.is_pattern)
}

/// Returns the letters of the options of `base` that take a value.
fn valued(base: &str) -> &'static str {
    if base == "script" {
        "cBEIOTmot"
    } else {
        "cGgsUuw"
    }
}

/// Returns the letter of the option of `base` in a word, the last where it holds several, and the value in the same word; none
/// where it is not known.
fn option<'a>(base: &str, text: &'a str) -> Option<(char, Option<&'a str>)> {
    let letters = text.strip_prefix('-')?;
    if let Some(long) = letters.strip_prefix('-') {
        return long_option(base, long);
    }
    let is_valued = |letter: char| valued(base).contains(letter);
    match letters.split_once(is_valued) {
        Some((before, value)) => {
            let letter = letters[before.len()..].chars().next()?;
            Some((letter, Some(value).filter(|value| !value.is_empty())))
        }
        None => Some((letters.chars().next_back()?, None)),
    }
}

fn long_option<'a>(base: &str, text: &'a str) -> Option<(char, Option<&'a str>)> {
    let (name, value) = text
        .split_once('=')
        .map_or((text, None), |(name, value)| (name, Some(value)));
    let long: &[(&str, char)] = if base == "script" {
        &LONG_OF_SCRIPT
    } else {
        &LONG_OF_SU
    };
    let exact = long.iter().find(|(long, _)| *long == name);
    // Long names may be cut.
    let mut fitting = long.iter().filter(|(long, _)| long.starts_with(name));
    let cut = fitting.next().filter(|_| fitting.next().is_none());
    exact.or(cut).map(|(_, letter)| (*letter, value))
}

/// Returns the texts that `mapfile` has the shell run while it reads; none where one is not known.
pub(super) fn callbacks(words: &[Word]) -> Option<Vec<String>> {
    let mut texts = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let text = known(word)?;
        if !text.starts_with('-') || text == "--" {
            break;
        }
        let takes_next = |letter| behind(text, letter, "CcdnOsu") == Some("");
        match behind(text, 'C', "cdnOsu") {
            Some("") => texts.push(rest.next().map_or(Some(""), known)?.to_owned()),
            Some(attached) => texts.push(attached.to_owned()),
            None if "cdnOsu".chars().any(takes_next) => {
                let value = rest.next();
                if value.is_some_and(may_be_several) {
                    return None;
                }
            }
            None => {}
        }
    }
    Some(texts)
}

/// Says whether a word may come to several; such as `$'\n'` and `{}` do not.
fn may_be_several(word: &Word) -> bool {
    let text = word.text.as_str();
    let is_quoted = text.starts_with("$'") && text.matches('$').count() == 1;
    let before_braces = text.strip_suffix("{}");
    let is_pattern =
        word.is_pattern && before_braces.is_none_or(|text| text.contains(['*', '?', '[', '{']));
    is_pattern || (word.is_bare && !is_quoted) || (!word.is_fixed && text.contains('@'))
}

/// Returns the text for which `xargs` puts what it reads into the words of its command, where it does: an empty one where it is
/// not known.
pub(super) fn replaced(words: &[Word]) -> Option<&str> {
    let is_unclear = |word: &Word| !word.is_fixed || may_be_several(word);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let text = word.text.as_str();
        if may_be_several(word) && !text.ends_with("$(nproc)") {
            return Some("");
        }
        let (name, value) = text
            .split_once('=')
            .map_or((text, None), |(name, value)| (name, Some(value)));
        let mark = if name.len() > "--".len() && "--replace".starts_with(name) {
            value.or(Some("{}"))
        } else if let Some(mark) = behind(text, 'I', "adEeiLlnPs") {
            if mark.is_empty() {
                let next = rest.next().filter(|next| !is_unclear(next));
                return Some(next.map_or("", |next| next.text.as_str()));
            }
            Some(mark)
        } else {
            let mark = behind(text, 'i', "adEeILlnPs");
            mark.map(|mark| if mark.is_empty() { "{}" } else { mark })
        };
        if let Some(mark) = mark {
            return Some(if is_unclear(word) { "" } else { mark });
        }
    }
    None
}

/// Says whether a command may run what it is given in another directory: which of its options do so is not looked at.
pub(super) fn leads_elsewhere(base: &str, words: &[Word]) -> bool {
    let is_option = |word: &Word| !word.is_fixed || word.text.starts_with('-');
    match base {
        "chroot" | "pkexec" => true,
        "find" => words
            .iter()
            .any(|word| matches!(word.text.as_str(), "-execdir" | "-okdir")),
        // They take options behind their arguments, too.
        "runuser" | "su" => words.iter().any(is_option),
        "sudo" => sudo_leads_elsewhere(words),
        "doas" | "nsenter" | "parallel" | "systemd-run" | "unshare" => {
            // Variables may stand in front of them.
            let is_first = |word: &&Word| word.text.starts_with('-') || !word.text.contains('=');
            words.iter().find(is_first).is_some_and(is_option)
        }
        _ => false,
    }
}

fn sudo_leads_elsewhere(words: &[Word]) -> bool {
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let text = word.text.as_str();
        if !text.starts_with('-') {
            // Variables may stand in front of it, and between its options.
            if word.is_fixed && !text.contains('=') {
                return false;
            }
            if word.is_bare || !text.contains('=') {
                return true;
            }
            continue;
        }
        if text == "-u" {
            if rest.next().and_then(known).is_none() {
                return true;
            }
        } else if known(word).is_none() || !text[1..].chars().all(|letter| "EHSkn".contains(letter))
        {
            return true;
        }
    }
    false
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
pub(super) fn behind<'a>(text: &'a str, option: char, valued: &str) -> Option<&'a str> {
    let letters = text.strip_prefix('-')?;
    let (before, value) = letters.split_once(option)?;
    let is_free = |letter: char| letter.is_ascii_alphanumeric() && !valued.contains(letter);
    Some(value).filter(|_| before.chars().all(is_free))
}
