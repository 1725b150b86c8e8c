//! Reads the words of one command: which file it runs, which entries of one, and where it looks for modules.

use ropewalk_schemas::repo_path;

use crate::line::{SimpleCommand, name_of};

/// Programs that run the file that they are given.
const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "source", ".", "python", "pypy", "node", "deno", "bun",
    "tsx", "ts-node", "ruby", "perl", "php", "lua", "Rscript", "pwsh",
];
/// Programs that look for modules of Python where they are started, unless they are told of a file.
const PYTHONS: &[&str] = &[
    "python", "pypy", "pytest", "py.test", "coverage", "nose", "tox", "nox",
];
/// Programs that run scripts of a package.json.
const PACKAGE_RUNNERS: &[&str] = &["npm", "yarn", "pnpm", "bun"];
/// Their verbs that are scripts by themselves.
const SCRIPT_VERBS: &[&str] = &["test", "start", "stop", "restart", "t", "tst"];

/// Returns where Python looks for modules first, in a directory of the tree; none for what is no Python, or is isolated.
pub(super) fn python_path(program: &str, arguments: &[String], directory: &str) -> Option<String> {
    let name = plain_name(program);
    if !PYTHONS.contains(&name) || has_option(arguments, &["-I", "-P"]) {
        return None;
    }
    match run_file(program, arguments) {
        // A program lies where it looks for modules.
        Some(file) => {
            let file = joined(directory, file)?;
            Some(
                file.rsplit_once('/')
                    .map_or("", |(around, _)| around)
                    .to_owned(),
            )
        }
        None => Some(directory.to_owned()),
    }
}

/// Lists the directories of the tree that a line names as `PYTHONPATH`.
pub(super) fn python_paths(simple: &SimpleCommand, directory: &str) -> Vec<String> {
    let named = simple
        .words
        .iter()
        .find_map(|word| word.strip_prefix("PYTHONPATH="));
    let Some((program, arguments)) = simple.program() else {
        return Vec::new();
    };
    if plain_name(program) == "python" && has_option(arguments, &["-I", "-E"]) {
        return Vec::new();
    }
    let places = named.into_iter().flat_map(|named| named.split(':'));
    places
        .filter_map(|place| joined(directory, place))
        .collect()
}

/// Says whether one of these stands before what a program is to run.
fn has_option(arguments: &[String], wanted: &[&str]) -> bool {
    let mut options = arguments.iter().take_while(|word| word.starts_with('-'));
    options.any(|word| wanted.contains(&word.as_str()))
}

/// Returns the module that Python runs as a program.
pub(super) fn module_run<'a>(program: &str, arguments: &'a [String]) -> Option<&'a str> {
    let is_python = matches!(plain_name(program), "python" | "pypy");
    let at = arguments
        .iter()
        .position(|word| word == "-m")
        .filter(|_| is_python)?;
    arguments.get(at + 1).map(String::as_str)
}

/// Returns the name of a program without its version.
fn plain_name(program: &str) -> &str {
    name_of(program).trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.')
}

/// Returns the file that a command runs, as its words name it.
pub(super) fn run_file<'a>(program: &'a str, arguments: &'a [String]) -> Option<&'a str> {
    if program.contains('/') && !program.starts_with('/') {
        return Some(program);
    }
    let name = plain_name(program);
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
pub(super) struct EntryRun {
    pub(super) directory: String,
    pub(super) files: Vec<String>,
    pub(super) names: Vec<String>,
}

pub(super) fn entry_of(program: &str, arguments: &[String]) -> Option<EntryRun> {
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
pub(super) fn path_in(directory: &str, word: &str) -> Option<String> {
    let word = match word.strip_prefix('-') {
        Some(option) => option.split_once('=')?.1,
        None => word,
    };
    let file = word.split("::").next().unwrap_or(word);
    joined(directory, file)
}

/// Joins a directory and a relative path; none for what lies outside of the tree, or what a shell makes of it is not known.
pub(super) fn joined(directory: &str, path: &str) -> Option<String> {
    let is_plain = !path.contains(['$', '`', '*', '\n']);
    repo_path::joined(directory, path).filter(|_| is_plain)
}
