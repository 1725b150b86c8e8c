//! Follows which files the redirections of a line write, as far as that is known before the line runs: through variables
//! that the line sets itself, and through the directories that it goes to.

use std::collections::HashSet;

use super::moves::{Destination, Move, Place, is_searched};
use super::names::is_of_name;
use super::word::Word;

/// Through so many variables one after the other a name is followed.
const DEEPEST: usize = 2;
/// Of a variable that may hold more values none is followed.
const MOST_VALUES: usize = 8;
/// More files of one line are not followed.
const MOST_FOLLOWED: usize = 100;
/// More changes of the directory are not followed.
const MOST_MOVES: usize = 3;
/// What the shell makes other words of, beside blanks.
const PATTERN: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];
/// What stands for the present directory.
const HERE: [&str; 4] = ["$PWD", "${PWD}", "$(pwd)", "`pwd`"];
/// Variables that say what other words come to, where a line leaves them as they are.
const STEERING: [&str; 6] = ["CDPATH", "DIRSTACK", "IFS", "OLDPWD", "PWD", "TMPDIR"];
/// Variables by which functions, aliases and remembered programs are put in the place of others.
const REPLACING: [&str; 3] = ["BASH_ALIASES", "BASH_CMDS", "BASH_FUNC_"];
/// Some of the variables whose value may be another than the line gives them: the shell gives it one, or they have one before.
const UNFOLLOWED: [&str; 23] = [
    "CARGO_HOME",
    "COPROC",
    "DIRSTACK",
    "FUNCNAME",
    "GROUPS",
    "HISTCMD",
    "HOME",
    "LANG",
    "LINENO",
    "MAPFILE",
    "OLDPWD",
    "OPTARG",
    "OPTIND",
    "PATH",
    "PIPESTATUS",
    "PPID",
    "PWD",
    "RANDOM",
    "REPLY",
    "RUSTUP_HOME",
    "SECONDS",
    "SRANDOM",
    "_",
];

/// Is a file that a redirection writes, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RedirectTarget {
    /// The one at this path, absolute or from where the line begins.
    At(String),
    /// One whose path ends so: the rest is only known once the line runs.
    Ending(String),
}

/// Is one text of a line, the line itself or what a shell in it is told to run.
#[derive(Debug)]
pub(super) struct ReadText {
    pub(super) source: String,
    /// Which of the texts holds it; none for the line.
    pub(super) around: Option<usize>,
    pub(super) redirects: Redirects,
}

/// Is what one text redirects, and what it does that says where to.
#[derive(Debug, Default)]
pub(super) struct Redirects {
    /// The files as they are written.
    pub(super) targets: Vec<(Word, Place)>,
    /// The variables that the text sets, in order of appearance.
    pub(super) assigned: Vec<Assignment>,
    /// Whether a command of it may set a variable whose name does not stand there.
    pub(super) builds_names: bool,
    /// The functions and aliases that it makes.
    pub(super) defined: Vec<String>,
    /// The changes of the directory, in order of appearance.
    pub(super) moves: Vec<Move>,
}

/// Is a place that sets a variable.
#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) name: String,
    /// One value, or those of a loop.
    pub(super) values: Vec<Word>,
    /// Whether it stands in front of a command: the redirections of that are read before.
    pub(super) is_prefix: bool,
    /// Whether that is `read`, which alone has the value, and no other is made with it.
    pub(super) is_of_read: bool,
}

/// Returns the files that the texts of a line write, the line first. What lies in a place for scratch is none.
pub(super) fn files(texts: &[ReadText]) -> Vec<RedirectTarget> {
    let followed = LineVariables::of(texts);
    let (mut seen, mut found, mut count) = (HashSet::new(), Vec::new(), 0);
    for (at, text) in texts.iter().enumerate() {
        for (target, place) in &text.redirects.targets {
            let depth = if count < MOST_FOLLOWED { DEEPEST } else { 0 };
            count += 1;
            let mut files = Vec::new();
            followed.follow(target, (at, depth), &mut files);
            let directories = followed.directories(*place);
            let places = files
                .into_iter()
                .flat_map(|file| from_the_beginning(file, directories.as_deref()));
            found.extend(places.filter(|place| seen.insert(place.clone())));
        }
    }
    found
}

/// Follows the variables of a line.
struct LineVariables<'a> {
    texts: &'a [ReadText],
    builds_names: bool,
    /// Those of `STEERING` that may have another value than before the line.
    changed: Vec<&'static str>,
}

impl<'a> LineVariables<'a> {
    fn of(texts: &'a [ReadText]) -> Self {
        let builds = |text: &ReadText| text.redirects.builds_names || refers(&text.source);
        let builds_names = texts.iter().any(builds);
        let is_changed = |name: &&str| {
            let is_set = |text: &ReadText| {
                assignments(&text.source, name) != Some(of_read(texts, text, name))
            };
            builds_names || texts.iter().any(is_set)
        };
        Self {
            texts,
            builds_names,
            changed: STEERING.into_iter().filter(is_changed).collect(),
        }
    }

    /// Says whether a variable of `STEERING` has the value in all texts that it had before the line.
    fn is_kept(&self, name: &str) -> bool {
        !self.changed.contains(&name)
    }

    /// Says whether the program of this name is run by it, and nothing that the line puts in its place.
    fn is_program(&self, name: &str) -> bool {
        let mut defined = self.texts.iter().flat_map(|text| &text.redirects.defined);
        !self.builds_names && defined.all(|other| other != name)
    }

    /// Adds the files that `target`, of the text at `at`, may be, following `depth` variables.
    fn follow(&self, target: &Word, (at, depth): (usize, usize), files: &mut Vec<RedirectTarget>) {
        let (start, end) = target.split();
        let is_other = target.is_bare && (!self.is_kept("IFS") || end.contains(is_special));
        let at_path = |path: String| {
            if is_other {
                self.ending(target)
            } else {
                RedirectTarget::At(path)
            }
        };
        if target.is_pattern {
            files.push(self.ending(target));
            return;
        }
        if target.is_fixed {
            files.push(at_path(end.to_owned()));
            return;
        }
        let (prefix, name) = variable(start).unwrap_or_default();
        // What has no value yet, or could not be made, is read as nothing; a name without a letter is none.
        let unset = Some(format!("{prefix}{end}")).filter(|path| !path.is_empty());
        let unset = unset.map(at_path);
        if self.is_scratch(start, end) {
            files.extend(unset);
            return;
        }
        let is_here = self.is_kept("PWD") && self.is_program("pwd");
        if HERE.contains(&start) && end.starts_with('/') && is_here {
            files.push(at_path(format!(".{end}")));
            return;
        }
        let values = Some(name).filter(|name| depth > 0 && !name.is_empty());
        let Some(values) = values.and_then(|name| self.values(at, name)) else {
            files.push(self.ending(target));
            return;
        };
        for value in values {
            let value = value.instead_of(target, prefix);
            self.follow(&value, (at, depth - 1), files);
        }
        files.extend(unset);
    }

    /// Returns a file of which the known end counts, as far as the shell leaves it as it is.
    fn ending(&self, target: &Word) -> RedirectTarget {
        let (_, end) = target.split();
        let end = match (target.is_bare, target.is_pattern) {
            (true, _) if !self.is_kept("IFS") => "",
            (false, false) => end,
            _ => end.rsplit(is_special).next().unwrap_or_default(),
        };
        RedirectTarget::Ending(end.to_owned())
    }

    /// Returns the values that a variable may have in the text at `at`; none where something else may give it one.
    fn values(&self, at: usize, name: &str) -> Option<Vec<&Word>> {
        let assigned = self.texts[at].redirects.assigned.iter();
        let of_name: Vec<&Assignment> = assigned.filter(|one| one.name == name).collect();
        let values: Vec<&Word> = of_name.iter().flat_map(|one| &one.values).collect();
        let is_other = self.builds_names || UNFOLLOWED.contains(&name) || name.starts_with("BASH");
        let is_set = of_name.iter().any(|one| !one.is_prefix);
        if is_other || !is_set || !(1..=MOST_VALUES).contains(&values.len()) {
            return None;
        }
        let around = |at: &usize| self.texts[*at].around;
        let holding: Vec<usize> = std::iter::successors(Some(at), around).collect();
        let is_all = self.texts.iter().enumerate().all(|(other, text)| {
            // The texts around one say again what it says.
            let holds = holding.contains(&other);
            assignments(&text.source, name) == Some(if holds { of_name.len() } else { 0 })
        });
        Some(values).filter(|_| is_all)
    }

    fn is_scratch(&self, start: &str, end: &str) -> bool {
        let leads_up = end.split('/').any(|part| part == "..");
        let is_of_variable = variable(start) == Some(("", "TMPDIR")) && end.starts_with('/');
        let is_made = makes_scratch(start) && self.is_program("mktemp");
        !leads_up && self.is_kept("TMPDIR") && (is_of_variable || is_made)
    }

    /// Returns the directories in which the line may be at a place, from where it begins; none where one is not known.
    fn directories(&self, place: Place) -> Option<Vec<String>> {
        let (line, inner) = self.texts.split_first()?;
        if inner.iter().any(|text| !text.redirects.moves.is_empty()) {
            return None;
        }
        let mut counting: Vec<&str> = Vec::new();
        let moves = line.redirects.moves.iter();
        for one in moves.filter(|one| one.may_count_at(place)) {
            match &one.to {
                Destination::Back if self.is_kept("OLDPWD") && self.is_kept("DIRSTACK") => {}
                Destination::To(Some(to)) if self.is_kept("CDPATH") || !is_searched(to) => {
                    counting.push(to);
                }
                Destination::Back | Destination::To(_) => return None,
            }
            if counting.len() > MOST_MOVES {
                return None;
            }
        }
        let mut directories = vec![String::new()];
        for to in counting {
            let further: Vec<String> = directories
                .iter()
                .map(|from| from_directory(from, to))
                .collect();
            directories.extend(further);
        }
        Some(directories)
    }
}

/// Says whether a text may set a variable by the name that another holds, or put something in the place of a program.
fn refers(source: &str) -> bool {
    let lists_keys = |text: &str| {
        let rest = text.trim_start_matches(is_of_name);
        rest.len() < text.len() && (rest.starts_with("[@]}") || rest.starts_with("[*]}"))
    };
    let mut indirect = source.match_indices("${!");
    indirect.any(|(at, mark)| !lists_keys(&source[at + mark.len()..]))
        || REPLACING.iter().any(|name| source.contains(name))
}

/// Counts the places of `text` that set a variable for `read` alone: none where the line puts something in its place.
fn of_read(texts: &[ReadText], text: &ReadText, name: &str) -> usize {
    let mut defined = texts.iter().flat_map(|text| &text.redirects.defined);
    if defined.any(|defined| defined == "read") {
        return 0;
    }
    let assigned = text.redirects.assigned.iter();
    assigned
        .filter(|one| one.is_of_read && one.name == name)
        .count()
}

/// Says whether the shell may make other words of one that has this letter, where it comes out of a variable.
fn is_special(letter: char) -> bool {
    PATTERN.contains(&letter) || letter.is_whitespace()
}

/// Says whether a text stands for a file or a directory of which nobody else knows.
fn makes_scratch(text: &str) -> bool {
    let substituted = text
        .strip_prefix("$(")
        .and_then(|text| text.strip_suffix(')'));
    let quoted = || {
        text.strip_prefix('`')
            .and_then(|text| text.strip_suffix('`'))
    };
    let Some(line) = substituted.or_else(quoted) else {
        return false;
    };
    let mut words = line.split(' ').filter(|word| !word.is_empty());
    if words.next() != Some("mktemp") {
        return false;
    }
    let (options, names): (Vec<&str>, Vec<&str>) = words.partition(|word| word.starts_with('-'));
    let is_plain = |name: &str| {
        let is_allowed = |letter: char| is_of_name(letter) || matches!(letter, '.' | '-');
        !name.is_empty() && name.chars().all(is_allowed)
    };
    let is_known = options
        .iter()
        .all(|option| matches!(*option, "-d" | "-t" | "-q" | "-dt"));
    let is_in_scratch = match names.as_slice() {
        [] => true,
        [name] => match name.strip_prefix("/tmp/") {
            Some(name) => is_plain(name),
            None => is_plain(name) && options.iter().any(|option| option.contains('t')),
        },
        _ => false,
    };
    is_known && is_in_scratch
}

/// Returns a file as it lies from where the line begins, whichever of the directories the line is in.
fn from_the_beginning(file: RedirectTarget, directories: Option<&[String]>) -> Vec<RedirectTarget> {
    match (file, directories) {
        (RedirectTarget::At(path), Some(directories)) => directories
            .iter()
            .map(|directory| RedirectTarget::At(from_directory(directory, &path)))
            .collect(),
        (file, _) => vec![somewhere(file)],
    }
}

/// Returns a file as it is known where the directory is not.
fn somewhere(file: RedirectTarget) -> RedirectTarget {
    match file {
        RedirectTarget::At(path) if !path.starts_with('/') => {
            RedirectTarget::Ending(format!("/{path}"))
        }
        file => file,
    }
}

fn from_directory(directory: &str, path: &str) -> String {
    if directory.is_empty() || path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{directory}/{path}")
    }
}

/// Returns the plain prefix of a text and the name of the variable behind it, if it is nothing else.
fn variable(text: &str) -> Option<(&str, &str)> {
    let (prefix, name) = text.rsplit_once('$')?;
    let inner = name
        .strip_prefix('{')
        .and_then(|name| name.strip_suffix('}'));
    let name = inner.unwrap_or(name);
    let is_plain = |letter: char| is_of_name(letter) || matches!(letter, '.' | '-' | '/');
    let is_name = !name.is_empty() && name.chars().all(is_of_name);
    Some((prefix, name)).filter(|_| is_name && prefix.chars().all(is_plain))
}

/// Counts the places of a text that set a variable; none where it is named in another way than to set or to read it, as in
/// `read name`, and so may have any value.
fn assignments(source: &str, name: &str) -> Option<usize> {
    let mut count = 0;
    for (at, _) in source.match_indices(name) {
        let (before, after) = (&source[..at], &source[at + name.len()..]);
        let is_longer = before.ends_with(is_of_name) || after.starts_with(is_of_name);
        let is_read = before.ends_with('$') || (before.ends_with("${") && after.starts_with('}'));
        if is_longer || is_read || before.ends_with('-') {
            continue;
        }
        if !after.starts_with('=') && !is_of_loop(before, after) {
            return None;
        }
        count += 1;
    }
    Some(count)
}

/// Says whether a loop sets the variable between two texts.
fn is_of_loop(before: &str, after: &str) -> bool {
    let begins = before.ends_with(char::is_whitespace) && before.trim_end().ends_with("for");
    let list = after.trim_start().strip_prefix("in");
    begins && list.is_some_and(|list| list.starts_with(char::is_whitespace))
}
