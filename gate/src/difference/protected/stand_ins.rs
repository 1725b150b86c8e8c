//! Finds new files that would take the place of what judges: a module that Python finds before its own, a makefile that
//! goes before the one that is there, a file of a target's name, settings that a runner reads by itself.
//!
//! What a task declares was approved with it, and is free.

use super::reach::Reach;
use super::{Change, entries, is_steering, is_test, name_of};

/// Modules of Python and of its test runners, which a file of that name stands in for where a program begins.
const MODULES: &str = "\
    abc argparse array ast asyncio atexit base64 bdb binascii bisect builtins bz2 cProfile calendar cmath cmd code codecs \
    codeop collections colorsys compileall concurrent configparser contextlib contextvars copy copyreg csv ctypes curses \
    dataclasses datetime dbm decimal difflib dis doctest email encodings ensurepip enum errno faulthandler fcntl filecmp \
    fileinput fnmatch fractions ftplib functools gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq \
    hmac html http imaplib imp importlib inspect io ipaddress itertools json keyword linecache locale logging lzma mailbox \
    marshal math mimetypes mmap modulefinder multiprocessing netrc ntpath numbers opcode operator optparse os pathlib pdb \
    pickle pickletools pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc \
    pyexpat queue quopri random re readline reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex \
    shutil signal site smtplib socket socketserver sqlite3 ssl stat statistics string stringprep struct subprocess symtable \
    sys sysconfig syslog tabnanny tarfile tempfile termios textwrap threading time timeit token tokenize tomllib trace \
    traceback tracemalloc tty types typing unicodedata unittest urllib uuid venv warnings wave weakref webbrowser wsgiref xml \
    xmlrpc zipapp zipfile zipimport zlib zoneinfo \
    _pytest coverage iniconfig nose2 packaging pluggy pytest tox xdist";
/// The ends of files that are modules.
const MODULE_ENDS: [&str; 4] = ["py", "pyc", "so", "pyd"];
/// Directories and files of services that run checks elsewhere, and not those of a gate.
const ELSEWHERE: [&str; 6] = [
    ".github/",
    ".circleci/",
    ".ci/",
    ".gitlab-ci.yml",
    "Jenkinsfile",
    "azure-pipelines.yml",
];

/// Settings that a program reads by itself, by the beginnings of their names; those of [`is_steering`] are not told again.
const READ_BY: &[(&str, &[&str])] = &[
    ("ava", &["ava.config."]),
    ("c8", &[".c8rc", ".nycrc"]),
    ("coverage", &[".coveragerc"]),
    ("cypress", &["cypress.config."]),
    ("deno", &["deno.json"]),
    ("dotnet", &["Directory.Build.", "xunit.runner.json"]),
    ("eslint", &["eslint.config.", ".eslintrc", ".eslintignore"]),
    ("flake8", &[".flake8"]),
    ("go", &["go.work"]),
    ("golangci-lint", &[".golangci."]),
    ("jest", &["babel.config.", ".babelrc"]),
    ("mypy", &["mypy.ini", ".mypy.ini"]),
    ("nose2", &["nose2.cfg", "unittest.cfg"]),
    ("nyc", &[".nycrc"]),
    ("phpunit", &["phpunit.xml"]),
    (
        "prettier",
        &["prettier.config.", ".prettierrc", ".prettierignore"],
    ),
    ("pylint", &["pylintrc", ".pylintrc"]),
    ("pytest", &[".coveragerc"]),
    ("rspec", &[".rspec"]),
    ("rubocop", &[".rubocop.yml"]),
    ("ruff", &["ruff.toml", ".ruff.toml"]),
    ("tap", &[".taprc"]),
    ("vitest", &["vite.config.", "vitest.workspace."]),
];
/// Directories of a package of Rust in which no `build.rs` is its build script.
const SOURCES: [&str; 4] = ["src", "tests", "examples", "benches"];
/// What a `conftest.py` may tell pytest of itself and its tests.
const HARMLESS_HOOKS: [&str; 2] = ["pytest_addoption", "pytest_configure"];

/// Says what a new file stands in for; none where it is a file like any other.
pub(super) fn why(reach: &Reach, change: &Change<'_>) -> Option<String> {
    let path = change.path;
    if let Some(check) = reach.goes_before(path) {
        return Some(format!(
            "`{path}` goes before what the check `{check}` runs"
        ));
    }
    if let Some((directory, module)) = module_of(path)
        && let Some(check) = reach.python_in(directory)
        && MODULES.split_whitespace().any(|known| known == module)
    {
        return Some(format!(
            "`{path}` stands in for the module `{module}`, which the check `{check}` may use"
        ));
    }
    // One more test among those that a check runs by a glob is a test like any other.
    let used = if is_test(path) {
        reach.named(path)
    } else {
        reach.of(path)
    };
    if let Some(used) = used.filter(|used| used.decides) {
        return Some(format!("`{path}` is what the check `{}` runs", used.check));
    }
    let check = read_by(reach, path).or_else(|| reach.any().filter(|_| steers(change)))?;
    Some(format!("`{path}` steers the check `{check}`"))
}

/// Names what a `conftest.py` that was there gains of hooks, if it does.
pub(super) fn hook(change: &Change<'_>) -> Option<String> {
    let (before, after) = (change.before?, change.after?);
    let known: Vec<&str> = hooks(before).collect();
    let gained = hooks(after).find(|hook| !known.contains(hook))?;
    Some(format!("`{}` steers the checks by `{gained}`", change.path))
}

/// Says whether a file steers whatever checks run, by its name or by what it holds.
fn steers(change: &Change<'_>) -> bool {
    let path = change.path;
    let content = change.after.unwrap_or_default();
    if name_of(path) == "conftest.py" {
        // Of its lines it is looked what they do.
        return hooks(content).next().is_some();
    }
    let has_settings = entries::settings(path, "") != entries::settings(path, content);
    let is_elsewhere = ELSEWHERE.iter().any(|place| path.contains(place));
    has_settings || is_steering(path) && !is_elsewhere
}

/// Lists what a `conftest.py` has pytest call in the place of its own, by name.
fn hooks(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("async ").unwrap_or(line);
        let is_defined = line.starts_with("def ");
        let line = line.strip_prefix("def ").unwrap_or(line);
        let ends = |letter: char| !letter.is_alphanumeric() && letter != '_';
        let name = line.split(ends).next().unwrap_or(line);
        let behind = line[name.len()..].trim_start();
        let is_set = behind.starts_with('=') && !behind.starts_with("==");
        let is_hook = name.starts_with("pytest_") && !HARMLESS_HOOKS.contains(&name);
        (is_hook && (is_defined || is_set)).then_some(name)
    })
}

/// Returns the check whose program reads a file by itself.
fn read_by<'a>(reach: &'a Reach, path: &str) -> Option<&'a str> {
    let name = name_of(path);
    if name == "build.rs" && !path.split('/').any(|part| SOURCES.contains(&part)) {
        return reach.starts("cargo");
    }
    let mut readers = READ_BY
        .iter()
        .filter(|(_, names)| names.iter().any(|beginning| name.starts_with(beginning)));
    readers.find_map(|(program, _)| reach.starts(program))
}

/// Returns the directory in which a file is a module, and the name of that.
fn module_of(path: &str) -> Option<(&str, &str)> {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let (stem, end) = name.split_once('.')?;
    let end = end.rsplit('.').next().unwrap_or(end);
    if !MODULE_ENDS.contains(&end) {
        return None;
    }
    if stem == "__init__" {
        return Some(directory.rsplit_once('/').unwrap_or(("", directory)));
    }
    Some((directory, stem))
}
