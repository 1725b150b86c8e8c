//! Holds how checks depend on files: by their paths, or by globs where what is run is not written out.

use std::collections::BTreeMap;

use ropewalk_schemas::GlobPattern;

use super::globs::{is_glob, is_known, is_literal, pattern};

/// So many globs of the gate's commands count, and so many of the task's own check.
const MOST_USED_GLOBS: usize = 200;

/// How a check depends on a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// The check.
    pub check: String,
    /// Whether it runs the file, and does not just name it.
    pub runs: bool,
    /// Whether a command of the gate does so, and not just the task's own check.
    pub by_gate: bool,
    /// Whether the file is what a command of the gate itself runs, so that it says how the check ends.
    pub decides: bool,
}

impl Use {
    fn join(&mut self, other: &Self) {
        if (other.runs && !self.runs) || (other.decides && !self.decides) {
            other.check.clone_into(&mut self.check);
        }
        self.runs |= other.runs;
        self.by_gate |= other.by_gate;
        self.decides |= other.decides;
    }
}

/// How checks depend on files.
#[derive(Debug, Clone, Default)]
pub(super) struct Uses {
    files: BTreeMap<String, Use>,
    /// What is run and not written out, by what is known of it.
    globs: BTreeMap<String, (GlobPattern, Use)>,
}

impl Uses {
    /// Returns how the checks depend on a file most.
    pub(super) fn of(&self, path: &str) -> Option<&Use> {
        let weight = |used: &Use| (used.decides, used.by_gate, used.runs);
        let mut most = self.named(path);
        for (glob, used) in self.globs.values() {
            // A glob is only asked where that could say more.
            if most.is_none_or(|most| weight(used) > weight(most)) && glob.matches(path) {
                most = Some(used);
            }
        }
        most
    }

    /// Returns how the checks depend on a file by its path.
    pub(super) fn named(&self, path: &str) -> Option<&Use> {
        self.files.get(path)
    }

    /// Adds how a check depends on a file. What a glob stands for counts where it is run, and decides nothing where that is not
    /// all written.
    pub(super) fn add(&mut self, path: String, mut used: Use) {
        used.decides &= is_known(&path);
        if used.runs && is_glob(&path) {
            self.add_glob(&path, &used);
        }
        if is_literal(&path) {
            let known = self.files.entry(path).or_insert_with(|| used.clone());
            known.join(&used);
        }
    }

    fn add_glob(&mut self, path: &str, used: &Use) {
        if let Some((_, known)) = self.globs.get_mut(path) {
            known.join(used);
            return;
        }
        let others = self.globs.values();
        let others = others.filter(|(_, other)| other.by_gate == used.by_gate);
        if others.count() < MOST_USED_GLOBS
            && let Some(glob) = pattern(path)
        {
            self.globs.insert(path.to_owned(), (glob, used.clone()));
        }
    }
}
