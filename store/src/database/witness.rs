//! Knows, outside of a database file, how far it had come, and whether it still lies where it was opened.
//!
//! A file that was swapped for an older one, or that was taken away, looks sound by itself.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// So many digits hold any sequence.
const DIGITS: usize = 20;

/// Watches over a database file while this process writes it.
#[derive(Debug)]
pub(crate) struct Witness {
    path: PathBuf,
    /// What the file was when it was opened.
    identity: Option<(u64, u64)>,
    mark: Option<File>,
}

impl Witness {
    /// Begins to watch over the database at `path`, which is there.
    pub(crate) fn of(path: &Path) -> Self {
        let mut options = File::options();
        let options = options.create(true).truncate(false).write(true);
        Self {
            path: path.to_owned(),
            identity: identity(path),
            // Without it everything works, and only less is noticed.
            mark: options.open(mark_of(path)).ok(),
        }
    }

    /// Returns whether the file still lies where it was opened.
    pub(crate) fn is_in_place(&self) -> bool {
        identity(&self.path) == self.identity
    }

    /// Returns where the file lay.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Notes that the events up to `sequence` are committed.
    ///
    /// Never ahead of the database, which is on the disk before; what a crash takes of this is a step, and no lie.
    pub(crate) fn note(&self, sequence: i64) {
        if let Some(mark) = &self.mark {
            let line = format!("{sequence:0DIGITS$}\n");
            mark.write_all_at(line.as_bytes(), 0).unwrap_or_default();
        }
    }
}

/// Returns the last event that the database at `path` is known to have had.
pub(crate) fn seen(path: &Path) -> i64 {
    let noted = std::fs::read_to_string(mark_of(path)).unwrap_or_default();
    noted.trim().parse().unwrap_or_default()
}

/// Returns the file beside the database that says how far it had come.
pub(crate) fn mark_of(path: &Path) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(".seen");
    name.into()
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let file = std::fs::metadata(path).ok()?;
    Some((file.dev(), file.ino()))
}
