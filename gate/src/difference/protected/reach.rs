//! Finds what a check names and runs: on its own line, and one level further in what that line runs.

use std::collections::BTreeMap;

use super::entries;
use crate::line::{self, SimpleCommand, name_of};

/// Programs that run the file that they are given.
const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "source", ".", "python", "pypy", "node", "deno", "bun",
    "tsx", "ts-node", "ruby", "perl", "php", "lua", "Rscript", "pwsh",
];
/// Those of them whose files are read further.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "source", "."];
/// Programs that run scripts of a package.json.
const PACKAGE_RUNNERS: &[&str] = &["npm", "yarn", "pnpm", "bun"];
/// Their verbs that are scripts by themselves.
const SCRIPT_VERBS: &[&str] = &["test", "start", "stop", "restart", "t", "tst"];

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
}

/// What the checks of a gate name and run.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    files: BTreeMap<String, Use>,
    entries: BTreeMap<String, Vec<Entry>>,
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

    /// Adds what a line names and runs.
    pub(super) fn add(
        &mut self,
        check: &str,
        line: &str,
        by_gate: bool,
        contents: &dyn Fn(&str) -> Option<String>,
    ) {
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
        let Some((path, text)) = candidates
            .into_iter()
            .find_map(|path| contents(&path).map(|text| (path, text)))
        else {
            return;
        };
        for name in &run.names {
            let entry = Entry {
                check: place.check.to_owned(),
                name: name.clone(),
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
            self.inner(&inner, &entries::commands(&path, &text, name), contents);
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

/// Returns the file that a command runs, as its words name it.
fn run_file<'a>(program: &'a str, arguments: &'a [String]) -> Option<&'a str> {
    if program.contains('/') && !program.starts_with('/') {
        return Some(program);
    }
    let name =
        name_of(program).trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let name = if program == "." { "." } else { name };
    if !INTERPRETERS.contains(&name) {
        return None;
    }
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            // What follows is code or a module, and no file.
            "-c" | "-m" | "-e" | "--eval" | "-p" => return None,
            "-o" | "-W" | "-X" | "-r" | "--require" | "--import" => {
                words.next();
            }
            "run" | "test" if matches!(name, "deno" | "bun") => {}
            word if word.starts_with(['-', '+']) => {}
            word => return Some(word),
        }
    }
    None
}

/// The entries that a command runs, and the files that may hold them.
struct EntryRun {
    directory: String,
    files: Vec<String>,
    names: Vec<String>,
}

fn entry_of(program: &str, arguments: &[String]) -> Option<EntryRun> {
    let name = name_of(program);
    let mut run = EntryRun {
        directory: String::new(),
        files: Vec::new(),
        names: Vec::new(),
    };
    let mut words = arguments.iter().take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        let mut value = || words.next().cloned().unwrap_or_default();
        match word.as_str() {
            "-C"
            | "--directory"
            | "--prefix"
            | "--dir"
            | "--cwd"
            | "-d"
            | "--working-directory" => run.directory = value(),
            "-f" | "--file" | "--justfile" | "--makefile" => run.files = vec![value()],
            "-w" | "--workspace" | "--filter" | "-j" if name != "just" => {}
            word if word.starts_with('-') || word.contains('=') => {}
            word => run.names.push(word.to_owned()),
        }
    }
    let ours = |files: &[&str]| {
        files
            .iter()
            .map(|file| (*file).to_owned())
            .collect::<Vec<String>>()
    };
    match name {
        "make" | "gmake" => {
            if run.files.is_empty() {
                run.files = ours(&["GNUmakefile", "makefile", "Makefile"]);
            }
        }
        "just" => {
            if run.files.is_empty() {
                run.files = ours(&["justfile", "Justfile", ".justfile"]);
            }
            run.names.truncate(1);
        }
        _ if PACKAGE_RUNNERS.contains(&name) => {
            run.files = ours(&["package.json"]);
            let mut names = std::mem::take(&mut run.names).into_iter();
            let verb = names.next()?;
            let script = match verb.as_str() {
                "run" | "run-script" => names.next()?,
                "t" | "tst" => "test".to_owned(),
                verb if SCRIPT_VERBS.contains(&verb) || matches!(name, "yarn" | "pnpm") => {
                    verb.to_owned()
                }
                _ => return None,
            };
            run.names = vec![script];
        }
        _ => return None,
    }
    if run.names.is_empty() {
        run.names.push(String::new());
    }
    Some(run)
}

/// Returns the path that a word may name: behind `--option=`, and without what names a part of the file.
fn path_in(directory: &str, word: &str) -> Option<String> {
    let word = match word.strip_prefix('-') {
        Some(option) => option.split_once('=')?.1,
        None => word,
    };
    let file = word.split("::").next().unwrap_or(word);
    joined(directory, file)
}

/// Joins a directory and a relative path; none for what lies outside of the tree.
fn joined(directory: &str, path: &str) -> Option<String> {
    if path.starts_with('/') || path.contains(['$', '`', '*', '\n']) {
        return None;
    }
    let mut parts: Vec<&str> = directory
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn is_shell_script(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.starts_with("#!") && SHELLS.iter().any(|shell| first.trim_end().ends_with(shell))
        || !first.starts_with("#!")
}
