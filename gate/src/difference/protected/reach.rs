//! Finds what a check names and runs: on its own line, and one level further in what that line runs.
//!
//! It is told from lines and from what files hold, and from nothing else. What stands in a line itself (`sh -c '…'`,
//! `python3 -c '…'`, `eval`) is of the level of that line; what the shell runs to make a word of it (`$(…)`) is one level further.
//! One level further are the lines of shell scripts, recipes and package scripts, and what a script of Python starts. There
//! files are noted, entries of other files by name, and nothing is read further.
//!
//! Of Python it is not known what is product: a script imports what it tries as it imports what it is made of. So what it
//! imports, and names in quotes, is kept apart as a [`Mention`], and who asks knows what the task declares. What a test
//! imports, names or starts is what it tries, and is not noted at all.
//!
//! A bound never makes a file free that the gate's own lines run: what is run is noted before it is read, a file with entries that
//! could not be read is noted whole, and of a line that lies too deep in others each word is noted as run. What a file names that a
//! bound kept from being read, wholly or in part, is not known, and free.

mod contents;
mod programs;
mod python;

use std::collections::BTreeMap;

use super::{entries, is_test, judges};
use crate::line::{self, DEEPEST, SimpleCommand, name_of};
pub(in crate::difference) use contents::{Contents, MOST_BYTES};
use programs::{
    EntryRun, Language, Start, directory_of, entry_of, files_of_module, joined, language_in,
    language_of, own_file, path_in, python_path, python_paths, start_of,
};

/// In so many directories that code of Python names it is looked for what it starts, and for its modules.
const MOST_DIRECTORIES: usize = 4;

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
    files: BTreeMap<String, Use>,
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
    /// What files hold.
    contents: &'a dyn Fn(&str) -> Option<String>,
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
        self.files.get(path)
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
            depth: 0,
            contents,
        };
        self.walk(&place, line);
    }

    fn walk(&mut self, place: &Place<'_>, line: &str) {
        let mut directory = place.directory.clone();
        for simple in line::simple_commands(line) {
            let place = Place {
                directory: directory.clone(),
                ..*place
            };
            for made in simple
                .words
                .iter()
                .flat_map(|word| line::substitutions(word))
            {
                if let Some(place) = self.deeper(&place, made) {
                    let inner = Place {
                        inner: true,
                        ..place
                    };
                    self.walk(&inner, made);
                }
            }
            if let Some(("cd" | "pushd", arguments)) = simple.program() {
                if let Some(to) = arguments.last().and_then(|to| joined(&directory, to)) {
                    directory = to;
                }
            } else {
                self.command(&place, &simple);
            }
        }
    }

    /// Returns the place of a line or code that lies in the line at this one; none at the bound, where it may run whatever
    /// it names.
    fn deeper<'a>(&mut self, place: &Place<'a>, text: &str) -> Option<Place<'a>> {
        if place.depth < DEEPEST {
            return Some(Place {
                directory: place.directory.clone(),
                depth: place.depth + 1,
                ..*place
            });
        }
        let ends = |letter: char| letter.is_whitespace() || "'\"()[],;=".contains(letter);
        let words = text.split(ends).filter(|word| !word.is_empty());
        for path in words.filter_map(|word| joined(&place.directory, word)) {
            self.note(place, path, true);
        }
        None
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
            self.start(place, (program, start), &searched);
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
        (program, start): (&str, Start<'_>),
        searched: &[String],
    ) {
        match start {
            Start::File(word) => self.file(place, (program, word), searched),
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
                    self.walk(&place, line);
                }
            }
        }
    }

    /// Notes a file that a program is given to run, or that is the program itself, and follows it into its lines.
    fn file(&mut self, place: &Place<'_>, (program, word): (&str, &str), searched: &[String]) {
        let Some(path) = joined(&place.directory, word) else {
            return;
        };
        self.note(place, path.clone(), true);
        let is_own = program == word;
        let known = language_of(program);
        if place.inner || known.is_none() && !is_own {
            return;
        }
        let Some(text) = (place.contents)(&path) else {
            return;
        };
        match known.or_else(|| language_in(&text)) {
            Some(Language::Shell) => self.inner(place, &text),
            Some(Language::Python) if is_own => {
                let check = || place.check.to_owned();
                let mut places = vec![directory_of(&path).to_owned()];
                self.python.entry(places[0].clone()).or_insert_with(check);
                places.extend_from_slice(searched);
                self.script(place, &path, &places);
            }
            Some(Language::Python) => self.script(place, &path, searched),
            None => {}
        }
    }

    /// Follows a script of Python, where it is there.
    fn script(&mut self, place: &Place<'_>, path: &str, searched: &[String]) {
        // What a test imports, names or starts is what it tries.
        if place.inner || is_test(path) {
            return;
        }
        if let Some(text) = (place.contents)(path) {
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

    /// Follows an entry of a file into the lines that it runs.
    fn entry(&mut self, place: &Place<'_>, run: &EntryRun) {
        let Some(directory) = joined(&place.directory, &run.directory) else {
            return;
        };
        let candidates = run.files.iter().filter_map(|file| joined(&directory, file));
        let candidates: Vec<String> = candidates.collect();
        let mut known = candidates.iter().enumerate();
        let known = known.find_map(|(at, path)| Some((at, (place.contents)(path)?)));
        let Some((at, text)) = known else {
            // Whichever of them is there, nothing is known of its entries.
            for path in &candidates {
                self.note(place, path.clone(), true);
            }
            return;
        };
        for path in &candidates[..at] {
            self.before.insert(path.clone(), place.check.to_owned());
        }
        let path = &candidates[at];
        let mut parts = vec![(path.clone(), text)];
        for file in entries::included(path, &parts[0].1) {
            if let Some(file) = joined(&directory, &file) {
                self.note(place, file.clone(), true);
                if !place.inner {
                    parts.extend((place.contents)(&file).map(|text| (file, text)));
                }
            }
        }
        for name in &run.names {
            let done = entries::done_by_file(path, &parts[0].1, name);
            if let Some(file) = done.and_then(|name| joined(&directory, &name)) {
                self.before.insert(file, place.check.to_owned());
            }
            let entry = Entry {
                check: place.check.to_owned(),
                name: name.clone(),
                by_gate: place.by_gate,
            };
            let known = self.entries.entry(path.clone()).or_default();
            if !known.contains(&entry) {
                known.push(entry);
            }
            if place.inner {
                continue;
            }
            let inner = Place {
                directory: directory.clone(),
                ..*place
            };
            // The first entry is one of the file itself.
            let count = if name.is_empty() { 1 } else { parts.len() };
            for (path, text) in &parts[..count] {
                self.inner(&inner, &entries::commands(path, text, name));
            }
        }
    }

    fn inner(&mut self, place: &Place<'_>, text: &str) {
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
            self.walk(&here, line);
            if let Some(("cd" | "pushd", to)) = line::simple_commands(line)
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
