//! Keeps the data of large events in files beside a database file, each named by its hash.
//!
//! A file is there, on the disk, before the transaction that refers to it; one that no event refers to, because that
//! transaction failed or its event was forgotten, is removed later.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ropewalk_schemas::ContentHash;

/// How old a file must be before it can be removed: the transaction that refers to a younger one may still come.
const GRACE: Duration = Duration::from_hours(1);

/// A directory of blobs.
#[derive(Debug, Clone)]
pub(crate) struct BlobFiles {
    directory: PathBuf,
}

impl BlobFiles {
    /// Names the directory of blobs beside the database file at `database`.
    pub(crate) fn beside(database: &Path) -> Self {
        let parent = database.parent().unwrap_or(Path::new("."));
        Self {
            directory: parent.join("blobs"),
        }
    }

    /// Returns the file of a blob.
    pub(crate) fn path(&self, hash: &ContentHash) -> PathBuf {
        self.directory.join(hash.as_str())
    }

    /// Writes a blob through to the disk; one that is there already is young again.
    pub(crate) fn keep(&self, hash: &ContentHash, text: &str, now: SystemTime) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        let _guard = self.guard()?;
        let path = self.path(hash);
        if let Ok(file) = File::options().append(true).open(&path) {
            return file.set_modified(now);
        }
        // Written under another name first: a blob that is there is whole.
        let partial = self.directory.join(".partial");
        let mut file = File::create(&partial)?;
        file.write_all(text.as_bytes())?;
        file.set_modified(now)?;
        file.sync_all()?;
        fs::rename(&partial, &path)?;
        File::open(&self.directory)?.sync_all()
    }

    /// Reads a blob; an error when it is gone or is not what it was.
    pub(crate) fn read(&self, hash: &ContentHash) -> io::Result<String> {
        let text = fs::read_to_string(self.path(hash))?;
        if ContentHash::of(text.as_bytes()) == *hash {
            Ok(text)
        } else {
            Err(io::Error::other("its content is not what its name says"))
        }
    }

    /// Lists the blobs that are old enough to be removed.
    pub(crate) fn old(&self, now: SystemTime) -> io::Result<Vec<ContentHash>> {
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(problem) => return Err(problem),
        };
        let mut found = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            if let Ok(hash) = ContentHash::parse(&name.to_string_lossy())
                && is_old(&self.path(&hash), now)
            {
                found.push(hash);
            }
        }
        Ok(found)
    }

    /// Removes those of `unused` that are still old, and returns how many.
    pub(crate) fn remove(&self, unused: &[ContentHash], now: SystemTime) -> io::Result<u64> {
        if unused.is_empty() {
            return Ok(0);
        }
        let _guard = self.guard()?;
        let mut removed = 0;
        for path in unused.iter().map(|hash| self.path(hash)) {
            // Kept again in the meantime, it is young.
            if is_old(&path, now) {
                fs::remove_file(path)?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Keeps other writers and removers away, those of other processes too, until it is dropped.
    fn guard(&self) -> io::Result<File> {
        let guard = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.directory.join(".guard"))?;
        guard.lock()?;
        Ok(guard)
    }
}

fn is_old(path: &Path, now: SystemTime) -> bool {
    let modified = fs::metadata(path).and_then(|file| file.modified());
    modified.is_ok_and(|at| now.duration_since(at).is_ok_and(|age| age >= GRACE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_old_blob_is_removed_and_one_that_is_kept_again_is_young() {
        let state = tempfile::tempdir().unwrap();
        let blobs = BlobFiles::beside(&state.path().join("ropewalk.db"));
        let begun = SystemTime::UNIX_EPOCH + GRACE;
        let [one, other] = ["one", "other"].map(|text| {
            let hash = ContentHash::of(text.as_bytes());
            blobs.keep(&hash, text, begun).unwrap();
            hash
        });
        assert_eq!(blobs.old(begun).unwrap(), []);
        let later = begun + GRACE;
        let old = blobs.old(later).unwrap();
        assert_eq!(old.len(), 2);
        blobs.keep(&one, "one", later).unwrap();
        assert_eq!(blobs.remove(&old, later).unwrap(), 1);
        assert_eq!(blobs.read(&one).unwrap(), "one");
        assert!(!blobs.path(&other).exists());
    }

    #[test]
    fn a_changed_blob_is_not_read_as_what_it_was() {
        let state = tempfile::tempdir().unwrap();
        let blobs = BlobFiles::beside(&state.path().join("ropewalk.db"));
        let hash = ContentHash::of(b"text");
        blobs.keep(&hash, "text", SystemTime::UNIX_EPOCH).unwrap();
        fs::write(blobs.path(&hash), "test").unwrap();
        assert!(blobs.read(&hash).is_err());
    }
}
