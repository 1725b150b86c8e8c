//! Follows the lines that shells run: where they run, what their variables may hold, and which commands that makes of them.

use super::globs::{is_glob, is_literal, target};
use super::{Place, Reach};
use crate::line::{self, DEEPEST, SimpleCommand, Variables};

/// In so many directories a line may run.
const MOST_PLACES: usize = 16;
/// So many commands more count for the gate than are written, by what variables may hold and commands tell others, and so many for
/// the task's own check.
const MOST_ADDED_FORMS: usize = 5_000;

/// So much of what the files hold that a side runs is followed: its commands, each where it may run, its lines and what they copy.
const MOST_WORK: usize = 50_000;
/// So many bytes of a line count as much as a command, and so many of variables that are copied.
const BYTES_OF_LINE: usize = 100;
const BYTES_OF_VARIABLES: usize = 4_000;

/// Where a shell was before.
const BACK: &str = "-";

/// What a shell goes on with behind a line.
struct Shell {
    /// Where it may stand.
    directories: Vec<String>,
    variables: Variables,
}

impl Shell {
    fn at(place: &Place<'_>) -> Self {
        Self {
            directories: vec![place.directory.clone()],
            variables: place.variables.clone(),
        }
    }

    fn goes_to(&mut self, mut directories: Vec<String>) {
        directories.sort_unstable();
        directories.dedup();
        directories.truncate(MOST_PLACES);
        self.directories = directories;
    }
}

impl Reach {
    /// Follows a line that a shell of its own runs.
    pub(super) fn walk(&mut self, place: &Place<'_>, line: &str) {
        self.follow(place, line, &mut Shell::at(place));
    }

    fn follow(&mut self, place: &Place<'_>, line: &str, shell: &mut Shell) {
        let commands = line::simple_commands(line);
        let begun = shell.directories.clone();
        // Where the shells stand that began others.
        let mut outer: Vec<Vec<String>> = Vec::new();
        for simple in &commands {
            while outer.len() > simple.kept
                && let Some(directories) = outer.pop()
            {
                shell.directories = directories;
            }
            outer.resize(simple.depth, shell.directories.clone());
            shell.variables.assign(simple);
            let forms = if is_pattern(simple) {
                Vec::new()
            } else {
                self.forms(place, simple, &shell.variables)
            };
            let mut moved = Vec::new();
            for directory in shell.directories.clone() {
                let here = Place {
                    directory,
                    variables: &shell.variables,
                    ..*place
                };
                self.follow_substitutions(&here, &simple.words);
                for form in &forms {
                    if !self.may_work(place, 1) {
                        break;
                    }
                    match moves_to(form) {
                        Some(BACK) => moved.push(place.directory.clone()),
                        Some(to) => moved.extend(self.directories(&here, to)),
                        None => self.command(&here, form),
                    }
                }
            }
            if !moved.is_empty() {
                shell.goes_to(moved);
            }
            shell.variables.tell(simple);
        }
        if let Some(directories) = outer.into_iter().next() {
            shell.directories = directories;
        }
        // What does not stand at the beginning may not be done.
        if commands.first().and_then(moves_to).is_none() {
            shell.goes_to([begun, shell.directories.clone()].concat());
        }
    }

    /// Lists the forms of a command; at the bound it is the one that is written.
    fn forms(
        &mut self,
        place: &Place<'_>,
        simple: &SimpleCommand,
        variables: &Variables,
    ) -> Vec<SimpleCommand> {
        if self.may_add(place, 0) {
            let forms = variables.forms(simple);
            if self.may_add(place, forms.len() - 1) {
                return forms;
            }
        }
        vec![simple.clone()]
    }

    /// Says whether so many commands more may count.
    pub(super) fn may_add(&mut self, place: &Place<'_>, number: usize) -> bool {
        let added = &mut self.forms[usize::from(place.by_gate)];
        *added += number;
        *added < MOST_ADDED_FORMS
    }

    /// Says whether so much more of the files that a side runs may be followed; the gate's own lines always are.
    fn may_work(&mut self, place: &Place<'_>, cost: usize) -> bool {
        let work = &mut self.work[usize::from(place.by_gate)];
        if place.inner {
            *work = work.saturating_add(cost);
        }
        !place.inner || *work < MOST_WORK
    }

    /// Follows the lines that a shell runs to make words.
    pub(super) fn follow_substitutions(&mut self, place: &Place<'_>, words: &[String]) {
        for made in words.iter().flat_map(|word| line::substitutions(word)) {
            // So make says it.
            let made = made.strip_prefix("shell ").unwrap_or(made);
            if place.variables.holds(made.trim()) {
                continue;
            }
            if !self.may_work(place, 1 + place.variables.size() / BYTES_OF_VARIABLES) {
                return;
            }
            if let Some(place) = self.deeper(place, made) {
                let inner = Place {
                    inner: true,
                    ..place
                };
                self.walk(&inner, made);
            }
        }
    }

    /// Lists where a shell may stand that goes to a directory.
    pub(super) fn directories(&mut self, place: &Place<'_>, word: &str) -> Vec<String> {
        let Some(path) = target(&place.directory, word) else {
            return Vec::new();
        };
        let mut found = if is_glob(&path) {
            self.matches.directories(place.tree, place.by_gate, &path)
        } else {
            Vec::new()
        };
        if is_literal(&path) {
            found.push(path);
        }
        found
    }

    /// Notes what a word names that is run; lists the files that it may be, where they are followed.
    pub(super) fn note_run(&mut self, place: &Place<'_>, word: &str) -> Vec<String> {
        let Some(path) = target(&place.directory, word) else {
            return Vec::new();
        };
        self.note(place, path.clone(), true);
        let mut found = if is_glob(&path) && !place.inner {
            self.matches.files(place.tree, place.by_gate, &path)
        } else {
            Vec::new()
        };
        if is_literal(&path) {
            found.push(path);
        }
        found
    }

    /// Returns the place of a line or code that lies in the line at this one; none at the bound, where it may run whatever
    /// it names.
    pub(super) fn deeper<'a>(&mut self, place: &Place<'a>, text: &str) -> Option<Place<'a>> {
        if place.depth < DEEPEST {
            return Some(Place {
                directory: place.directory.clone(),
                depth: place.depth + 1,
                ..*place
            });
        }
        let ends = |letter: char| letter.is_whitespace() || "'\"()[],;=".contains(letter);
        let words = text.split(ends).filter(|word| !word.is_empty());
        for path in words.filter_map(|word| target(&place.directory, word)) {
            self.note(place, path, true);
        }
        None
    }

    /// Follows the lines of a file, which one shell runs, or each a shell of its own.
    pub(super) fn inner(&mut self, place: &Place<'_>, text: &str, is_one_shell: bool) {
        let place = Place {
            directory: place.directory.clone(),
            inner: true,
            ..*place
        };
        let mut shell = Shell::at(&place);
        // Each line by itself: one that cannot be understood does not hide the others.
        for line in text.replace("\\\n", " ").replace("|\n", "| ").lines() {
            let copied = if is_one_shell {
                0
            } else {
                place.variables.size()
            };
            let cost = 1 + line.len() / BYTES_OF_LINE + copied / BYTES_OF_VARIABLES;
            if !self.may_work(&place, cost) {
                return;
            }
            self.follow(&place, line, &mut shell);
            if !is_one_shell {
                shell = Shell::at(&place);
            }
        }
    }
}

/// Says whether what stands in the place of a program is a pattern, as in `case` and in a list, and none that a variable makes.
fn is_pattern(simple: &SimpleCommand) -> bool {
    let started = simple.started().unwrap_or_default();
    started.contains(['*', '?']) && !started.contains(['$', '`'])
}

/// Returns where a command takes the shell; where that is back, it is taken for where the first line ran.
fn moves_to(simple: &SimpleCommand) -> Option<&str> {
    match simple.program() {
        Some(("cd" | "pushd", arguments)) => Some(arguments.last().map_or("", String::as_str)),
        Some(("popd", _)) => Some(BACK),
        _ => None,
    }
}
