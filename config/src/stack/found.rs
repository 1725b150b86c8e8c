//! Finds the stacks of a repository and how each is tested, by the files that are there.

use std::collections::{BTreeMap, BTreeSet};

use ropewalk_schemas::{GlobPattern, RepoPath};
use serde::{Deserialize, Serialize};

use super::{StackProfile, StackProfiles};

/// How deep below the root a stack is looked for.
const DEPTH: usize = 2;
/// Where the tests lie that are read to know what they are made with: those further down are too many to be read.
const TESTS: [&str; 3] = ["", "test", "tests"];
/// So many of them are read.
const TESTS_READ: usize = 32;
/// The most stacks of one repository.
const MOST: usize = 8;
/// Directories that hold what others wrote, or what programs make.
const FOREIGN: [&str; 10] = [
    "node_modules",
    "vendor",
    "third_party",
    "target",
    "dist",
    "build",
    "testdata",
    "fixtures",
    "examples",
    "ideas",
];

/// A check that projects of a stack may have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackCheck {
    /// Names it in the gate.
    pub name: String,
    /// The program that it needs.
    pub tool: String,
    /// A shell line, run in the directory of the stack.
    pub command: String,
    /// One of these must be there, relative to that directory; none for no condition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<GlobPattern>,
    /// What one of the manifests must say; none for no condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<ManifestCondition>,
}

/// What a manifest says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestCondition {
    /// The manifests, relative to the directory of the stack.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<RepoPath>,
    /// The tests that count as manifests, relative to that directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<GlobPattern>,
    /// The text that one of them must hold.
    pub text: String,
    /// The text that it must not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<String>,
}

/// A program of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackTool {
    /// The program.
    pub name: String,
    /// A shell line whose first line of output tells the version.
    pub version: String,
}

/// A stack that a repository has.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundStack<'a> {
    /// Its profile.
    pub profile: &'a StackProfile,
    /// Where it lies; empty for the root.
    pub directory: String,
    /// How it is tested, where that can be told.
    pub check: Option<FoundCheck>,
}

/// A check as it is run in the root of the repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundCheck {
    /// Names it in the gate.
    pub name: String,
    /// The program that it needs.
    pub tool: String,
    /// The shell line.
    pub command: String,
}

impl StackProfiles {
    /// Lists the files of which [`Self::find`] has to know what they hold: the manifests, and some of the tests.
    pub fn to_read<'a>(&self, paths: &[&'a str]) -> Vec<&'a str> {
        let manifests = paths.iter().filter(|path| self.is_manifest(path));
        let tests = paths.iter().filter(|path| self.is_read_test(path));
        manifests.chain(tests.take(TESTS_READ)).copied().collect()
    }

    fn is_manifest(&self, path: &str) -> bool {
        let is_near = path.matches('/').count() <= DEPTH;
        let name = path.rsplit('/').next().unwrap_or(path);
        let read = |check: &StackCheck| {
            let says = check.says.iter().flat_map(|says| &says.files);
            says.map(RepoPath::as_str).any(|file| file == name)
        };
        is_near && self.iter().any(|profile| profile.checks.iter().any(read))
    }

    fn is_read_test(&self, path: &str) -> bool {
        let home = path.rsplit_once('/').map_or("", |(home, _)| home);
        let read = |check: &StackCheck| {
            let mut says = check.says.iter().flat_map(|says| &says.tests);
            says.any(|glob| glob.matches(path))
        };
        TESTS.contains(&home) && self.iter().any(|profile| profile.checks.iter().any(read))
    }

    /// Finds the stacks among `paths`, the root first; `texts` are the manifests by path.
    pub fn find(&self, paths: &[&str], texts: &BTreeMap<String, String>) -> Vec<FoundStack<'_>> {
        let known: BTreeSet<&str> = paths.iter().copied().collect();
        let mut found: Vec<FoundStack<'_>> = Vec::new();
        let marks = self.iter().flat_map(StackProfile::marks);
        for directory in directories(paths, &marks.map(RepoPath::as_str).collect()) {
            let below = below(directory, paths);
            let here = |profile: &&StackProfile| lies_in(profile, directory, &known, &below);
            let there: Vec<&StackProfile> = self.iter().filter(here).collect();
            for profile in there.iter().filter(|one| !is_part_of_another(one, &there)) {
                let covered = |found: &FoundStack<'_>| {
                    found.profile.name == profile.name && is_below(directory, &found.directory)
                };
                if found.len() < MOST && !found.iter().any(covered) {
                    found.push(FoundStack {
                        profile,
                        directory: directory.to_owned(),
                        check: check(profile, directory, &below, texts),
                    });
                }
            }
        }
        // Pages may have programs beside them.
        if found.iter().all(|found| found.profile.checks.is_empty()) {
            found.extend(self.bare(paths, texts));
        }
        found
    }

    /// Finds the stacks that only their sources tell, as of a few scripts beside each other, or of a package without a manifest.
    fn bare(&self, paths: &[&str], texts: &BTreeMap<String, String>) -> Vec<FoundStack<'_>> {
        let is_own = |path: &&&str| {
            let home = path.rsplit_once('/').map_or("", |(home, _)| home);
            is_near_and_own(home)
        };
        let own: Vec<&str> = paths.iter().filter(is_own).copied().collect();
        let told = self.iter().filter(|profile| holds_one(&profile.bare, &own));
        told.map(|profile| FoundStack {
            profile,
            directory: String::new(),
            check: check(profile, "", paths, texts),
        })
        .collect()
    }
}

/// Lists the directories in which a file lies that tells a stack, those near the root first.
fn directories<'a>(paths: &[&'a str], marks: &BTreeSet<&str>) -> Vec<&'a str> {
    let parts = paths
        .iter()
        .map(|path| path.rsplit_once('/').unwrap_or(("", path)));
    let homes: BTreeSet<&str> = parts
        .filter(|(home, name)| marks.contains(name) && is_near_and_own(home))
        .map(|(home, _)| home)
        .collect();
    let mut homes: Vec<&str> = homes.into_iter().collect();
    homes.sort_by_key(|home| (depth(home), *home));
    homes
}

fn depth(directory: &str) -> usize {
    directory.split('/').filter(|part| !part.is_empty()).count()
}

fn is_near_and_own(directory: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-/".contains(letter);
    depth(directory) <= DEPTH
        && directory.chars().all(plain)
        && !directory
            .split('/')
            .any(|part| FOREIGN.contains(&part) || part.starts_with('.'))
}

fn is_below(directory: &str, above: &str) -> bool {
    above.is_empty() || directory == above || directory.starts_with(&format!("{above}/"))
}

fn in_directory(directory: &str, file: &str) -> String {
    if directory.is_empty() {
        file.to_owned()
    } else {
        format!("{directory}/{file}")
    }
}

/// Returns the paths below a directory, relative to it.
fn below<'a>(directory: &str, paths: &[&'a str]) -> Vec<&'a str> {
    let relative = |path: &&'a str| match directory {
        "" => Some(*path),
        _ => path.strip_prefix(directory)?.strip_prefix('/'),
    };
    paths.iter().filter_map(relative).collect()
}

fn lies_in(
    profile: &StackProfile,
    directory: &str,
    known: &BTreeSet<&str>,
    below: &[&str],
) -> bool {
    let is_there =
        |file: &RepoPath| known.contains(in_directory(directory, file.as_str()).as_str());
    profile.detect.iter().all(is_there)
        && (profile.any.is_empty() || profile.any.iter().any(is_there))
        && (profile.holds.is_empty() || holds_one(&profile.holds, below))
}

/// A profile that is told by less than another one says nothing beside that.
fn is_part_of_another(profile: &StackProfile, others: &[&StackProfile]) -> bool {
    let own: BTreeSet<&RepoPath> = profile.marks().collect();
    others
        .iter()
        .filter(|other| other.name != profile.name)
        .any(|other| own.is_subset(&other.marks().collect()))
}

fn check(
    profile: &StackProfile,
    directory: &str,
    below: &[&str],
    texts: &BTreeMap<String, String>,
) -> Option<FoundCheck> {
    let applies = |check: &&StackCheck| {
        let files = check.files.is_empty() || holds_one(&check.files, below);
        files
            && check
                .says
                .as_ref()
                .is_none_or(|says| is_said(says, directory, texts))
    };
    let check = profile.checks.iter().find(applies)?;
    let (name, command) = match directory {
        "" => (check.name.clone(), check.command.clone()),
        _ => (
            format!("{} of {directory}", check.name),
            format!("cd {directory} && {}", check.command),
        ),
    };
    Some(FoundCheck {
        name,
        tool: check.tool.clone(),
        command,
    })
}

fn holds_one(globs: &[GlobPattern], paths: &[&str]) -> bool {
    globs
        .iter()
        .any(|glob| paths.iter().any(|path| glob.matches(path)))
}

fn is_said(says: &ManifestCondition, directory: &str, texts: &BTreeMap<String, String>) -> bool {
    let manifests = says
        .files
        .iter()
        .filter_map(|file| texts.get(&in_directory(directory, file.as_str())));
    let speaking = texts.iter().filter(|(path, _)| {
        let below = below(directory, &[path.as_str()]);
        holds_one(&says.tests, &below)
    });
    let mut manifests = manifests.chain(speaking.map(|(_, text)| text));
    manifests.any(|text| {
        let without = says.without.as_ref();
        text.contains(&says.text) && without.is_none_or(|unwanted| !text.contains(unwanted))
    })
}

#[cfg(test)]
mod tests;
