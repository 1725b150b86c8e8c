//! Finds what a check names and runs: on its own line, and one level further in what that line runs.

mod programs;

use std::collections::BTreeMap;

use super::entries;
use crate::line::{self, SimpleCommand, name_of};
use programs::{
    EntryRun, entry_of, joined, module_run, path_in, python_path, python_paths, run_file,
};

/// Interpreters whose files are read further.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "source", "."];
/// Files with entries that a script may run, whose own lines are not known yet.
const ROOT_FILES: &[&str] = &[
    "GNUmakefile",
    "makefile",
    "Makefile",
    "justfile",
    "Justfile",
    ".justfile",
    "package.json",
];

/// How a check depends on a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// The check.
    pub check: String,
    /// Whether it runs the file, and does not just name it.
    pub runs: bool,
    /// Whether a command of the gate does so, and not just the task's own check.
    pub by_gate: bool,
    /// Whether the file is what a command of the gate itself runs, so that it says how the check ends.
    pub decides: bool,
}

/// An entry of a file that a check runs, such as a target of a Makefile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The check.
    pub check: String,
    /// The entry; empty for the first one.
    pub name: String,
    /// Whether a command of the gate does so, and not just the task's own check.
    pub by_gate: bool,
}

/// What the checks of a gate name and run.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    files: BTreeMap<String, Use>,
    entries: BTreeMap<String, Vec<Entry>>,
    /// Files that would be run in the place of one with entries, or for one of those, if they were there, by the check
    /// that does.
    before: BTreeMap<String, String>,
    /// Where programs of Python look for modules first, by the check that starts them.
    python: BTreeMap<String, String>,
    /// The programs that are started, each with a check that does.
    programs: BTreeMap<String, String>,
    /// A command of the gate, or else the task's own check.
    any: Option<AnyCheck>,
}

/// The check that is named where it could be any.
#[derive(Debug, Clone)]
struct AnyCheck {
    name: String,
    by_gate: bool,
}

/// Where a line is run and what follows from what it runs.
struct Place<'a> {
    check: &'a str,
    directory: String,
    by_gate: bool,
    /// Whether it stands in a file that the check runs.
    inner: bool,
}

impl Reach {
    /// Returns how the checks depend on a file.
    pub fn of(&self, path: &str) -> Option<&Use> {
        self.files.get(path)
    }

    /// Lists the entries of a file that the checks run.
    pub fn entries(&self, path: &str) -> impl Iterator<Item = &Entry> {
        self.entries.get(path).into_iter().flatten()
    }

    /// Returns the check that would run a file, or find it or its directory there, in the place of what it runs.
    pub(super) fn goes_before(&self, path: &str) -> Option<&str> {
        let above = path.match_indices('/').map(|(at, _)| &path[..at]);
        let mut places = std::iter::once(path).chain(above);
        places.find_map(|place| self.before.get(place).map(String::as_str))
    }

    /// Returns the check that starts Python where it looks for modules in a directory first.
    pub(super) fn python_in(&self, directory: &str) -> Option<&str> {
        self.python.get(directory).map(String::as_str)
    }

    /// Returns the check that starts a program.
    pub(super) fn starts(&self, program: &str) -> Option<&str> {
        self.programs.get(program).map(String::as_str)
    }

    /// Returns a command of the gate, or else the task's own check, if there is one.
    pub(super) fn any(&self) -> Option<&str> {
        self.any.as_ref().map(|check| check.name.as_str())
    }

    /// Adds what a line names and runs.
    pub(super) fn add(
        &mut self,
        check: &str,
        line: &str,
        by_gate: bool,
        contents: &dyn Fn(&str) -> Option<String>,
    ) {
        if self.any.as_ref().is_none_or(|any| by_gate && !any.by_gate) {
            self.any = Some(AnyCheck {
                name: check.to_owned(),
                by_gate,
            });
        }
        let place = Place {
            check,
            directory: String::new(),
            by_gate,
            inner: false,
        };
        self.walk(&place, line, contents);
    }

    fn walk(&mut self, place: &Place<'_>, line: &str, contents: &dyn Fn(&str) -> Option<String>) {
        let mut directory = place.directory.clone();
        for simple in line::simple_commands(line) {
            if let Some(("cd", arguments)) = simple.program() {
                if let Some(to) = arguments.last().and_then(|to| joined(&directory, to)) {
                    directory = to;
                }
                continue;
            }
            let place = Place {
                directory: directory.clone(),
                ..*place
            };
            self.command(&place, &simple, contents);
        }
    }

    fn command(
        &mut self,
        place: &Place<'_>,
        simple: &SimpleCommand,
        contents: &dyn Fn(&str) -> Option<String>,
    ) {
        let Some((program, arguments)) = simple.program() else {
            return;
        };
        for named in arguments
            .iter()
            .chain(&simple.reads)
            .filter_map(|word| path_in(&place.directory, word))
        {
            self.note(place, named, false);
        }
        if let Some(run) =
            run_file(program, arguments).and_then(|word| joined(&place.directory, word))
        {
            let is_shell = SHELLS.contains(&program)
                || (program.contains('/')
                    && contents(&run).is_some_and(|text| is_shell_script(&text)));
            self.note(place, run.clone(), true);
            if is_shell
                && !place.inner
                && let Some(text) = contents(&run)
            {
                self.inner(place, &text, contents);
            }
        }
        let check = || place.check.to_owned();
        for directory in python_path(program, arguments, &place.directory)
            .into_iter()
            .chain(python_paths(simple, &place.directory))
        {
            self.python.entry(directory).or_insert_with(check);
        }
        for program in [Some(name_of(program)), module_run(program, arguments)] {
            let Some(program) = program else { continue };
            let program = program.to_owned();
            self.programs.entry(program).or_insert_with(check);
        }
        if let Some(run) = entry_of(program, arguments) {
            self.entry(place, &run, contents);
        }
    }

    /// Follows an entry of a file into the lines that it runs.
    fn entry(
        &mut self,
        place: &Place<'_>,
        run: &EntryRun,
        contents: &dyn Fn(&str) -> Option<String>,
    ) {
        let Some(directory) = joined(&place.directory, &run.directory) else {
            return;
        };
        let candidates = run.files.iter().filter_map(|file| joined(&directory, file));
        let candidates: Vec<String> = candidates.collect();
        let Some((at, text)) = candidates
            .iter()
            .enumerate()
            .find_map(|(at, path)| Some((at, contents(path)?)))
        else {
            return;
        };
        for path in &candidates[..at] {
            self.before.insert(path.clone(), place.check.to_owned());
        }
        let path = &candidates[at];
        for file in entries::included(path, &text) {
            if let Some(file) = joined(&directory, &file) {
                self.note(place, file, true);
            }
        }
        for name in &run.names {
            let done = entries::done_by_file(path, &text, name);
            if let Some(file) = done.and_then(|name| joined(&directory, &name)) {
                self.before.insert(file, place.check.to_owned());
            }
            let entry = Entry {
                check: place.check.to_owned(),
                name: name.clone(),
                by_gate: place.by_gate,
            };
            let known = self.entries.entry(path.clone()).or_default();
            if known.contains(&entry) {
                continue;
            }
            known.push(entry);
            if place.inner {
                continue;
            }
            let inner = Place {
                directory: directory.clone(),
                ..*place
            };
            self.inner(&inner, &entries::commands(path, &text, name), contents);
        }
    }

    fn inner(&mut self, place: &Place<'_>, text: &str, contents: &dyn Fn(&str) -> Option<String>) {
        let place = Place {
            directory: place.directory.clone(),
            inner: true,
            ..*place
        };
        let mut directory = place.directory.clone();
        // Each line by itself: one that cannot be understood does not hide the others.
        for line in text.replace("\\\n", " ").lines() {
            let here = Place {
                directory: directory.clone(),
                ..place
            };
            self.walk(&here, line, contents);
            if let Some(("cd", to)) = line::simple_commands(line)
                .first()
                .and_then(SimpleCommand::program)
                && let Some(to) = to.last().and_then(|to| joined(&directory, to))
            {
                directory = to;
            }
        }
    }

    fn note(&mut self, place: &Place<'_>, path: String, runs: bool) {
        let decides = runs && place.by_gate && !place.inner;
        let known = self.files.entry(path).or_insert_with(|| Use {
            check: place.check.to_owned(),
            runs,
            by_gate: place.by_gate,
            decides,
        });
        if (runs && !known.runs) || (decides && !known.decides) {
            place.check.clone_into(&mut known.check);
        }
        known.runs |= runs;
        known.by_gate |= place.by_gate;
        known.decides |= decides;
    }
}

/// Lists the files that have to be read to know what lines name and run: those that such a line may run.
pub fn looked_at<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut paths: Vec<String> = ROOT_FILES.iter().map(|file| (*file).to_owned()).collect();
    for line in lines {
        let mut directory = String::new();
        for simple in line::simple_commands(line) {
            let Some((program, arguments)) = simple.program() else {
                continue;
            };
            if program == "cd" {
                if let Some(to) = arguments.last().and_then(|to| joined(&directory, to)) {
                    directory = to;
                }
                continue;
            }
            paths.extend(run_file(program, arguments).and_then(|word| joined(&directory, word)));
            if let Some(run) = entry_of(program, arguments)
                && let Some(directory) = joined(&directory, &run.directory)
            {
                paths.extend(run.files.iter().filter_map(|file| joined(&directory, file)));
            }
        }
    }
    paths.sort_unstable();
    paths.dedup();
    paths
}

fn is_shell_script(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.starts_with("#!") && SHELLS.iter().any(|shell| first.trim_end().ends_with(shell))
        || !first.starts_with("#!")
}
