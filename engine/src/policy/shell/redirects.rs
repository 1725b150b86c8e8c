//! Follows which files the redirections of a line write, as far as that is known before the line runs: through variables
//! that the line sets itself, and through the directories that it goes to.

use std::collections::HashSet;

use super::moves::{Move, Place};
use super::word::Word;

/// Through so many variables one after the other a name is followed.
const DEEPEST: usize = 2;
/// Of a variable that may hold more values none is followed.
const MOST_VALUES: usize = 4;
/// More files of one line are not followed.
const MOST_FOLLOWED: usize = 100;
/// More changes of the directory are not followed.
const MOST_MOVES: usize = 3;
/// What the shell makes other words of.
const PATTERN: [char; 6] = ['*', '?', '[', ']', '{', '}'];
/// What stands for the present directory.
const HERE: [&str; 4] = ["$PWD", "${PWD}", "$(pwd)", "`pwd`"];
/// What stands for a file or a directory of which nobody else knows.
const MADE: [&str; 4] = ["$(mktemp)", "$(mktemp -d)", "`mktemp`", "`mktemp -d`"];

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
    /// The variables that the text sets, each time with the value.
    pub(super) assigned: Vec<(String, Word)>,
    /// Whether a command of it sets a variable that an option names.
    pub(super) sets_by_option: bool,
    /// The changes of the directory, in order of appearance.
    pub(super) moves: Vec<Move>,
}

/// Returns the files that the texts of a line write, the line first. What lies in a place for scratch is none.
pub(super) fn files(texts: &[ReadText]) -> Vec<RedirectTarget> {
    let followed = LineVariables {
        texts,
        sets_by_option: texts.iter().any(|text| text.redirects.sets_by_option),
    };
    let is_unset = |name| {
        let mut counts = texts.iter().map(|text| assignments(&text.source, name));
        !followed.sets_by_option && counts.all(|count| count == Some(0))
    };
    let kept = KeptVariables {
        scratch: is_unset("TMPDIR"),
        here: is_unset("PWD"),
    };
    let (mut seen, mut found, mut count) = (HashSet::new(), Vec::new(), 0);
    for (at, text) in texts.iter().enumerate() {
        for (target, place) in &text.redirects.targets {
            let depth = if count < MOST_FOLLOWED { DEEPEST } else { 0 };
            count += 1;
            let mut files = Vec::new();
            followed.follow(target, (at, depth), kept, &mut files);
            let directories = directories(texts, *place);
            let places = files
                .into_iter()
                .flat_map(|file| from_the_beginning(file, directories.as_deref()));
            found.extend(places.filter(|place| seen.insert(place.clone())));
        }
    }
    found
}

/// Says which variables have the value in all texts that they had before the line.
#[derive(Debug, Clone, Copy)]
struct KeptVariables {
    scratch: bool,
    here: bool,
}

/// Follows the variables of a line.
struct LineVariables<'a> {
    texts: &'a [ReadText],
    sets_by_option: bool,
}

impl LineVariables<'_> {
    /// Adds the files that `target`, of the text at `at`, may be, following `depth` variables.
    fn follow(
        &self,
        target: &Word,
        (at, depth): (usize, usize),
        kept: KeptVariables,
        files: &mut Vec<RedirectTarget>,
    ) {
        let (start, end) = target.split();
        if target.is_pattern {
            let end = end.rsplit(PATTERN).next().unwrap_or_default();
            files.push(RedirectTarget::Ending(end.to_owned()));
            return;
        }
        if target.is_fixed {
            files.push(RedirectTarget::At(end.to_owned()));
            return;
        }
        if is_scratch(start, end, kept) {
            return;
        }
        if HERE.contains(&start) && end.starts_with('/') && kept.here {
            files.push(RedirectTarget::At(format!(".{end}")));
            return;
        }
        let name = variable(start).filter(|_| depth > 0);
        match name.and_then(|name| self.values(at, name)) {
            Some(values) => {
                for value in values {
                    self.follow(&value.followed_by(end), (at, depth - 1), kept, files);
                }
            }
            None => files.push(RedirectTarget::Ending(end.to_owned())),
        }
    }

    /// Returns the values that a variable may have in the text at `at`; none where something else may give it one.
    fn values(&self, at: usize, name: &str) -> Option<Vec<&Word>> {
        let of_name = self.texts[at].redirects.assigned.iter();
        let of_name = of_name.filter(|(known, _)| known == name);
        let values: Vec<&Word> = of_name.map(|(_, value)| value).collect();
        if self.sets_by_option || !(1..=MOST_VALUES).contains(&values.len()) {
            return None;
        }
        let around = |at: &usize| self.texts[*at].around;
        let holding: Vec<usize> = std::iter::successors(Some(at), around).collect();
        let is_all = self.texts.iter().enumerate().all(|(other, text)| {
            // The texts around one say again what it says.
            let holds = holding.contains(&other);
            assignments(&text.source, name) == Some(if holds { values.len() } else { 0 })
        });
        Some(values).filter(|_| is_all)
    }
}

fn is_scratch(start: &str, end: &str, kept: KeptVariables) -> bool {
    let leads_up = end.split('/').any(|part| part == "..");
    let is_of_variable = variable(start) == Some("TMPDIR") && end.starts_with('/') && kept.scratch;
    !leads_up && (MADE.contains(&start) || is_of_variable)
}

/// Returns the directories in which the line may be at a place, from where it begins; none where one is not known.
fn directories(texts: &[ReadText], place: Place) -> Option<Vec<String>> {
    let (line, inner) = texts.split_first()?;
    if inner.iter().any(|text| !text.redirects.moves.is_empty()) {
        return None;
    }
    let moves = line.redirects.moves.iter();
    let counting: Option<Vec<&str>> = moves
        .filter(|one| one.may_count_at(place))
        .map(|one| one.to.as_deref())
        .take(MOST_MOVES + 1)
        .collect();
    let counting = counting.filter(|known| known.len() <= MOST_MOVES)?;
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

/// Returns the name of the variable that `text` stands for, if it is nothing else.
fn variable(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?;
    let inner = name
        .strip_prefix('{')
        .and_then(|name| name.strip_suffix('}'));
    let name = inner.unwrap_or(name);
    Some(name).filter(|name| !name.is_empty() && name.chars().all(is_of_name))
}

/// Counts the assignments of a variable in a text; none where it is named in another way than to set or to read it, as in
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
        if !after.starts_with('=') {
            return None;
        }
        count += 1;
    }
    Some(count)
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}
