//! Removes everything from a tree that its index does not name.
//!
//! `git clean` is not enough: it does not see FIFOs and sockets, takes the content of a nested repository for
//! somebody else's, and a directory that was swapped for a link to its twin passes for unchanged.

use std::fs::{self, FileType};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{Paths, ancestors};

/// What an index names.
#[derive(Debug, Default)]
pub(super) struct TrackedPaths {
    files: Paths,
    directories: Paths,
    submodules: Paths,
}

impl TrackedPaths {
    /// Reads the answer of `ls-files -z --stage`.
    pub(super) fn parse(listing: &[u8]) -> Option<Self> {
        let mut tracked = Self::default();
        for entry in listing
            .split(|byte| *byte == 0)
            .filter(|entry| !entry.is_empty())
        {
            let tab = entry.iter().position(|byte| *byte == b'\t')?;
            let path = entry[tab + 1..].to_vec();
            for ancestor in ancestors(&path) {
                if !tracked.directories.contains(ancestor) {
                    tracked.directories.insert(ancestor.to_vec());
                }
            }
            let paths = if entry.starts_with(b"160000") {
                &mut tracked.submodules
            } else {
                &mut tracked.files
            };
            paths.insert(path);
        }
        Some(tracked)
    }

    fn keeps(&self, path: &[u8], kind: FileType) -> bool {
        if kind.is_dir() {
            self.directories.contains(path) || self.submodules.contains(path)
        } else {
            (kind.is_file() || kind.is_symlink()) && self.files.contains(path)
        }
    }
}

/// Removes what `tracked` does not name and what is of another kind than it says.
pub(super) fn sweep(tree: &Path, tracked: &TrackedPaths) -> io::Result<()> {
    sweep_directory(tree, &[], tracked)
}

fn sweep_directory(directory: &Path, prefix: &[u8], tracked: &TrackedPaths) -> io::Result<()> {
    for entry in read_directory(directory)? {
        let entry = entry?;
        let name = entry.file_name().into_vec();
        let path = if prefix.is_empty() {
            name
        } else {
            [prefix, b"/", &name].concat()
        };
        let kind = entry.file_type()?;
        if !tracked.keeps(&path, kind) {
            remove_tree(&entry.path())?;
        } else if kind.is_dir() {
            sweep_directory(&entry.path(), &path, tracked)?;
        }
    }
    Ok(())
}

/// Removes a file, a link or a whole directory that need not be there, also one that a command closed to its owner; links
/// are never followed.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let kind = match path.symlink_metadata() {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !kind.is_dir() {
        return fs::remove_file(path);
    }
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            make_writable(path)?;
            fs::remove_dir_all(path)
        }
        other => other,
    }
}

fn read_directory(directory: &Path) -> io::Result<fs::ReadDir> {
    match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_to_owner(directory)?;
            fs::read_dir(directory)
        }
        other => other,
    }
}

/// Gives the owner back what a program took away, so that the directories can be emptied.
fn make_writable(directory: &Path) -> io::Result<()> {
    open_to_owner(directory)?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            make_writable(&entry.path())?;
        }
    }
    Ok(())
}

fn open_to_owner(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use nix::unistd::{Uid, setfsuid};

    use super::*;

    /// An id that owns nothing.
    const NOBODY: u32 = 65_534;

    /// Root comes in anyway. What this thread does with files is done by somebody else then, and by whoever runs the test otherwise.
    #[test]
    fn a_directory_that_was_closed_to_its_owner_is_removed() {
        let base = tempfile::tempdir().unwrap();
        fs::set_permissions(base.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let [closed, open] = ["closed", "open"].map(|name| base.path().join(name));
        let not_there = base.path().join("not there");
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                if Uid::effective().is_root() {
                    setfsuid(Uid::from_raw(NOBODY));
                }
                for directory in [closed.join("debug/deps"), open.clone()] {
                    fs::create_dir_all(&directory).unwrap();
                    fs::write(directory.join("file"), "").unwrap();
                }
                for inner in ["debug/deps", "debug"] {
                    let none = fs::Permissions::from_mode(0o0);
                    fs::set_permissions(closed.join(inner), none).unwrap();
                }
                let refused = fs::remove_dir_all(&closed).unwrap_err();
                assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
                remove_tree(&closed).unwrap();
                remove_tree(&not_there).unwrap();
            });
            other.join().unwrap();
        });
        assert!(!closed.exists() && open.exists());
    }
}
