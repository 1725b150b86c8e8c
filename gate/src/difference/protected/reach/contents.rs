//! Holds what was read of a commit to know what its checks reach, and says what has to be read next.
//!
//! What a file holds says which file is read next, so that they are read in rounds. All of it is bounded. A file that is not
//! read keeps its name: what a check runs is noted before its content is asked for.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use ropewalk_schemas::RepoPath;

/// So often files are read: those of the gate's own lines, what these run, and what they are made of.
const MOST_ROUNDS: usize = 4;
/// No more files are read.
const MOST_FILES: usize = 200;
/// None that is larger is read.
pub(in crate::difference) const MOST_BYTES: usize = 256 * 1024;

/// What a commit holds, as far as it was read.
#[derive(Debug, Default)]
pub(in crate::difference) struct Contents {
    read: BTreeMap<String, Option<String>>,
    asked: RefCell<BTreeSet<String>>,
    rounds: usize,
}

impl Contents {
    /// Returns what a file holds; none where it was not read, which is remembered, or is not there.
    pub(in crate::difference) fn text(&self, path: &str) -> Option<String> {
        if let Some(known) = self.read.get(path) {
            return known.clone();
        }
        self.asked.borrow_mut().insert(path.to_owned());
        None
    }

    /// Lists what was asked for and is to be read now; nothing at the bounds.
    pub(in crate::difference) fn wanted(&mut self) -> Vec<RepoPath> {
        let asked = std::mem::take(self.asked.get_mut());
        if self.rounds == MOST_ROUNDS {
            return Vec::new();
        }
        self.rounds += 1;
        let left = MOST_FILES.saturating_sub(self.read.len());
        let mut wanted = Vec::new();
        for path in asked.into_iter().take(left) {
            wanted.extend(RepoPath::parse(&path).ok());
            self.read.insert(path, None);
        }
        wanted
    }

    /// Adds what a file holds.
    pub(in crate::difference) fn add(&mut self, path: &RepoPath, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.read.insert(path.as_str().to_owned(), Some(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(contents: &mut Contents, paths: &[&str]) -> Vec<String> {
        for path in paths {
            assert_eq!(contents.text(path), None, "{path}");
        }
        let wanted = contents.wanted();
        wanted.iter().map(|path| path.as_str().to_owned()).collect()
    }

    #[test]
    fn what_is_asked_for_is_read_once() {
        let mut contents = Contents::default();
        assert_eq!(ask(&mut contents, &["b", "a", "a"]), ["a", "b"]);
        contents.add(&RepoPath::parse("a").unwrap(), b"text");
        assert_eq!(contents.text("a").as_deref(), Some("text"));
        assert_eq!(ask(&mut contents, &["b", "c"]), ["c"], "`b` is not there");
        assert_eq!(ask(&mut contents, &[]), [""; 0]);
    }

    #[test]
    fn rounds_and_files_are_bounded() {
        let mut contents = Contents::default();
        let rounds = (0..9).map(|round| ask(&mut contents, &[&format!("{round}.sh")]).len());
        assert_eq!(rounds.sum::<usize>(), MOST_ROUNDS);
        let mut contents = Contents::default();
        let paths: Vec<String> = (0..999).map(|number| format!("{number}.sh")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        assert_eq!(ask(&mut contents, &paths).len(), MOST_FILES);
        assert_eq!(ask(&mut contents, &["more.sh"]), [""; 0]);
    }
}
