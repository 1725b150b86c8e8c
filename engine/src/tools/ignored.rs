//! Tells what `.gitignore` files leave out. They come from the repository, so their patterns are bounded like any other.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ropewalk_schemas::GlobPattern;

/// So much of a `.gitignore` is read.
const MOST_BYTES: u64 = 256 * 1024;

/// Knows the `.gitignore` files of the directories that a walk has come through, each before what lies in it.
pub(super) struct IgnoreRules(Mutex<BTreeMap<PathBuf, Gitignore>>);

impl IgnoreRules {
    /// Begins a walk in `directory`; what lies above it has no say.
    pub(super) fn below(directory: &Path) -> Self {
        let own = rules_in(directory).map(|rules| (directory.to_owned(), rules));
        Self(Mutex::new(own.into_iter().collect()))
    }

    /// Says whether a path is left out; a directory that is not is looked into.
    pub(super) fn takes(&self, path: &Path, is_directory: bool) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let rules = path
            .ancestors()
            .skip(1)
            .filter_map(|above| known.get(above));
        for rules in rules {
            match rules.matched(path, is_directory) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => break,
                Match::None => {}
            }
        }
        if is_directory && let Some(rules) = rules_in(path) {
            known.insert(path.to_owned(), rules);
        }
        false
    }
}

/// Reads the `.gitignore` of a directory. A line that is out of bounds or malformed counts for nothing.
fn rules_in(directory: &Path) -> Option<Gitignore> {
    let file = directory.join(".gitignore");
    if !std::fs::symlink_metadata(&file).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(&file)
        .ok()?
        .take(MOST_BYTES)
        .read_to_end(&mut bytes)
        .ok()?;
    let mut builder = GitignoreBuilder::new(directory);
    for line in String::from_utf8_lossy(&bytes).lines() {
        if GlobPattern::is_bounded(line) {
            builder.add_line(None, line).ok();
        }
    }
    builder.build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_ignores_is_left_out_and_the_deeper_rule_counts() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for (name, text) in [
            (".gitignore", "*.log\n/build\ntarget/\n!kept.log\n"),
            ("src/.gitignore", "!*.log\ntmp\n"),
        ] {
            let file = root.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let ignored = IgnoreRules::below(root);
        assert!(!ignored.takes(&root.join("src"), true));
        let rows = [
            ("a.log", false, true),
            ("kept.log", false, false),
            ("build", true, true),
            ("src/build", true, false),
            ("target", true, true),
            ("target", false, false),
            ("src/a.log", false, false),
            ("src/tmp", false, true),
            ("tmp", false, false),
        ];
        for (path, is_directory, expected) in rows {
            assert_eq!(
                ignored.takes(&root.join(path), is_directory),
                expected,
                "{path}"
            );
        }
    }
}
