//! Clears what a killed git left behind in places that are ours alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Git holds the lock of a ref for milliseconds; one this old belongs to a process that is gone.
const STALE_AFTER: Duration = Duration::from_secs(10);

/// A command on many files may take minutes.
const ABANDONED_AFTER: Duration = Duration::from_hours(1);

/// Removes the lock file `path`, if it is there and has long been.
pub(crate) fn clear(path: &Path) {
    if age(path).is_some_and(|age| age >= STALE_AFTER) {
        match fs::remove_file(path) {
            Ok(()) => tracing::warn!("cleared `{}`, which a killed git left", path.display()),
            Err(error) => tracing::warn!("cannot clear `{}`: {error}", path.display()),
        }
    }
}

/// Removes the directory `path`, if it was not touched for longer than any command may take.
pub(crate) fn clear_directory(path: &Path) {
    if age(path).is_some_and(|age| age >= ABANDONED_AFTER) {
        match fs::remove_dir_all(path) {
            Ok(()) => tracing::warn!("cleared `{}`, which a crash left", path.display()),
            Err(error) => tracing::warn!("cannot clear `{}`: {error}", path.display()),
        }
    }
}

/// Clears every stale lock file below `directory`.
pub(crate) fn clear_below(directory: &Path) {
    let mut open: Vec<PathBuf> = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "lock")
            {
                clear(&path);
            }
        }
    }
}

fn age(path: &Path) -> Option<Duration> {
    let modified = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    modified.ok()?.elapsed().ok()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn only_old_locks_are_cleared() {
        let directory = tempfile::tempdir().unwrap();
        let nested = directory.path().join("heads/build");
        fs::create_dir_all(&nested).unwrap();
        let (old, new, other) = (
            nested.join("old.lock"),
            nested.join("new.lock"),
            nested.join("old"),
        );
        for path in [&old, &new, &other] {
            File::create(path).unwrap();
        }
        for path in [&old, &other] {
            let file = File::options().write(true).open(path).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
        clear_below(directory.path());
        assert!(!old.exists() && new.exists() && other.exists());
    }
}
