//! Reads a private index: the names, blobs and file status that git wrote down when it made the tree.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

use gix_index::decode;
use gix_index::entry::stat::{self, Time};
use gix_index::entry::{Flags, Mode, Stage, Stat};
use gix_index::{Entry, State, hash::Kind};

/// What an index takes in memory is at most so many times its length; more is a broken one.
const MOST_GROWTH: usize = 16;
/// All of the status counts, as when git wrote it down, but the device, which may have another number after a start.
const WHOLE_STATUS: stat::Options = stat::Options {
    trust_ctime: true,
    check_stat: true,
    use_nsec: true,
    use_stdev: false,
};

/// What an index names, in the order of the names; a file is known by its place in it.
#[derive(Debug)]
pub(super) struct Index {
    state: State,
}

/// How a file compares with its entry.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Likeness {
    /// Nothing about it was touched.
    Same,
    /// Its content has to be compared.
    Unsure,
    /// Its length or its mode is another.
    Different,
    /// It is no file of the kind that the entry names.
    OtherKind,
}

impl Index {
    /// Reads the bytes of an index; `None` for what only git understands.
    pub(super) fn parse(bytes: &[u8], id_bytes: usize) -> Option<Self> {
        let kind = match id_bytes {
            20 => Kind::Sha1,
            32 => Kind::Sha256,
            _ => return None,
        };
        let options = decode::Options {
            thread_limit: Some(1),
            alloc_limit_bytes: Some(bytes.len().saturating_mul(MOST_GROWTH)),
            ..decode::Options::default()
        };
        let (state, _) = State::from_bytes(bytes, UNIX_EPOCH.into(), kind, options).ok()?;
        // An index in two files, extended flags, unmerged files and submodules are left to git.
        let plain = state.link().is_none() && state.entries().iter().all(is_plain);
        plain.then_some(Self { state })
    }

    /// Returns the place of a file.
    pub(super) fn find(&self, path: &[u8]) -> Option<usize> {
        self.state
            .entries()
            .binary_search_by(|entry| self.name(entry).cmp(path))
            .ok()
    }

    /// Says that something below the directory `path` is named; `path` ends with a slash.
    pub(super) fn has_below(&self, path: &[u8]) -> bool {
        let entries = self.state.entries();
        let place = entries.partition_point(|entry| self.name(entry) < path);
        entries
            .get(place)
            .is_some_and(|entry| self.name(entry).starts_with(path))
    }

    /// Returns how many files are named.
    pub(super) fn len(&self) -> usize {
        self.state.entries().len()
    }

    /// Returns the name of the file at `place`.
    pub(super) fn path(&self, place: usize) -> &[u8] {
        self.name(self.entry(place))
    }

    /// Returns the id of the blob of the file at `place`, in hexadecimal digits.
    pub(super) fn blob(&self, place: usize) -> String {
        self.entry(place).id.to_hex().to_string()
    }

    /// Says that the file at `place` is a symbolic link, whose content is no file to read.
    pub(super) fn is_link(&self, place: usize) -> bool {
        self.entry(place).mode == Mode::SYMLINK
    }

    /// Compares a file with the one at `place`; `hides_from` is when changes begin that may not show in the status.
    pub(super) fn compare(
        &self,
        place: usize,
        found: &Metadata,
        hides_from: Option<(i64, i64)>,
    ) -> Likeness {
        let entry = self.entry(place);
        let kind = found.file_type();
        let alike = match entry.mode {
            Mode::SYMLINK => kind.is_symlink(),
            _ => kind.is_file(),
        };
        if !alike {
            return Likeness::OtherKind;
        }
        let runs = found.mode() & 0o100 != 0;
        let now = status_of(found);
        if (kind.is_file() && runs != (entry.mode == Mode::FILE_EXECUTABLE))
            || (entry.stat.size != 0 && now.size != entry.stat.size)
        {
            return Likeness::Different;
        }
        let hidden = hides_from.is_some_and(|from| (found.mtime(), found.mtime_nsec()) >= from);
        if hidden || !entry.stat.matches(&now, WHOLE_STATUS) {
            return Likeness::Unsure;
        }
        Likeness::Same
    }

    fn entry(&self, place: usize) -> &Entry {
        &self.state.entries()[place]
    }

    fn name(&self, entry: &Entry) -> &[u8] {
        entry.path(&self.state)
    }
}

fn is_plain(entry: &Entry) -> bool {
    let extended = Flags::EXTENDED | Flags::INTENT_TO_ADD | Flags::SKIP_WORKTREE;
    !entry.flags.intersects(extended)
        && entry.stage() == Stage::Unconflicted
        && matches!(
            entry.mode,
            Mode::FILE | Mode::FILE_EXECUTABLE | Mode::SYMLINK
        )
}

fn status_of(found: &Metadata) -> Stat {
    let time = |seconds, nanoseconds| Time {
        secs: low(seconds),
        nsecs: low(nanoseconds),
    };
    Stat {
        mtime: time(found.mtime(), found.mtime_nsec()),
        ctime: time(found.ctime(), found.ctime_nsec()),
        dev: low(found.dev()),
        ino: low(found.ino()),
        uid: found.uid(),
        gid: found.gid(),
        size: low(found.size()),
    }
}

/// Git keeps the low half of every number.
fn low(number: impl TryInto<i128>) -> u32 {
    let number = number.try_into().unwrap_or_default();
    u32::try_from(number & 0xffff_ffff).unwrap_or_default()
}

/// Copies an index so that git doubts the same files as by the original: those that are as young as it is.
pub(crate) fn copy_with_its_time(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    let written = fs::metadata(from)?.modified()?;
    File::options().write(true).open(to)?.set_modified(written)
}
