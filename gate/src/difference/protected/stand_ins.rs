//! Finds new files that would take the place of what judges: a module that Python finds before its own, a makefile that
//! goes before the one that is there, settings that a runner reads by themselves.
//!
//! What a task declares was approved with it, and is free.

use super::reach::Reach;
use super::{entries, is_steering, name_of};

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

/// Says what a new file stands in for; none where it is a file like any other.
pub(super) fn why(reach: &Reach, path: &str, content: &str) -> Option<String> {
    if let Some(check) = reach.goes_before(path) {
        return Some(format!(
            "`{path}` goes before the file that the check `{check}` runs"
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
    let check = reach.any()?;
    let has_settings = entries::settings(path, "") != entries::settings(path, content);
    let steers = is_steering(path) && !ELSEWHERE.iter().any(|place| path.contains(place));
    // Of these it is looked what they do.
    let is_seen_through = super::sees_all_tests(name_of(path));
    (has_settings || steers && !is_seen_through)
        .then(|| format!("`{path}` steers the check `{check}`"))
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
