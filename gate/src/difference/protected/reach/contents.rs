//! Holds what was read of a commit to know what its checks reach, and says what has to be read next.
//!
//! What a file holds says which file is read next, so that they are read in rounds. All of it is bounded. A file that is not
//! read keeps its name: what a check runs is noted before its content is asked for.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use ropewalk_schemas::RepoPath;

/// So often files are read: those of the gate's own lines, what these run, and what they are made of.
const MOST_ROUNDS: usize = 4;
/// No more files are read for the gate, and for the task's own check.
const MOST_FILES: usize = 200;
/// None that is larger is read.
pub(in crate::difference) const MOST_BYTES: usize = 256 * 1024;

/// What there is to be known of a commit.
pub(in crate::difference) trait Tree {
    /// Returns what a file holds, for a command of the gate or not; none where that is not known, or the file is not there.
    fn text(&self, path: &str, by_gate: bool) -> Option<String>;

    /// Lists the paths of all files, in order; nothing where they are not known.
    fn paths(&self) -> &[String];
}

/// What a commit holds, as far as it was read.
#[derive(Debug, Default)]
pub(in crate::difference) struct Contents {
    read: BTreeMap<String, Option<String>>,
    /// What was asked for, and whether a command of the gate did.
    asked: RefCell<BTreeMap<String, bool>>,
    /// How many files were asked for by the task's own check, and by the gate.
    taken: [usize; 2],
    rounds: usize,
    paths: Option<Vec<String>>,
    asked_for_paths: Cell<bool>,
}

impl Tree for Contents {
    /// What was not read is remembered, to be read in the next round.
    fn text(&self, path: &str, by_gate: bool) -> Option<String> {
        if let Some(known) = self.read.get(path) {
            return known.clone();
        }
        let mut asked = self.asked.borrow_mut();
        *asked.entry(path.to_owned()).or_default() |= by_gate;
        None
    }

    fn paths(&self) -> &[String] {
        self.asked_for_paths.set(true);
        self.paths.as_deref().unwrap_or_default()
    }
}

impl Contents {
    /// Says whether the paths of all files were asked for, and are not known. They are read once, and only where a check runs
    /// what is not written out.
    pub(in crate::difference) fn lacks_paths(&self) -> bool {
        self.asked_for_paths.get() && self.paths.is_none()
    }

    /// Takes the paths of all files, in order.
    pub(in crate::difference) fn list(&mut self, paths: Vec<String>) {
        self.paths = Some(paths);
    }

    /// Lists what was asked for and is to be read now; nothing at the bounds.
    pub(in crate::difference) fn wanted(&mut self) -> Vec<RepoPath> {
        let asked = std::mem::take(self.asked.get_mut());
        if self.rounds == MOST_ROUNDS {
            return Vec::new();
        }
        self.rounds += 1;
        let mut wanted = Vec::new();
        for (path, by_gate) in asked {
            let taken = &mut self.taken[usize::from(by_gate)];
            if *taken == MOST_FILES {
                continue;
            }
            *taken += 1;
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
            assert_eq!(contents.text(path, false), None, "{path}");
        }
        let wanted = contents.wanted();
        wanted.iter().map(|path| path.as_str().to_owned()).collect()
    }

    #[test]
    fn what_is_asked_for_is_read_once() {
        let mut contents = Contents::default();
        assert_eq!(ask(&mut contents, &["b", "a", "a"]), ["a", "b"]);
        contents.add(&RepoPath::parse("a").unwrap(), b"text");
        assert_eq!(contents.text("a", false).as_deref(), Some("text"));
        assert_eq!(ask(&mut contents, &["b", "c"]), ["c"], "`b` is not there");
        assert_eq!(ask(&mut contents, &[]), [""; 0]);
    }

    #[test]
    fn the_paths_of_all_files_are_read_once_and_where_they_are_asked_for() {
        let mut contents = Contents::default();
        ask(&mut contents, &["a"]);
        assert!(!contents.lacks_paths());
        assert_eq!(contents.paths(), [""; 0]);
        assert!(contents.lacks_paths());
        contents.list(vec!["a".to_owned()]);
        assert!(!contents.lacks_paths());
        assert_eq!(contents.paths(), ["a"]);
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
        // What a check of a task uses up is none of what the gate has.
        assert_eq!(contents.text("more.sh", true), None);
        assert_eq!(contents.wanted().len(), 1);
    }
}
