//! Reads the words of one command: which file it runs, which entries of one, and where it looks for modules.

use std::path::Path;

use ropewalk_schemas::repo_path;

use super::globs::is_glob;
use crate::line::{self, ShellInput, SimpleCommand, UNKNOWN, Variables, name_of, plain_name};

/// Programs that run the file that they are given.
const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "source", ".", "python", "pypy", "node", "deno", "bun",
    "tsx", "ts-node", "ruby", "perl", "php", "lua", "Rscript", "pwsh",
];
/// Programs that run a file of the directory that they are given, too, beside those of Python.
const DIRECTORY_RUNNERS: &[&str] = &["node", "bun", "tsx", "ts-node"];
/// The ends of scripts, which are no directories.
const SCRIPT_ENDS: &[&str] = &[
    "py", "pyz", "pyc", "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx",
];
/// Options of `go run` that take a word.
const GO_VALUES: &[&str] = &[
    "-tags",
    "-ldflags",
    "-gcflags",
    "-asmflags",
    "-exec",
    "-mod",
    "-modfile",
    "-overlay",
    "-pgo",
    "-toolexec",
    "-o",
    "-p",
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
    match start_of(program, arguments) {
        // A program lies where it looks for modules.
        Some(Start::File(file)) => {
            let file = joined(directory, file)?;
            Some(directory_of(&file).to_owned())
        }
        _ => Some(directory.to_owned()),
    }
}

/// Returns the directory of a file.
pub(super) fn directory_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(around, _)| around)
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

/// A language whose code is read further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Shell,
    Python,
}

/// Returns the language of what a program runs.
pub(super) fn language_of(program: &str) -> Option<Language> {
    match plain_name(program) {
        "source" | "." => Some(Language::Shell),
        "python" | "pypy" => Some(Language::Python),
        name => line::SHELLS.contains(&name).then_some(Language::Shell),
    }
}

/// Returns the language of a file that is a program itself, by its first line.
pub(super) fn language_in(text: &str) -> Option<Language> {
    let first = text.lines().next().unwrap_or_default();
    let Some(interpreter) = first.strip_prefix("#!") else {
        return Some(Language::Shell);
    };
    let mut words = interpreter.split_whitespace();
    words.find_map(language_of)
}

/// What a command is given to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start<'a> {
    /// A file, as the words name it.
    File(&'a str),
    /// A module of Python.
    Module(&'a str),
    /// A line or code that stands in the command itself.
    Code(&'a str),
}

/// Returns what an interpreter is given to run; none for another program.
pub(super) fn start_of<'a>(program: &str, arguments: &'a [String]) -> Option<Start<'a>> {
    let name = plain_name(program);
    if !INTERPRETERS.contains(&name) {
        return None;
    }
    match language_of(program) {
        Some(Language::Python) => {
            match line::behind_flag(arguments, ("cm", &[]), line::PYTHON_VALUES) {
                Some(('m', module)) => Some(Start::Module(module)),
                Some((_, code)) => Some(Start::Code(code)),
                None => file_of(name, arguments).map(Start::File),
            }
        }
        _ if line::only_looks(name, arguments) => None,
        Some(Language::Shell) => Some(match line::shell_input(arguments)? {
            ShellInput::Line(code) => Start::Code(code),
            ShellInput::File(file) => Start::File(file),
        }),
        None => file_of(name, arguments).map(Start::File),
    }
}

/// Returns the file that an interpreter is given to run.
fn file_of<'a>(name: &str, arguments: &'a [String]) -> Option<&'a str> {
    let mut words = arguments.iter();
    let mut has_tests = false;
    while let Some(word) = words.next() {
        has_tests |= runs_tests(name, word);
        match word.as_str() {
            // What follows is code or a module, and no file.
            "-c" | "-m" | "-e" | "--eval" | "-p" => return None,
            "-o" | "-W" | "-X" | "-r" | "--require" | "--import" => {
                words.next();
            }
            "run" | "test" if matches!(name, "deno" | "bun") => {}
            word if word.starts_with(['-', '+']) => {}
            // A runner of tests looks for those that a glob stands for.
            word => return (!has_tests || !is_glob(word)).then_some(word),
        }
    }
    None
}

/// Says whether a word makes an interpreter a runner of tests.
fn runs_tests(name: &str, word: &str) -> bool {
    word == "--test" || word == "test" && matches!(name, "deno" | "bun")
}

/// Returns the arguments behind the file or the code that a program is given to run.
pub(super) fn behind<'a>(arguments: &'a [String], given: &str) -> &'a [String] {
    let at = arguments.iter().position(|word| word == given);
    &arguments[at.map_or(arguments.len(), |at| at + 1)..]
}

/// Says whether a program runs what it reads, since it is given nothing else to run or to look at.
pub(super) fn runs_input(program: &str, arguments: &[String]) -> bool {
    let name = plain_name(program);
    if !INTERPRETERS.contains(&name)
        || start_of(program, arguments).is_some()
        || line::only_looks(name, arguments)
    {
        return false;
    }
    // Code of Python or of a shell is known by now.
    language_of(program).is_some()
        || !arguments
            .iter()
            .any(|word| runs_tests(name, word) || gives_code(name, word))
}

/// Says whether a flag gives an interpreter its code, in the words behind it or as a file that is glued to it.
fn gives_code(name: &str, word: &str) -> bool {
    let Some(bundle) = word.strip_prefix('-') else {
        return false;
    };
    if bundle.starts_with('-') {
        return bundle.starts_with("-eval") || bundle.starts_with("-print");
    }
    let letters = line::flags_in(name, bundle).to_ascii_lowercase();
    letters.contains(['c', 'e', 'p']) || name == "php" && letters.contains(['f', 'r'])
}

/// Says whether a program runs a file of what it is given, where that is a directory; a runner of tests looks for its own.
pub(super) fn runs_directory(program: &str, arguments: &[String], given: &str) -> bool {
    let name = plain_name(program);
    let (_, end) = name_of(given).rsplit_once('.').unwrap_or_default();
    if SCRIPT_ENDS.contains(&end) {
        return false;
    }
    let mut before = arguments.iter().take_while(|word| *word != given);
    let is_python = language_of(program) == Some(Language::Python);
    is_python || DIRECTORY_RUNNERS.contains(&name) && !before.any(|word| runs_tests(name, word))
}

/// Lists what `go run` makes a program of and starts: the files that it is given, or those of a package, by a glob.
pub(super) fn go_files(program: &str, arguments: &[String]) -> Vec<String> {
    let mut words = arguments.iter();
    if name_of(program) != "go" || words.next().is_none_or(|verb| verb != "run") {
        return Vec::new();
    }
    let mut directory = ".";
    let mut files = Vec::new();
    while let Some(word) = words.next() {
        let is_file = Path::new(word).extension().is_some_and(|end| end == "go");
        match word.as_str() {
            "-C" => directory = words.next().map_or(directory, String::as_str),
            flag if GO_VALUES.contains(&flag) => {
                words.next();
            }
            flag if flag.starts_with('-') => {}
            file if is_file => files.push(format!("{directory}/{file}")),
            package => {
                // What follows are arguments of the program.
                if files.is_empty() {
                    files.push(format!("{directory}/{package}/*.go"));
                }
                break;
            }
        }
    }
    files
}

/// Returns the program itself, where it is a file of the tree.
pub(super) fn own_file(program: &str) -> Option<&str> {
    (program.contains('/') && !program.starts_with('/')).then_some(program)
}

/// Says whether a command runs a file, a module or an entry of a file, and does not just name some.
pub(super) fn runs_something(simple: &SimpleCommand) -> bool {
    simple.program().is_some_and(|(program, arguments)| {
        own_file(program).is_some()
            || start_of(program, arguments).is_some()
            || entry_of(program, arguments).is_some()
            || !go_files(program, arguments).is_empty()
            || !Variables::default().commands_within(simple).is_empty()
    })
}

/// Lists the files that a module of Python may be, with the packages that it lies in; it is named from where modules are
/// looked for.
pub(super) fn files_of_module(module: &str) -> Vec<String> {
    let path = module.replace('.', "/");
    let above = path.match_indices('/').map(|(at, _)| &path[..at]);
    let packages = above.chain(std::iter::once(path.as_str()));
    let mut files: Vec<String> = packages
        .map(|package| format!("{package}/__init__.py"))
        .collect();
    files.push(format!("{path}.py"));
    files
}

/// The entries that a command runs, and the files that may hold them.
pub(super) struct EntryRun {
    pub(super) directory: String,
    pub(super) files: Vec<String>,
    pub(super) names: Vec<String>,
    /// What it gives variables of that file.
    pub(super) assigned: Vec<(String, String)>,
}

pub(super) fn entry_of(program: &str, arguments: &[String]) -> Option<EntryRun> {
    let name = name_of(program);
    let is_package = PACKAGE_RUNNERS.contains(&name);
    let mut run = EntryRun {
        directory: String::new(),
        files: Vec::new(),
        names: Vec::new(),
        assigned: Vec::new(),
    };
    let mut words = arguments.iter().take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        let (flag, given) = flag_of(name, word);
        let mut value =
            || given.map_or_else(|| words.next().cloned().unwrap_or_default(), str::to_owned);
        match flag {
            "-C" | "--directory" | "--prefix" | "--dir" | "--cwd" | "--working-directory" => {
                run.directory = value();
            }
            "-d" if name == "just" => run.directory = value(),
            // One package of several is named by where it lies.
            "-w" | "--workspace" | "--filter" if is_package => run.directory = value(),
            "-f" if is_package => {}
            "-f" | "--file" | "--justfile" | "--makefile" => run.files = vec![value()],
            flag if flag.starts_with('-') => {}
            name => match name.split_once('=') {
                Some((name, set)) => run.assigned.push((name.to_owned(), set.to_owned())),
                None => run.names.push(name.to_owned()),
            },
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
        _ if is_package => {
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

/// Parts a flag from what is glued to it.
fn flag_of<'a>(program: &str, word: &'a str) -> (&'a str, Option<&'a str>) {
    if word.starts_with("--") {
        return match word.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (word, None),
        };
    }
    let is_glued = matches!(program, "make" | "gmake") && word.len() > 2;
    if is_glued && (word.starts_with("-C") || word.starts_with("-f")) {
        let (flag, value) = word.split_at(2);
        return (flag, Some(value));
    }
    (word, None)
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
    let is_plain = !path.contains(['$', '`', '*', '\n', UNKNOWN]);
    repo_path::joined(directory, path).filter(|_| is_plain)
}
