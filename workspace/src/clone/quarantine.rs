//! Makes objects aside and puts them in place together, so that the disk is waited for once.
//!
//! Git waits for the disk in each command that makes objects, and a candidate takes three of them. In quarantine they
//! do not wait, since nothing in the repository can name what they make there. An object has its name in the
//! repository only when it is on the disk.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use tempfile::TempDir;

use crate::git::Call;
use crate::{GitError, LocalClone, stale};

/// How the directories begin; `git prune` knows what a crash has left by it.
const PREFIX: &str = "tmp_objdir-";
/// So many files are waited for at a time; a journal writes those that wait together in one go.
const THREADS: usize = 16;

/// The same clone, but what it makes lies aside until it is released; what is not released is gone.
#[derive(Debug)]
pub(crate) struct Quarantine {
    clone: LocalClone,
    directory: TempDir,
}

/// Where the calls of a clone in quarantine put their objects, and where they find the others.
#[derive(Debug, Clone)]
pub(super) struct Objects {
    made: Arc<Path>,
    there: Arc<OsStr>,
}

impl Quarantine {
    /// Makes an empty one beside the objects of `clone`.
    pub(crate) fn open(clone: &LocalClone) -> Result<Self, GitError> {
        let there = clone.directory().join("objects");
        let directory = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(&there)
            .map_err(GitError::files(&there))?;
        let objects = Objects {
            made: directory.path().into(),
            there: quoted(there.as_os_str()).into(),
        };
        let clone = LocalClone {
            inner: Arc::clone(&clone.inner),
            aside: Some(objects),
        };
        Ok(Self { clone, directory })
    }

    /// Returns the clone that makes its objects aside.
    pub(crate) const fn clone_handle(&self) -> &LocalClone {
        &self.clone
    }

    /// Puts what was made in its place; it is there for good then.
    pub(crate) async fn release(self) -> Result<(), GitError> {
        let objects = self.clone.directory().join("objects");
        let directory = self.directory;
        let place = directory.path().to_owned();
        let released = tokio::task::spawn_blocking(move || {
            let made = made(directory.path())?;
            sync(&made)?;
            put_in_place(directory.path(), &made, &objects)
        });
        let released = released.await;
        released
            .unwrap_or_else(|error| Err(io::Error::other(error)))
            .map_err(GitError::files(place))
    }
}

impl Objects {
    /// Lets `call` put its objects aside, without waiting for the disk.
    pub(super) fn for_call<'a>(&self, call: Call<'a>) -> Call<'a> {
        call.settings(&["core.fsync=none"])
            .variable("GIT_OBJECT_DIRECTORY", self.made.as_os_str())
            .variable("GIT_ALTERNATE_OBJECT_DIRECTORIES", &*self.there)
    }
}

/// Removes what crashes have left in `objects`, the directory of a repository.
pub(super) fn clear(objects: &Path) {
    let Ok(entries) = fs::read_dir(objects) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_name().as_bytes().starts_with(PREFIX.as_bytes()) {
            stale::clear_directory(&entry.path());
        }
    }
}

/// Quotes a path as git reads it in a list of paths.
fn quoted(path: &OsStr) -> OsString {
    let mut bytes = vec![b'"'];
    for byte in path.as_bytes() {
        match byte {
            b'\n' => bytes.extend_from_slice(b"\\n"),
            b'"' | b'\\' => bytes.extend_from_slice(&[b'\\', *byte]),
            _ => bytes.push(*byte),
        }
    }
    bytes.push(b'"');
    OsString::from_vec(bytes)
}

/// Lists the objects below `directory`.
fn made(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut made = Vec::new();
    for fan_out in fs::read_dir(directory)? {
        let fan_out = fan_out?;
        // Two digits of the id. Whatever else git may make one day, it must not be left behind unseen.
        if fan_out.file_name().len() != 2 {
            let name = fan_out.path();
            let reason = format!("`{}` holds no objects", name.display());
            return Err(io::Error::other(reason));
        }
        for object in fs::read_dir(fan_out.path())? {
            made.push(object?.path());
        }
    }
    Ok(made)
}

/// Waits until the files are on the disk.
fn sync(files: &[PathBuf]) -> io::Result<()> {
    let wait = |files: &[PathBuf]| {
        files
            .iter()
            .try_for_each(|file| File::open(file)?.sync_all())
    };
    let mut shares = files.chunks(files.len().div_ceil(THREADS).max(1));
    let own = shares.next().unwrap_or_default();
    thread::scope(|scope| {
        let others: Vec<_> = shares
            .map(|share| scope.spawn(move || wait(share)))
            .collect();
        wait(own)?;
        others.into_iter().try_for_each(|other| {
            let waited = other.join();
            waited.unwrap_or_else(|_| Err(io::Error::other("a thread broke off")))
        })
    })
}

/// Moves the objects from `directory` to the same names in `objects`.
///
/// As with git itself, the move is on the disk with whatever is synced next, the ref that names it at the latest.
fn put_in_place(directory: &Path, made: &[PathBuf], objects: &Path) -> io::Result<()> {
    for file in made {
        let name = file.strip_prefix(directory).map_err(io::Error::other)?;
        let place = objects.join(name);
        match fs::rename(file, &place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(place.parent().unwrap_or(objects))?;
                fs::rename(file, &place)?;
            }
            moved => moved?,
        }
    }
    Ok(())
}
