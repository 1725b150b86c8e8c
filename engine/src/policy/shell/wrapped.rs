//! Finds the commands that a command runs which it was given as words, such as `timeout 5 rm x`.

use std::collections::BTreeSet;

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
pub(super) fn starts(words: &[Word]) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut open = vec![0];
    while let Some(at) = open.pop() {
        let inner = starts_of(&words[at..]).into_iter().map(|inner| at + inner);
        let new: Vec<usize> = inner.filter(|inner| found.insert(*inner)).collect();
        open.extend(new);
    }
    found
}

fn starts_of(words: &[Word]) -> Vec<usize> {
    let Some(base) = words.first().and_then(Word::base) else {
        return Vec::new();
    };
    if FINDERS.contains(&base) {
        let executes = |at: &usize| EXECUTES.contains(&words[*at - 1].text.as_str());
        return (2..words.len()).filter(executes).collect();
    }
    let wrapper = WRAPPERS.iter().find(|(name, _)| *name == base);
    let Some((_, own)) = wrapper else {
        return Vec::new();
    };
    let asks = |word: &Word| matches!(word.text.as_str(), "-v" | "-V");
    if base == "command" && words.get(1).is_some_and(asks) {
        // It says where a program lies.
        return Vec::new();
    }
    let mut own = *own;
    let mut may_be_value = false;
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate().skip(1) {
        if word.text.starts_with('-') {
            may_be_value = word.text != "--" && !word.text.contains('=');
        } else if !is_assignment(&word.text) {
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

fn is_assignment(text: &str) -> bool {
    let name = text.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| {
        let mut letters = name.bytes();
        !name.is_empty() && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
    })
}
