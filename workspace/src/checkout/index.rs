//! Reads a private index: the names, blobs and file status that git wrote down when it made the tree.

use std::fs::Metadata;
use std::ops::Range;
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
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

/// A file of an index.
#[derive(Debug)]
pub(super) struct Entry {
    /// Where its name lies in the index.
    path: Range<usize>,
    /// Where the id of its blob lies in the index.
    blob: Range<usize>,
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
    pub(super) fn parse(bytes: Vec<u8>, id_bytes: usize) -> Option<Self> {
        let mut reader = Reader {
            bytes: &bytes,
            at: 0,
        };
        let plain = reader.take(4)? == b"DIRC" && matches!(reader.number()?, 2 | 3);
        let count = reader.number()?;
        if !plain {
            return None;
        }
        let mut entries = Vec::with_capacity(usize::try_from(count).ok()?.min(bytes.len() / 62));
        for _ in 0..count {
            entries.push(reader.entry(id_bytes)?);
        }
        Some(Self { bytes, entries })
    }

    /// Returns the place of a file.
    pub(super) fn find(&self, path: &[u8]) -> Option<usize> {
        self.entries
            .binary_search_by(|entry| self.path(entry).cmp(path))
            .ok()
    }

    /// Says that something below the directory `path` is named; `path` ends with a slash.
    pub(super) fn has_below(&self, path: &[u8]) -> bool {
        let place = self
            .entries
            .partition_point(|entry| self.path(entry) < path);
        self.entries
            .get(place)
            .is_some_and(|entry| self.path(entry).starts_with(path))
    }

    /// Returns the name of an entry.
    pub(super) fn path(&self, entry: &Entry) -> &[u8] {
        &self.bytes[entry.path.clone()]
    }

    /// Returns the id of the blob of an entry, in hexadecimal digits.
    pub(super) fn blob(&self, entry: &Entry) -> String {
        hex::encode(&self.bytes[entry.blob.clone()])
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

impl Entry {
    /// Compares a file with the entry; `hides_from` is when changes begin that may not show in the status.
    pub(super) fn compare(&self, found: &Metadata, hides_from: Option<(i64, i64)>) -> Likeness {
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
        let hidden = hides_from.is_some_and(|from| (found.mtime(), found.mtime_nsec()) >= from);
        if hidden || Status::of(found) != self.status {
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

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let range = self.skip(length)?;
        self.bytes.get(range)
    }

    /// Goes `length` bytes on and says where they lie.
    fn skip(&mut self, length: usize) -> Option<Range<usize>> {
        let range = self.at..self.at.checked_add(length)?;
        self.bytes.get(range.clone())?;
        self.at = range.end;
        Some(range)
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
        let blob = self.skip(id_bytes)?;
        let flags = u16::from_be_bytes(self.take(2)?.try_into().ok()?);
        // Extended flags, unmerged files and submodules are left to git.
        let plain = matches!(mode, 0o100_644 | 0o100_755 | 0o120_000);
        if flags & (STAGE | 0x4000) != 0 || !plain {
            return None;
        }
        let length = match flags & NAME_LENGTH {
            NAME_LENGTH => self.bytes[self.at..].iter().position(|byte| *byte == 0)?,
            length => usize::from(length),
        };
        let path = self.skip(length)?;
        let used = STATUS_BYTES + id_bytes + 2 + length;
        self.take(8 - used % 8)?;
        let status = Status {
            changed,
            modified,
            inode,
            owner,
            size,
        };
        Some(Entry {
            path,
            blob,
            mode,
            status,
        })
    }
}
