//! Names by globs what is run and not written out: what a word says of it is known, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use ropewalk_schemas::{GlobPattern, repo_path};

use super::contents::Tree;
use crate::line::UNKNOWN;

/// So many globs of the gate's commands are looked for in the tree, and so many of the task's own check.
const MOST_GLOBS: usize = 64;
/// So many files that one of them matches are followed.
const MOST_MATCHED_FILES: usize = 50;
/// So many directories that one of them matches are gone into.
const MOST_MATCHED_DIRECTORIES: usize = 16;

/// Joins a directory and what a word says of a relative path; none for what lies outside of the tree, what a shell makes of it is
/// not known, or what says nothing but an ending.
pub(super) fn target(directory: &str, word: &str) -> Option<String> {
    if word.contains(['$', '`', '\n']) {
        return None;
    }
    if !word.contains(UNKNOWN) {
        return repo_path::joined(directory, word);
    }
    if word.starts_with('/') || !word.split('/').any(says_something) {
        return None;
    }
    // What is not known may begin anywhere.
    let begin = if word.starts_with(UNKNOWN) {
        ""
    } else {
        directory
    };
    let mut parts: Vec<&str> = begin.split('/').filter(|part| !part.is_empty()).collect();
    for part in word.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| last.contains(UNKNOWN)) => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn says_something(part: &str) -> bool {
    let known = part.trim_start_matches(UNKNOWN);
    let is_ending = known.len() < part.len() && known.starts_with('.');
    !is_ending && known.contains(char::is_alphanumeric)
}

/// Says whether a path may stand for others.
pub(super) fn is_glob(path: &str) -> bool {
    path.contains(['*', '?', '[', '{', UNKNOWN])
}

/// Says whether a path may stand for itself.
pub(super) fn is_literal(path: &str) -> bool {
    !path.contains(['*', UNKNOWN])
}

/// Says whether all of a path is written.
pub(super) fn is_known(path: &str) -> bool {
    !path.contains(UNKNOWN)
}

/// Reads a path as a glob; none where it stands for itself, or says nothing.
pub(super) fn pattern(path: &str) -> Option<GlobPattern> {
    let says = |letter: char| letter.is_alphanumeric() || letter == '*';
    if !is_glob(path) || !path.contains(says) {
        return None;
    }
    let parts = path.split('/').map(|part| {
        let known = part.trim_start_matches(UNKNOWN);
        let rest = known.replace(UNKNOWN, "*");
        if known.len() == part.len() {
            rest
        } else if known.is_empty() {
            "**".to_owned()
        } else {
            format!("**/*{rest}")
        }
    });
    let text = parts.collect::<Vec<String>>().join("/");
    let parsed = GlobPattern::parse(&text).or_else(|_| {
        // A bracket that is left open is a letter of a name.
        GlobPattern::parse(&text.replace(['[', ']', '{', '}'], "?"))
    });
    parsed.ok()
}

/// What is looked for by a glob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    File,
    Directory,
}

/// What globs match of a tree, by who asks: a command of the gate, or the task's own check.
#[derive(Debug, Clone, Default)]
pub(super) struct Matches(BTreeMap<(bool, Kind, String), Vec<String>>);

impl Matches {
    /// Lists files that a path may stand for, in order; nothing at the bounds.
    pub(super) fn files(&mut self, tree: &dyn Tree, by_gate: bool, path: &str) -> Vec<String> {
        self.found(tree, (by_gate, Kind::File, path.to_owned()))
    }

    /// Lists directories that a path may stand for, in order; nothing at the bounds.
    pub(super) fn directories(
        &mut self,
        tree: &dyn Tree,
        by_gate: bool,
        path: &str,
    ) -> Vec<String> {
        self.found(tree, (by_gate, Kind::Directory, path.to_owned()))
    }

    fn found(&mut self, tree: &dyn Tree, key: (bool, Kind, String)) -> Vec<String> {
        if let Some(known) = self.0.get(&key) {
            return known.clone();
        }
        let others = self.0.keys().filter(|(by_gate, ..)| *by_gate == key.0);
        if others.count() == MOST_GLOBS {
            return Vec::new();
        }
        let found = pattern(&key.2).map_or_else(Vec::new, |glob| match key.1 {
            Kind::File => {
                let files = tree.paths().iter().filter(|path| glob.matches(path));
                files.take(MOST_MATCHED_FILES).cloned().collect()
            }
            Kind::Directory => directories(tree.paths(), &glob),
        });
        self.0.insert(key, found.clone());
        found
    }
}

fn directories(paths: &[String], glob: &GlobPattern) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let above = paths.iter().flat_map(|path| {
        let ends = path.match_indices('/');
        ends.map(move |(at, _)| &path[..at])
    });
    let found = above.filter(|directory| seen.insert(*directory) && glob.matches(directory));
    found
        .take(MOST_MATCHED_DIRECTORIES)
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says whether a word that stands in `web` may be a path; `~` is what is not known of it.
    fn stands_for(word: &str, path: &str) -> bool {
        let target = target("web", &word.replace('~', &UNKNOWN.to_string()));
        target.is_some_and(|target| {
            is_literal(&target) && target == path
                || pattern(&target).is_some_and(|glob| glob.matches(path))
        })
    }

    #[test]
    fn what_a_word_says_of_a_path_is_a_glob_of_it() {
        for (word, path) in [
            ("a.sh", "web/a.sh"),
            ("../a.sh", "a.sh"),
            ("*.sh", "web/a.sh"),
            ("a?/[bc].sh", "web/ab/c.sh"),
            ("{a,b}.sh", "web/b.sh"),
            ("app/[id]/a.js", "web/app/[id]/a.js"),
            ("a[b.sh", "web/a[b.sh"),
            ("~/a.sh", "a.sh"),
            ("~/a.sh", "x/y/a.sh"),
            ("~/../a.sh", "x/a.sh"),
            ("~/*.sh", "x/a.sh"),
            ("x/~.sh", "web/x/a.sh"),
            ("x/~.sh", "web/x/y/a.sh"),
            ("x/~/a.sh", "web/x/y/a.sh"),
            ("~-check.sh", "x/a-check.sh"),
            ("check-~.sh", "web/check-a.sh"),
        ] {
            assert!(stands_for(word, path), "{word} {path}");
        }
        for (word, path) in [
            ("*.sh", "a.sh"),
            ("*.sh", "web/x/a.sh"),
            ("~", "a.sh"),
            ("~/~", "x/a.sh"),
            ("~.sh", "a.sh"),
            ("~/.", "a"),
            ("/~/a.sh", "a.sh"),
            ("$x/a.sh", "web/x/a.sh"),
            ("x/~.sh", "web/a.sh"),
        ] {
            assert!(!stands_for(word, path), "{word} {path}");
        }
    }

    #[test]
    fn globs_are_looked_for_in_a_bounded_number() {
        struct Flat(Vec<String>);
        impl Tree for Flat {
            fn text(&self, _: &str, _: bool) -> Option<String> {
                None
            }
            fn paths(&self) -> &[String] {
                &self.0
            }
        }
        let paths = (10..99).map(|number| format!("d{number}/a{number}.sh"));
        let tree = Flat(paths.collect());
        let mut matches = Matches::default();
        assert_eq!(
            matches.files(&tree, true, "*/*.sh").len(),
            MOST_MATCHED_FILES
        );
        let directories = matches.directories(&tree, true, "d*");
        assert_eq!(directories.len(), MOST_MATCHED_DIRECTORIES);
        assert_eq!(directories[0], "d10");
        for number in 0..99 {
            matches.files(&tree, true, &format!("{number}*"));
        }
        assert_eq!(matches.files(&tree, true, "d11/*"), [""; 0]);
        assert_eq!(
            matches.files(&tree, true, "*/*.sh").len(),
            MOST_MATCHED_FILES
        );
        // What a check of a task uses up is none of what the gate has.
        assert_eq!(matches.files(&tree, false, "d11/*"), ["d11/a11.sh"]);
    }
}
