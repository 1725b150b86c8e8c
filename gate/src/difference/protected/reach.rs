//! Finds what a check names and runs: on its own line, and one level further in what that line runs.
//!
//! It is told from lines and from what files hold, and from nothing else. What stands in a line itself (`sh -c '…'`,
//! `python3 -c '…'`, `eval`) is of the level of that line; what the shell runs to make a word of it (`$(…)`) is one level further.
//! One level further are the lines of shell scripts, recipes and package scripts, and what a script of Python starts. There
//! files are noted, entries of other files by name, and nothing is read further.
//!
//! What is run and not written out, by a variable, a list or a glob, is noted by a glob of what is known of it, and where it is followed,
//! each file that this matches. What the words of others name so, such as linters and runners of tests, is not noted: they look at it.
//!
//! Of Python it is not known what is product: a script imports what it tries as it imports what it is made of. So what it
//! imports, and names in quotes, is kept apart as a [`Mention`], and who asks knows what the task declares. What a test
//! imports, names or starts is what it tries, and is not noted at all. A test of the shell is followed where it is written out, for it
//! may be what starts the others, and not where a loop or a glob runs it.
//!
//! A bound never makes a file free that the gate's own lines run: what is run is noted before it is read, a file with entries that
//! could not be read is noted whole, and of a line that lies too deep in others each word is noted as run. What a file names that a
//! bound kept from being read, wholly or in part, is not known, and free, and so is what a variable holds beside more values than count.

mod contents;
mod entry_files;
mod globs;
mod lines;
mod programs;
mod python;
mod uses;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::{is_test, judges};
use crate::line::{SimpleCommand, Variables, name_of};
pub(in crate::difference) use contents::{Contents, MOST_BYTES, Tree};
use globs::{Matches, is_literal, target};
use programs::{
    Language, Start, behind, directory_of, entry_of, files_of_module, go_files, joined,
    language_in, language_of, own_file, path_in, python_path, python_paths, runs_directory,
    runs_input, start_of,
};
pub(in crate::difference) use uses::Use;
use uses::Uses;

/// In so many directories that code of Python names it is looked for what it starts, and for its modules.
const MOST_DIRECTORIES: usize = 4;

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

/// How a command of the gate may depend on a file by code of Python.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mention {
    /// The check.
    pub(super) check: String,
    /// The script that imports the file, or names it in quotes; none where the code stands in the line of the check.
    pub(super) script: Option<String>,
}

/// What the checks of a gate name and run.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    uses: Uses,
    mentions: BTreeMap<String, Vec<Mention>>,
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
    /// Words by which the attributes of git say several others.
    macros: BTreeSet<String>,
    matches: Matches,
    /// How many commands were added for the task's own check, and for the gate.
    forms: [usize; 2],
    /// How much of what files hold was followed for the task's own check, and for the gate.
    work: [usize; 2],
    /// The files that were followed, each with where and how it runs.
    followed: BTreeSet<u64>,
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
    /// In how many lines it lies.
    depth: usize,
    /// What variables may hold there.
    variables: &'a Variables,
    tree: &'a dyn Tree,
}

/// Code of Python that a check runs.
struct Script<'a> {
    /// The file that it is; none where it stands in a line.
    path: Option<&'a str>,
    text: &'a str,
    /// The directories in which it looks for modules.
    searched: &'a [String],
}

impl Reach {
    /// Returns how the checks depend on a file.
    pub fn of(&self, path: &str) -> Option<&Use> {
        self.uses.of(path)
    }

    /// Returns how the checks depend on a file that they name, and not by a glob alone.
    pub(super) fn named(&self, path: &str) -> Option<&Use> {
        self.uses.named(path)
    }

    /// Says whether a word stands for others in the attributes of git.
    pub(super) fn is_macro(&self, name: &str) -> bool {
        self.macros.contains(name)
    }

    /// Takes the words that stand for others in the attributes of git.
    pub(super) fn take_macros(&mut self, macros: BTreeSet<String>) {
        self.macros = macros;
    }

    /// Lists the entries of a file that the checks run.
    pub fn entries(&self, path: &str) -> impl Iterator<Item = &Entry> {
        self.entries.get(path).into_iter().flatten()
    }

    /// Lists how code of Python that commands of the gate run depends on a file.
    pub(super) fn mentions(&self, path: &str) -> impl Iterator<Item = &Mention> {
        self.mentions.get(path).into_iter().flatten()
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
    pub(super) fn add(&mut self, check: &str, line: &str, by_gate: bool, tree: &dyn Tree) {
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
            depth: 0,
            variables: &Variables::default(),
            tree,
        };
        self.walk(&place, line);
    }

    fn command(&mut self, place: &Place<'_>, simple: &SimpleCommand) {
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
        let check = || place.check.to_owned();
        let searched: Vec<String> = python_path(program, arguments, &place.directory)
            .into_iter()
            .chain(python_paths(simple, &place.directory))
            .collect();
        for directory in &searched {
            let directory = directory.clone();
            self.python.entry(directory).or_insert_with(check);
        }
        let start = start_of(program, arguments);
        let module = match start {
            Some(Start::Module(module)) => Some(module),
            _ => None,
        };
        for program in [Some(name_of(program)), module].into_iter().flatten() {
            let program = program.to_owned();
            self.programs.entry(program).or_insert_with(check);
        }
        let own = own_file(program).map(Start::File);
        for start in own.into_iter().chain(start) {
            self.start(place, (program, arguments), start, &searched);
        }
        if runs_input(program, arguments) {
            let told = place.variables.told_to(simple);
            for word in simple.reads.iter().chain(told) {
                self.file(place, (program, &[]), word, &searched);
            }
        }
        for file in go_files(program, arguments) {
            // What lies beside a program that only the task's own check runs is what the task is to make.
            if place.by_gate || is_literal(&file) {
                self.note_run(place, &file);
            }
        }
        for command in place.variables.commands_within(simple) {
            let line = command.words.join(" ");
            if self.may_add(place, 1)
                && let Some(place) = self.deeper(place, &line)
            {
                self.command(&place, &command);
            }
        }
        if program == "eval" {
            let line = arguments.join(" ");
            if let Some(place) = self.deeper(place, &line) {
                self.walk(&place, &line);
            }
        }
        if let Some(run) = entry_of(program, arguments) {
            self.entry(place, &run);
        }
    }

    /// Notes what a program is given to run, and follows it.
    fn start(
        &mut self,
        place: &Place<'_>,
        (program, arguments): (&str, &[String]),
        start: Start<'_>,
        searched: &[String],
    ) {
        match start {
            Start::File(word) if word == program => {
                self.file(place, (program, arguments), word, searched);
            }
            Start::File(word) => {
                self.file(place, (program, behind(arguments, word)), word, searched);
                if runs_directory(program, arguments, word) {
                    self.directory(place, (program, word), searched);
                }
            }
            Start::Module(module) => {
                for file in module_files(module, searched) {
                    // A package that the program lies in is imported before it, and is not what says how the check ends.
                    let is_package = file.ends_with("/__init__.py");
                    self.note(place, file.clone(), !is_package);
                    if is_package {
                        self.mention(place, None, file.clone());
                    }
                    self.script(place, &file, searched);
                }
            }
            Start::Code(text) if language_of(program) == Some(Language::Python) => {
                let script = Script {
                    path: None,
                    text,
                    searched,
                };
                self.python_code(place, &script);
            }
            Start::Code(line) => {
                if let Some(place) = self.deeper(place, line) {
                    // The first is what the shell is called.
                    let given = behind(arguments, line).get(1..).unwrap_or_default();
                    let place = Place {
                        variables: &place.variables.with_arguments(given),
                        ..place
                    };
                    self.walk(&place, line);
                }
            }
        }
    }

    /// Notes a file that a program is given to run, or that is the program itself, and follows it into its lines; `given` is what the
    /// file is given.
    fn file(
        &mut self,
        place: &Place<'_>,
        (program, given): (&str, &[String]),
        word: &str,
        searched: &[String],
    ) {
        let is_own = program == word;
        let known = language_of(program);
        for path in self.note_run(place, word) {
            if place.inner || known.is_none() && !is_own {
                continue;
            }
            // What a test starts is what it tries; one that is written out may be what starts the others.
            let is_written = target(&place.directory, word).as_ref() == Some(&path);
            if is_test(&path) && !is_written {
                continue;
            }
            let Some(text) = place.tree.text(&path, place.by_gate) else {
                continue;
            };
            if !self.is_first(place, (program, path.as_str(), given), searched) {
                continue;
            }
            match known.or_else(|| language_in(&text)) {
                Some(Language::Shell) => {
                    let place = Place {
                        directory: place.directory.clone(),
                        variables: &place.variables.with_arguments(given),
                        ..*place
                    };
                    self.inner(&place, &text, true);
                }
                Some(Language::Python) if is_own => self.program(place, &path, searched),
                Some(Language::Python) => self.script(place, &path, searched),
                None => {}
            }
        }
    }

    /// Says whether a file was not yet followed as it runs here.
    fn is_first(
        &mut self,
        place: &Place<'_>,
        run: (&str, &str, &[String]),
        searched: &[String],
    ) -> bool {
        let mut hasher = DefaultHasher::new();
        (place.check, &place.directory, place.by_gate, place.depth).hash(&mut hasher);
        (place.variables, run, searched).hash(&mut hasher);
        self.followed.insert(hasher.finish())
    }

    /// Follows a script of Python that looks for modules where it lies.
    fn program(&mut self, place: &Place<'_>, path: &str, searched: &[String]) {
        let mut places = vec![directory_of(path).to_owned()];
        let check = || place.check.to_owned();
        self.python.entry(places[0].clone()).or_insert_with(check);
        places.extend_from_slice(searched);
        self.script(place, path, &places);
    }

    /// Follows a script of Python, where it is there.
    fn script(&mut self, place: &Place<'_>, path: &str, searched: &[String]) {
        // What a test imports, names or starts is what it tries.
        if place.inner || is_test(path) {
            return;
        }
        if let Some(text) = place.tree.text(path, place.by_gate) {
            let script = Script {
                path: Some(path),
                text: &text,
                searched,
            };
            self.python_code(place, &script);
        }
    }

    /// Follows code of Python into what it starts, names and imports.
    fn python_code(&mut self, place: &Place<'_>, script: &Script<'_>) {
        let Some(deeper) = self.deeper(place, script.text) else {
            return;
        };
        let code = python::Code::read(script.text);
        let beside = script.path.map_or(place.directory.as_str(), directory_of);
        let from = [place.directory.as_str(), beside];
        let below = |named: &[String]| -> Vec<String> {
            let named = named.iter().take(MOST_DIRECTORIES);
            let places =
                named.flat_map(|named| from.iter().filter_map(move |from| joined(from, named)));
            places.collect()
        };
        let mut started = below(&code.directories);
        started.extend([place.directory.clone(), beside.to_owned()]);
        started.sort_unstable();
        started.dedup();
        for directory in started {
            let inner = Place {
                directory,
                inner: true,
                ..deeper
            };
            for command in &code.commands {
                self.command(&inner, command);
            }
            for line in &code.lines {
                self.walk(&inner, line);
            }
            for path in code
                .paths
                .iter()
                .filter_map(|path| joined(&inner.directory, path))
            {
                self.mention(place, script.path, path);
            }
        }
        let mut searched = script.searched.to_vec();
        searched.extend(below(&code.searched));
        for module in &code.modules {
            for path in imported(module, beside, &searched) {
                // A line that imports a module itself is mostly there to look at it.
                if script.path.is_some() || judges(&path) {
                    self.mention(place, script.path, path);
                }
            }
        }
    }

    fn mention(&mut self, place: &Place<'_>, script: Option<&str>, path: String) {
        if !place.by_gate {
            return;
        }
        let mention = Mention {
            check: place.check.to_owned(),
            script: script.map(str::to_owned),
        };
        let known = self.mentions.entry(path).or_default();
        if !known.contains(&mention) {
            known.push(mention);
        }
    }

    fn note(&mut self, place: &Place<'_>, path: String, runs: bool) {
        let used = Use {
            check: place.check.to_owned(),
            runs,
            by_gate: place.by_gate,
            decides: runs && place.by_gate && !place.inner,
        };
        self.uses.add(path, used);
    }
}

/// Lists the files that a module which Python runs as a program may be, where it looks for modules.
fn module_files(module: &str, searched: &[String]) -> Vec<String> {
    let mut files = files_of_module(module);
    files.push(format!("{}/__main__.py", module.replace('.', "/")));
    let places = searched.iter();
    let all = places.flat_map(|place| files.iter().filter_map(move |file| joined(place, file)));
    all.collect()
}

/// Lists the files that an imported module may be; one with dots before its name is told from where the code lies.
fn imported(module: &str, beside: &str, searched: &[String]) -> Vec<String> {
    let plain = module.trim_start_matches('.');
    let up = (module.len() - plain.len()).checked_sub(1);
    let above = up.and_then(|up| joined(beside, &"../".repeat(up)));
    let places = match up {
        Some(_) => above.as_slice(),
        None => searched,
    };
    let files = files_of_module(plain);
    let places = places.iter();
    let all = places.flat_map(|place| files.iter().filter_map(move |file| joined(place, file)));
    all.collect()
}

#[cfg(test)]
mod tests;
