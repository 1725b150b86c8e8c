//! Finds the commands that a command runs which it was given as words, such as `timeout 5 rm x`.

use std::collections::BTreeSet;

use super::options::replaced;
use super::word::Word;

/// Commands that run what stands in their arguments, with how many arguments of their own come before it.
const WRAPPERS: [(&str, usize); 38] = [
    ("builtin", 0),
    ("busybox", 0),
    ("chronic", 0),
    ("chroot", 1),
    ("chrt", 1),
    ("command", 0),
    ("coproc", 0),
    ("dbus-run-session", 0),
    ("doas", 0),
    ("env", 0),
    ("exec", 0),
    ("fakeroot", 0),
    ("flock", 1),
    ("ionice", 0),
    ("ltrace", 0),
    ("nice", 0),
    ("nohup", 0),
    ("nsenter", 0),
    ("parallel", 0),
    ("pkexec", 0),
    ("prlimit", 0),
    ("runuser", 0),
    ("setarch", 1),
    ("setpriv", 0),
    ("setsid", 0),
    ("ssh-agent", 0),
    ("stdbuf", 0),
    ("strace", 0),
    ("sudo", 0),
    ("systemd-run", 0),
    ("taskset", 1),
    ("time", 0),
    ("timeout", 1),
    ("unbuffer", 0),
    ("unshare", 0),
    ("watch", 0),
    ("xargs", 0),
    ("xvfb-run", 0),
];
/// The most commands in the words of one.
const MOST: usize = 64;
/// Words that are no commands: where the grammar takes one for a command, or for a part of one, it misses what the shell makes
/// of it, as in `time { a; }`.
const RESERVED: [&str; 10] = [
    "!", "{", "}", "do", "done", "elif", "else", "esac", "fi", "then",
];
/// Commands that run what follows one of these.
const FINDERS: [&str; 2] = ["fd", "find"];
const EXECUTES: [&str; 8] = [
    "-exec",
    "-execdir",
    "-ok",
    "-okdir",
    "-x",
    "-X",
    "--exec",
    "--exec-batch",
];

/// Returns the places where a command may begin among `words`, but the first: those of commands within commands as well.
/// None where there are too many.
pub(super) fn starts(words: &[Word]) -> Option<BTreeSet<usize>> {
    let mut found = BTreeSet::new();
    let mut open = vec![0];
    while let Some(at) = open.pop() {
        let Some(base) = words.get(at).and_then(Word::base) else {
            continue;
        };
        let behind = at + 1;
        let inner = starts_behind(base, &words[behind..]).into_iter();
        let inner = inner.map(|inner| behind + inner);
        open.extend(inner.filter(|inner| found.insert(*inner)));
        if found.len() > MOST {
            return None;
        }
    }
    Some(found)
}

/// Says whether a word cannot be a command.
pub(super) fn is_reserved(word: &Word) -> bool {
    RESERVED.contains(&word.text.as_str())
}

/// Returns the places where the command may begin among `words` that `base` runs, which stands before them.
pub(super) fn starts_behind(base: &str, words: &[Word]) -> Vec<usize> {
    if FINDERS.contains(&base) {
        let executes = |at: &usize| EXECUTES.contains(&words[*at - 1].text.as_str());
        return (1..words.len()).filter(executes).collect();
    }
    let wrapper = WRAPPERS.iter().find(|(name, _)| *name == base);
    let Some((_, own)) = wrapper else {
        return Vec::new();
    };
    let asks = |word: &Word| matches!(word.text.as_str(), "-v" | "-V");
    if base == "command" && words.first().is_some_and(asks) {
        // It says where a program lies.
        return Vec::new();
    }
    let mut own = *own;
    let mut may_be_value = false;
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if word.text.starts_with('-') {
            may_be_value = word.text != "--" && !word.text.contains('=');
        } else if word.text.contains('=') {
            if !is_assignment(&word.text) {
                // The environment takes any name, so that the command may be this one, or come later.
                found.push(at);
            }
        } else {
            // Which options take a value is not known for all of them, so that either may be the command.
            found.push(at);
            match (may_be_value, own) {
                (true, _) => may_be_value = false,
                (false, 0) => break,
                (false, _) => own -= 1,
            }
        }
    }
    found
}

/// Says whether a command may put what it reads into one of these texts before it is run.
pub(super) fn rewrites<'a>(
    (base, words): (&str, &[Word]),
    mut texts: impl Iterator<Item = &'a str>,
) -> bool {
    match base {
        "parallel" => texts.next().is_some(),
        "xargs" => {
            let command = starts_behind(base, words).pop().unwrap_or_default();
            let mark = replaced(&words[..command]);
            mark.is_some_and(|mark| texts.any(|text| text.contains(mark)))
        }
        _ => false,
    }
}

fn is_assignment(text: &str) -> bool {
    let name = text.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| {
        let mut letters = name.bytes();
        !name.is_empty() && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
    })
}
