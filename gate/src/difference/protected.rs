//! Finds changes that only a person may accept: of existing tests, and of what decides about the work itself.
//!
//! In this order: how git writes files is not free, and neither are words for whoever works here that the task does not declare; what the
//! task itself makes is free, unless it stands in for what judges; an existing test may gain and nothing else, whoever
//! made it, an earlier task of the same build, too; a product that the task declares and that its check merely runs or names is free; what a check names or runs, what steers it,
//! what the project protects, and what takes a test of Rust from beside its product is not.
//!
//! What a script of Python imports, or names in quotes, counts as what the check names where a command of the gate runs that
//! script, and is free in three cases: the task declares it; the script is a product itself, since the task declares that and
//! it bears no name of what judges; or the script is a test, which imports what it tries.

mod attributes;
mod entries;
mod imports;
mod inline_tests;
mod python_tests;
mod reach;
mod stand_ins;
mod test_changes;

use ropewalk_schemas::question::FileChange;
use ropewalk_schemas::repo_path::CONVENTIONS;
use ropewalk_schemas::task::{Action, Task};
use ropewalk_schemas::{ContentHash, GlobPattern};

use crate::runner::Check;
pub use inline_tests::InlineTest;
pub(super) use inline_tests::gained;
use reach::Entry;
pub use reach::Reach;
pub(super) use reach::{Contents, MOST_BYTES, Tree};
pub(super) use test_changes::is_in_conflict;

/// Files that steer a test runner, a linter or a build, by name, anywhere in the tree.
const STEERING: &[&str] = &[
    "ropewalk.toml",
    "clippy.toml",
    "rustfmt.toml",
    "rust-toolchain",
    "rust-toolchain.toml",
    "nextest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    ".npmrc",
    ".yarnrc.yml",
    "bunfig.toml",
    "conftest.py",
    "sitecustomize.py",
    "usercustomize.py",
    ".gitlab-ci.yml",
    "Jenkinsfile",
    "azure-pipelines.yml",
];

/// The beginnings of configuration files of JavaScript runners.
const STEERING_BEGINNINGS: &[&str] = &[
    "jest.config.",
    "vitest.config.",
    "playwright.config.",
    "karma.conf.",
    ".mocharc.",
];

/// Directories that hold nothing but such files.
const STEERING_DIRECTORIES: &[&str] = &[".github", ".circleci", ".ci", ".cargo", ".config"];

/// Words in the name of a file that judges and is no product.
const JUDGING: &[&str] = &[
    "check",
    "checks",
    "checker",
    "test",
    "tests",
    "testing",
    "runtests",
    "verify",
    "validate",
    "validation",
    "gate",
    "ci",
    "lint",
    "spec",
    "specs",
    "smoke",
    "selftest",
    "assert",
    "acceptance",
];

/// A change that a person has to accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedChange {
    /// The file, as git names it.
    pub path: String,
    /// The hash of what it held; none where there was no file.
    pub before: Option<ContentHash>,
    /// The hash of what it holds now; none where it is removed.
    pub after: Option<ContentHash>,
    /// Why it is not the agent's to make, in one line.
    pub why: String,
}

impl ProtectedChange {
    /// Says why a change is a person's to accept.
    pub(crate) fn of(change: FileChange, why: String) -> Self {
        Self {
            path: change.path,
            before: change.before,
            after: change.after,
            why,
        }
    }

    /// Returns the change as a question names it, to which a yes is bound.
    pub fn change(&self) -> FileChange {
        FileChange {
            path: self.path.clone(),
            before: self.before.clone(),
            after: self.after.clone(),
        }
    }
}

/// A changed file.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// Its path.
    pub path: &'a str,
    /// What it held before the task began; none where it was not there.
    pub before: Option<&'a str>,
    /// What it holds now.
    pub after: Option<&'a str>,
}

/// What is protected, for one task.
pub struct Rules<'a> {
    /// What the checks name and run.
    pub reach: &'a Reach,
    /// What the project protects.
    pub by_project: &'a [GlobPattern],
    /// The task, which declares its files.
    pub task: &'a Task,
    /// The tests of Rust that come to any of the changed files.
    pub gained: &'a [InlineTest],
}

impl Rules<'_> {
    /// Says why a change is not the agent's to make; none where it is.
    pub fn why(&self, change: &Change<'_>) -> Option<String> {
        let path = change.path;
        let attributes = attributes::why(change, |name| self.reach.is_macro(name));
        if let Some(why) = attributes.or_else(|| self.by_conventions(path)) {
            return Some(why);
        }
        if change.before.is_none() {
            return weakened(change).or_else(|| self.by_stand_in(change));
        }
        if is_test(path) {
            return test_changes::why(change);
        }
        if name_of(path) == "conftest.py" && !self.is_of_project(path) {
            // It may gain as a test may, but for what pytest calls in the place of its own.
            return test_changes::why(change).or_else(|| stand_ins::hook(change));
        }
        if is_steering(path) {
            return Some(format!("`{path}` steers the checks"));
        }
        self.by_entry(change)
            .or_else(|| self.by_use(path))
            .or_else(|| {
                self.is_of_project(path)
                    .then(|| format!("`{path}` is protected by `gate.protected`"))
            })
            .or_else(|| self.by_inline_tests(change))
    }

    /// Says how the checks depend on a change, where these rules are those of the candidate itself: whoever allows what the
    /// checks are to run has to see what that is.
    pub fn why_afterwards(&self, change: &Change<'_>) -> Option<String> {
        (!is_test(change.path))
            .then(|| self.by_entry(change).or_else(|| self.by_use(change.path)))
            .flatten()
    }

    /// Looks at tests beside the product; who approved that a file goes approved that its tests do.
    fn by_inline_tests(&self, change: &Change<'_>) -> Option<String> {
        let is_wanted = change.after.is_none()
            && self.task.block.action == Action::Delete
            && self.declares(change.path);
        (!is_wanted)
            .then(|| inline_tests::why(change, self.gained).or_else(|| python_tests::why(change)))
            .flatten()
    }

    /// Looks at words for whoever works here later: what nobody planned would speak in the prompts of later builds as a person does.
    fn by_conventions(&self, path: &str) -> Option<String> {
        let speaks = CONVENTIONS.contains(&name_of(path)) && !self.declares(path);
        speaks.then(|| format!("`{path}` tells whoever works here later what to do"))
    }

    fn declares(&self, path: &str) -> bool {
        self.task.block.files().any(|file| file.as_str() == path)
    }

    /// Looks at what was not there before: who approved the task approved what it declares.
    fn by_stand_in(&self, change: &Change<'_>) -> Option<String> {
        if change.after.is_none() || self.declares(change.path) {
            return None;
        }
        stand_ins::why(self.reach, change)
            .or_else(|| self.entry_changed(change, |entry| entry.by_gate))
            // Python finds it before another file of that name, or where there was none.
            .or_else(|| self.by_mention(change.path))
    }

    fn is_of_project(&self, path: &str) -> bool {
        self.by_project.iter().any(|glob| glob.matches(path))
    }

    /// Looks at the entries of the file that a check runs, and at the settings in it, where it has some.
    fn by_entry(&self, change: &Change<'_>) -> Option<String> {
        let path = change.path;
        let settings = |text: Option<&str>| entries::settings(path, text.unwrap_or_default());
        let changed = || settings(change.before) != settings(change.after);
        self.entry_changed(change, |_| true)
            .or_else(|| changed().then(|| format!("`{path}` changes settings of the tests")))
    }

    /// Names an entry that changes, among those that checks run.
    fn entry_changed(
        &self,
        change: &Change<'_>,
        counts: impl Fn(&Entry) -> bool,
    ) -> Option<String> {
        let path = change.path;
        let text =
            |text: Option<&str>, name: &str| entries::text(path, text.unwrap_or_default(), name);
        let mut ran = self.reach.entries(path).filter(|entry| counts(entry));
        let changed =
            ran.find(|entry| text(change.before, &entry.name) != text(change.after, &entry.name))?;
        Some(format!(
            "`{path}` changes `{}`, which the check `{}` runs",
            changed.name, changed.check
        ))
    }

    fn by_use(&self, path: &str) -> Option<String> {
        self.by_command(path).or_else(|| self.by_mention(path))
    }

    /// Looks at what the words of commands name and run.
    fn by_command(&self, path: &str) -> Option<String> {
        let used = self.reach.of(path)?;
        let declared = self.declares(path);
        // What only the task's own check looks at is what the task is to make.
        let looked_at = !used.runs && !used.by_gate;
        if (declared || looked_at) && !used.decides && !judges(path) {
            return None;
        }
        let does = if used.runs { "runs" } else { "names" };
        Some(format!(
            "`{path}` is what the check `{}` {does}",
            used.check
        ))
    }

    /// Looks at what code of Python that the gate runs imports, or names in quotes.
    fn by_mention(&self, path: &str) -> Option<String> {
        if self.declares(path) {
            return None;
        }
        let is_product = |script: &String| self.declares(script) && !judges(script);
        let mut mentions = self.reach.mentions(path);
        let mention = mentions.find(|mention| !mention.script.as_ref().is_some_and(is_product))?;
        let check = &mention.check;
        Some(match &mention.script {
            Some(script) => {
                format!("`{path}` is what `{script}` uses, which the check `{check}` runs")
            }
            None => format!("`{path}` is what the check `{check}` names"),
        })
    }

    /// Says whether a new file of that path would be imported in the place of a module that counts.
    pub(super) fn is_stood_in_for(&self, module: &str, by: &str) -> bool {
        is_test(module) || !self.declares(by) && self.by_mention(module).is_some()
    }
}

/// Says whether a new file reaches into the tests that were there, and weakens them.
fn weakened(change: &Change<'_>) -> Option<String> {
    if !sees_all_tests(name_of(change.path)) {
        return None;
    }
    let sign = test_changes::sign("", change.after.unwrap_or_default())?;
    Some(format!("`{}` weakens tests: {sign}", change.path))
}

fn sees_all_tests(name: &str) -> bool {
    matches!(
        name,
        "conftest.py" | "sitecustomize.py" | "usercustomize.py"
    )
}

/// Says whether a file steers whatever checks run, by its name.
pub fn is_steering(path: &str) -> bool {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    STEERING.contains(&name)
        || STEERING_BEGINNINGS
            .iter()
            .any(|beginning| name.starts_with(beginning))
        || directory
            .split('/')
            .any(|part| STEERING_DIRECTORIES.contains(&part))
}

/// Says whether a path is a test by the customs of its language.
pub fn is_test(path: &str) -> bool {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let in_folder = directory
        .split('/')
        .any(|part| matches!(part, "tests" | "test" | "__tests__" | "spec" | "e2e"));
    in_folder || is_named_test(name)
}

fn is_named_test(name: &str) -> bool {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    stem.starts_with("test_")
        || ["_test", "_tests", ".test", ".spec", "_spec"]
            .iter()
            .any(|end| stem.ends_with(end))
        || stem == "tests"
        || is_run_by_node(name)
}

/// Says whether a file is a test, or is run with them wherever it lies.
pub fn is_run_with_tests(path: &str) -> bool {
    is_test(path) || name_of(path) == "conftest.py"
}

/// Says whether a new file is no test, but is run with those that were there, or steers them: a `conftest.py`, the package or a
/// helper of tests, settings of their runner.
pub fn supports_tests(path: &str, text: &str) -> bool {
    let name = name_of(path);
    let is_code = [".py", ".js", ".mjs", ".cjs", ".ts", ".mts"]
        .iter()
        .any(|end| name.ends_with(end));
    let is_setting = matches!(name, "pyproject.toml" | "setup.cfg")
        && entries::settings(path, "") != entries::settings(path, text);
    let is_steering = is_steering(path) && !path.contains('/');
    is_setting
        || is_steering
        || name == "conftest.py"
        || is_code && is_test(path) && !is_named_test(name)
}

/// Says whether `node --test` runs a file by itself, beside those that bear the marks of others.
fn is_run_by_node(name: &str) -> bool {
    let Some((stem, ending)) = name.rsplit_once('.') else {
        return false;
    };
    let is_script = matches!(ending, "js" | "mjs" | "cjs" | "ts" | "mts" | "cts");
    is_script && (stem == "test" || stem.starts_with("test-") || stem.ends_with("-test"))
}

/// Says whether a file is there to judge others, by its name.
fn judges(path: &str) -> bool {
    let plain = path.to_ascii_lowercase();
    let mut words = plain.split(|letter: char| !letter.is_ascii_alphanumeric());
    words.any(|word| JUDGING.contains(&word)) || entries::has_entries(path)
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Says whether a task may not ask for a file: it judges the task, or the project protects it.
///
/// Of a file with entries only some may judge, so that its change is looked at when it is there; so is that of a test.
pub fn is_kept(path: &str, rules: &Rules<'_>) -> bool {
    !rules.declares(path)
        && (is_steering(path)
            || rules.is_of_project(path)
            || !is_test(path) && rules.by_use(path).is_some())
}

/// Reads what the checks of a gate name and run, by what there is in a tree.
pub(super) fn reach(checks: &[Check<'_>], tree: &dyn Tree) -> Reach {
    let mut reach = Reach::default();
    let attributes = tree.text(attributes::NAME, true).unwrap_or_default();
    reach.take_macros(attributes::macros(&attributes));
    for check in checks {
        // A task's own check may run what the task makes; a command of the gate is run to judge.
        let by_gate = check.expected.is_none();
        reach.add(check.name, check.command, by_gate, tree);
    }
    reach
}

#[cfg(test)]
mod tests;
