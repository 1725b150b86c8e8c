//! Folders in which something is made beside its place, to come there by renaming.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use tempfile::TempDir;

/// A folder that is held while it is used, and removed when dropped; what a killed process left of one is removed by the
/// next that is made beside the same place.
pub(super) struct StagingFolder {
    folder: TempDir,
    /// Locked, so that nobody takes it for left.
    _held: File,
}

impl StagingFolder {
    /// Makes a folder beside `place`, on the same disk.
    pub(super) fn beside(place: &Path) -> io::Result<Self> {
        let above = place.parent().unwrap_or(Path::new("/"));
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let prefix = format!(".{name}.importing-");
        remove_left(above, &prefix)?;
        loop {
            let folder = TempDir::with_prefix_in(&prefix, above)?;
            let held = File::open(folder.path())?;
            held.lock()?;
            // Whoever looked before it was locked took it for left.
            if folder.path().exists() {
                return Ok(Self {
                    folder,
                    _held: held,
                });
            }
        }
    }

    /// Returns where it is.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders whose names begin with `prefix` and that nobody holds.
fn remove_left(above: &Path, prefix: &str) -> io::Result<()> {
    for entry in fs::read_dir(above)? {
        let entry = entry?;
        let is_one = entry.file_name().to_string_lossy().starts_with(prefix);
        if !is_one || !entry.file_type()?.is_dir() {
            continue;
        }
        let Ok(folder) = File::open(entry.path()) else {
            continue;
        };
        if folder.try_lock().is_ok() {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_goes_and_what_is_held_or_something_else_stays() {
        let above = tempfile::tempdir().unwrap();
        let place = above.path().join("habits");
        let held = StagingFolder::beside(&place).unwrap();
        let left = above.path().join(".habits.importing-left");
        let other = above.path().join(".rabbits.importing-left");
        for folder in [&left, &other] {
            fs::create_dir_all(folder.join("inner")).unwrap();
        }
        let next = StagingFolder::beside(&place).unwrap();
        assert!(!left.exists());
        assert!(held.path().is_dir() && other.is_dir() && next.path().is_dir());
    }
}
