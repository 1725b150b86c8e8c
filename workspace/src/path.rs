//! Reads and writes files of a slot by repository path, and never leaves the slot.
//!
//! Every part of a path is opened from the directory before it and never through a link, so that a link that
//! is put in the way between a check and its use changes nothing.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fchmod, fstat, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use ropewalk_schemas::RepoPath;

/// So many links are followed to a file.
const MOST_LINKS: u32 = 40;
/// Makes the names of files that are still being written distinct.
static UNFINISHED: AtomicU64 = AtomicU64::new(0);

/// Says why a file of a slot cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// A part of the path is a link.
    #[error("`{0}` is or lies behind a symbolic link; name the file itself")]
    Link(String),
    /// A part of the path before the last is no directory.
    #[error("`{0}` is, or lies below, something that is no directory")]
    NotADirectory(String),
    /// The path names a directory.
    #[error("`{0}` is a directory; name a file in it")]
    IsADirectory(String),
    /// The path names a device, a pipe or a socket.
    #[error("`{0}` is no regular file")]
    Special(String),
    /// The file is longer than the caller wants to read.
    #[error("`{path}` has {size_bytes} bytes; at most {limit_bytes} are read")]
    TooLong {
        /// The file.
        path: String,
        /// Its size.
        size_bytes: u64,
        /// The bound.
        limit_bytes: u64,
    },
    /// The system refused.
    #[error("cannot use `{path}`: {source}")]
    Files {
        /// The file or directory.
        path: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

/// What an entry of a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link, which is shown and never followed.
    Link,
    /// A device, a pipe or a socket.
    Special,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its name in the directory.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// Its size.
    pub size_bytes: u64,
}

/// The files below the root of a slot; cheap to clone.
#[derive(Debug, Clone)]
pub struct SlotFiles {
    root: Arc<OwnedFd>,
    path: PathBuf,
}

impl SlotFiles {
    /// Opens the directory that all paths are relative to.
    pub fn open(root: &Path) -> Result<Self, PathError> {
        let name = root.display().to_string();
        let directory = open(root, directory_flags(), Mode::empty()).map_err(refused(&name))?;
        Ok(Self {
            root: Arc::new(directory),
            path: root.to_owned(),
        })
    }

    /// Returns the directory that all paths are relative to.
    pub fn root(&self) -> &Path {
        &self.path
    }

    /// Says what `path` is; `None` when there is nothing.
    pub fn kind(&self, path: &RepoPath) -> Result<Option<EntryKind>, PathError> {
        let Some((parent, name)) = self.parent(path, AbsencePolicy::Absent)? else {
            return Ok(None);
        };
        Ok(status(&parent, name, path)?.map(|status| kind_of(&status)))
    }

    /// Reads a regular file of at most `limit_bytes`; `None` when there is nothing of that name.
    pub fn read_file(
        &self,
        path: &RepoPath,
        limit_bytes: u64,
    ) -> Result<Option<Vec<u8>>, PathError> {
        let Some((parent, name)) = self.parent(path, AbsencePolicy::Absent)? else {
            return Ok(None);
        };
        let Some(found) = status(&parent, name, path)? else {
            return Ok(None);
        };
        regular(&found, path)?;
        // Not blocking, should a pipe have taken the place of the file by now.
        let flags = OFlag::O_RDONLY
            | OFlag::O_NOFOLLOW
            | OFlag::O_NONBLOCK
            | OFlag::O_NOCTTY
            | OFlag::O_CLOEXEC;
        let file = openat(&parent, name, flags, Mode::empty()).map_err(refused(path.as_str()))?;
        let opened = fstat(&file).map_err(refused(path.as_str()))?;
        regular(&opened, path)?;
        let too_long = |size_bytes| PathError::TooLong {
            path: path.to_string(),
            size_bytes,
            limit_bytes,
        };
        let size_bytes = size_of(&opened);
        if size_bytes > limit_bytes {
            return Err(too_long(size_bytes));
        }
        let mut content = Vec::new();
        File::from(file)
            .take(limit_bytes + 1)
            .read_to_end(&mut content)
            .map_err(|source| PathError::Files {
                path: path.to_string(),
                source,
            })?;
        if content.len() as u64 > limit_bytes {
            Err(too_long(content.len() as u64))
        } else {
            Ok(Some(content))
        }
    }

    /// Writes a whole file in one step, making the directories above it; its mode stays as it was.
    ///
    /// Whoever reads it meanwhile, and whoever finds it after a crash or a loss of power, has what it held before or all of
    /// `content`, never a part.
    pub fn write_file(&self, path: &RepoPath, content: &[u8]) -> Result<(), PathError> {
        let Some((parent, name)) = self.parent(path, AbsencePolicy::Make)? else {
            return Err(PathError::NotADirectory(path.to_string()));
        };
        let kept = match status(&parent, name, path)? {
            Some(found) => {
                regular(&found, path)?;
                Some(Mode::from_bits_truncate(found.st_mode & 0o777))
            }
            None => None,
        };
        let mode = kept.unwrap_or(Mode::from_bits_truncate(0o644));
        let number = UNFINISHED.fetch_add(1, Ordering::Relaxed);
        let unfinished = format!(".ropewalk-{}-{number}.tmp", std::process::id());
        let flags =
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file =
            openat(&parent, unfinished.as_str(), flags, mode).map_err(refused(path.as_str()))?;
        let written = fill(file, kept, content)
            .map_err(|source| PathError::Files {
                path: path.to_string(),
                source,
            })
            .and_then(|()| {
                ropewalk_runtime::failpoint!("workspace.write.between");
                renameat(&parent, unfinished.as_str(), &parent, name)
                    .map_err(refused(path.as_str()))
            });
        if written.is_err() {
            unlinkat(&parent, unfinished.as_str(), UnlinkatFlags::NoRemoveDir).ok();
        }
        written
    }

    /// Removes a file or a link; says whether there was one.
    pub fn remove_file(&self, path: &RepoPath) -> Result<bool, PathError> {
        let Some((parent, name)) = self.parent(path, AbsencePolicy::Absent)? else {
            return Ok(false);
        };
        let Some(found) = status(&parent, name, path)? else {
            return Ok(false);
        };
        if kind_of(&found) == EntryKind::Directory {
            return Err(PathError::IsADirectory(path.to_string()));
        }
        unlinkat(&parent, name, UnlinkatFlags::NoRemoveDir).map_err(refused(path.as_str()))?;
        Ok(true)
    }

    /// Removes a directory that holds nothing; says whether it did. One that holds something stays.
    pub fn remove_empty_directory(&self, path: &RepoPath) -> Result<bool, PathError> {
        let Some((parent, name)) = self.parent(path, AbsencePolicy::Absent)? else {
            return Ok(false);
        };
        match unlinkat(&parent, name, UnlinkatFlags::RemoveDir) {
            Ok(()) => Ok(true),
            Err(Errno::ENOENT | Errno::ENOTEMPTY | Errno::EEXIST) => Ok(false),
            Err(error) => Err(refused(path.as_str())(error)),
        }
    }

    /// Returns the file that `path` leads to by links, as far as they stay in the slot; none where it is or lies behind none.
    pub fn behind_links(&self, path: &RepoPath) -> Option<RepoPath> {
        let mut found = PathBuf::new();
        let mut left: Vec<PathBuf> = vec![path.as_str().into()];
        let mut links = 0;
        while let Some(next) = left.pop() {
            let mut parts = next.components();
            let Some(part) = parts.next() else {
                continue;
            };
            left.push(parts.as_path().to_owned());
            match part {
                Component::CurDir => {}
                Component::ParentDir if found.pop() => {}
                Component::Normal(name) => {
                    match std::fs::read_link(self.path.join(&found).join(name)) {
                        Ok(_) if links == MOST_LINKS => return None,
                        Ok(target) => {
                            links += 1;
                            left.push(target);
                        }
                        Err(_) => found.push(name),
                    }
                }
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        let found = RepoPath::parse(found.to_str()?).ok()?;
        (links > 0).then_some(found)
    }

    /// Lists a directory in name order, the root when no path is given; `None` when there is no such directory.
    pub fn list(&self, path: Option<&RepoPath>) -> Result<Option<Vec<Entry>>, PathError> {
        let parts = path.map(RepoPath::as_str).unwrap_or_default();
        let Some(directory) = self.directory(parts, AbsencePolicy::Absent)? else {
            return Ok(None);
        };
        let mut listing = Dir::openat(&directory, ".", directory_flags(), Mode::empty())
            .map_err(refused(parts))?;
        let mut entries = Vec::new();
        for found in listing.iter() {
            let found = found.map_err(refused(parts))?;
            let name = std::ffi::OsStr::from_bytes(found.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let Ok(status) = fstatat(&directory, name, AtFlags::AT_SYMLINK_NOFOLLOW) else {
                continue;
            };
            let name = name.to_string_lossy().into_owned();
            entries.push(Entry {
                name,
                kind: kind_of(&status),
                size_bytes: size_of(&status),
            });
        }
        entries.sort();
        Ok(Some(entries))
    }

    fn parent<'a>(
        &self,
        path: &'a RepoPath,
        missing: AbsencePolicy,
    ) -> Result<Option<(OwnedFd, &'a str)>, PathError> {
        let (parent, name) = path
            .as_str()
            .rsplit_once('/')
            .unwrap_or(("", path.as_str()));
        Ok(self
            .directory(parent, missing)?
            .map(|directory| (directory, name)))
    }

    fn directory(&self, path: &str, missing: AbsencePolicy) -> Result<Option<OwnedFd>, PathError> {
        let mut directory = self.root.try_clone().map_err(|source| PathError::Files {
            path: self.path.display().to_string(),
            source,
        })?;
        for part in path.split('/').filter(|part| !part.is_empty()) {
            if missing == AbsencePolicy::Make {
                match mkdirat(&directory, part, Mode::from_bits_truncate(0o755)) {
                    Ok(()) | Err(Errno::EEXIST) => {}
                    Err(error) => return Err(refused(path)(error)),
                }
            }
            directory = match openat(&directory, part, directory_flags(), Mode::empty()) {
                Ok(next) => next,
                Err(Errno::ENOENT) => return Ok(None),
                // Linux answers either for a link that must not be followed.
                Err(Errno::ENOTDIR | Errno::ELOOP) => {
                    let status = fstatat(&directory, part, AtFlags::AT_SYMLINK_NOFOLLOW);
                    let link = status.is_ok_and(|status| kind_of(&status) == EntryKind::Link);
                    let path = path.to_owned();
                    return Err(if link {
                        PathError::Link(path)
                    } else {
                        PathError::NotADirectory(path)
                    });
                }
                Err(error) => return Err(refused(path)(error)),
            };
        }
        Ok(Some(directory))
    }
}

/// What to do about a directory that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AbsencePolicy {
    Absent,
    Make,
}

/// Writes a new file down to the disk, so that its name never stands for less than all of it.
fn fill(file: OwnedFd, mode: Option<Mode>, content: &[u8]) -> std::io::Result<()> {
    if let Some(mode) = mode {
        // What it was made with is less what this process withholds from new files.
        fchmod(&file, mode)?;
    }
    let mut file = File::from(file);
    file.write_all(content)?;
    file.sync_data()
}

fn directory_flags() -> OFlag {
    OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC
}

fn status(parent: impl AsFd, name: &str, path: &RepoPath) -> Result<Option<FileStat>, PathError> {
    match fstatat(parent, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(status) => Ok(Some(status)),
        Err(Errno::ENOENT) => Ok(None),
        Err(error) => Err(refused(path.as_str())(error)),
    }
}

fn regular(status: &FileStat, path: &RepoPath) -> Result<(), PathError> {
    match kind_of(status) {
        EntryKind::File => Ok(()),
        EntryKind::Link => Err(PathError::Link(path.to_string())),
        EntryKind::Directory => Err(PathError::IsADirectory(path.to_string())),
        EntryKind::Special => Err(PathError::Special(path.to_string())),
    }
}

fn kind_of(status: &FileStat) -> EntryKind {
    match SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT {
        SFlag::S_IFREG => EntryKind::File,
        SFlag::S_IFDIR => EntryKind::Directory,
        SFlag::S_IFLNK => EntryKind::Link,
        _ => EntryKind::Special,
    }
}

fn size_of(status: &FileStat) -> u64 {
    u64::try_from(status.st_size).unwrap_or_default()
}

fn refused(path: &str) -> impl FnOnce(Errno) -> PathError {
    let path = path.to_owned();
    move |error| PathError::Files {
        path,
        source: error.into(),
    }
}
