//! Reads a private index: the names, blobs and file status that git wrote down when it made the tree.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// The bytes before the object id of an entry.
const STATUS_BYTES: usize = 40;
/// The length of a name in its flags; a longer name says so.
const NAME_LENGTH: u16 = 0x0fff;
/// The merge stage in the flags of an entry.
const STAGE: u16 = 0x3000;

/// What an index names, in the order of the names.
#[derive(Debug)]
pub(super) struct Index {
    entries: Vec<Entry>,
}

/// A file of an index.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) path: Vec<u8>,
    /// The id of its blob, in hexadecimal digits.
    pub(super) blob: String,
    mode: u32,
    status: Status,
}

/// What tells one state of a file from the next without reading it, as git keeps it.
#[derive(Debug, PartialEq, Eq)]
struct Status {
    changed: (u32, u32),
    modified: (u32, u32),
    inode: u32,
    owner: (u32, u32),
    size: u32,
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
        let mut reader = Reader(bytes);
        let plain = reader.take(4)? == b"DIRC" && matches!(reader.number()?, 2 | 3);
        let count = reader.number()?;
        if !plain {
            return None;
        }
        let mut entries = Vec::with_capacity(usize::try_from(count).ok()?.min(bytes.len() / 62));
        for _ in 0..count {
            entries.push(reader.entry(id_bytes)?);
        }
        Some(Self { entries })
    }

    /// Returns the place of a file.
    pub(super) fn find(&self, path: &[u8]) -> Option<usize> {
        self.entries
            .binary_search_by(|entry| entry.path.as_slice().cmp(path))
            .ok()
    }

    /// Says that something below the directory `path` is named; `path` ends with a slash.
    pub(super) fn has_below(&self, path: &[u8]) -> bool {
        let place = self
            .entries
            .partition_point(|entry| entry.path.as_slice() < path);
        self.entries
            .get(place)
            .is_some_and(|entry| entry.path.starts_with(path))
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

impl Entry {
    /// Compares a file with the entry; `written` is when the index was written, after which a change may not show.
    pub(super) fn compare(&self, found: &Metadata, written: (i64, i64)) -> Likeness {
        let kind = found.file_type();
        let alike = match self.mode {
            0o100_644 | 0o100_755 => kind.is_file(),
            0o120_000 => kind.is_symlink(),
            _ => false,
        };
        if !alike {
            return Likeness::OtherKind;
        }
        let runs = found.mode() & 0o100 != 0;
        let size = low(found.size());
        if (kind.is_file() && runs != (self.mode == 0o100_755))
            || (self.status.size != 0 && size != self.status.size)
        {
            return Likeness::Different;
        }
        // A file as young as the index may have been changed after its status was read.
        let young = (found.mtime(), found.mtime_nsec()) >= written;
        if young || Status::of(found) != self.status {
            return Likeness::Unsure;
        }
        Likeness::Same
    }

    /// Says that the entry is a symbolic link, whose content is no file to read.
    pub(super) const fn is_link(&self) -> bool {
        self.mode == 0o120_000
    }
}

impl Status {
    fn of(found: &Metadata) -> Self {
        Self {
            changed: (low(found.ctime()), low(found.ctime_nsec())),
            modified: (low(found.mtime()), low(found.mtime_nsec())),
            inode: low(found.ino()),
            owner: (found.uid(), found.gid()),
            size: low(found.size()),
        }
    }
}

/// Git keeps the low half of every number.
fn low(number: impl TryInto<i128>) -> u32 {
    let number = number.try_into().unwrap_or_default();
    u32::try_from(number & 0xffff_ffff).unwrap_or_default()
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn pair(&mut self) -> Option<(u32, u32)> {
        Some((self.number()?, self.number()?))
    }

    fn entry(&mut self, id_bytes: usize) -> Option<Entry> {
        let (changed, modified) = (self.pair()?, self.pair()?);
        let (_device, inode) = self.pair()?;
        let mode = self.number()?;
        let owner = self.pair()?;
        let size = self.number()?;
        let id = self.take(id_bytes)?;
        let flags = u16::from_be_bytes(self.take(2)?.try_into().ok()?);
        // Extended flags, unmerged files and submodules are left to git.
        let plain = matches!(mode, 0o100_644 | 0o100_755 | 0o120_000);
        if flags & (STAGE | 0x4000) != 0 || !plain {
            return None;
        }
        let length = match flags & NAME_LENGTH {
            NAME_LENGTH => self.0.iter().position(|byte| *byte == 0)?,
            length => usize::from(length),
        };
        let path = self.take(length)?.to_vec();
        let used = STATUS_BYTES + id_bytes + 2 + length;
        self.take(8 - used % 8)?;
        let status = Status {
            changed,
            modified,
            inode,
            owner,
            size,
        };
        let blob = String::with_capacity(id_bytes * 2);
        let blob = id.iter().copied().fold(blob, digits);
        Some(Entry {
            path,
            blob,
            mode,
            status,
        })
    }
}

fn digits(mut text: String, byte: u8) -> String {
    for half in [byte >> 4, byte & 0xf] {
        text.push(char::from_digit(u32::from(half), 16).unwrap_or('0'));
    }
    text
}
