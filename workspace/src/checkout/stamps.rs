//! Finds out how finely a file system tells one change of a file from the next.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How the change time of files moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stamps {
    /// A change after the status was read always shows in the status, as on Linux from 6.13 on.
    EachChange,
    /// All changes within one tick of the clock have the same time.
    Ticks,
}

impl Stamps {
    /// So many changes in a row, far quicker than any tick, must all show.
    const CHANGES: usize = 8;

    /// Tries it out in `directory`; what cannot be tried out is taken for coarse.
    pub(super) fn probe(directory: &Path) -> Self {
        match all_changes_show(directory) {
            Ok(true) => Self::EachChange,
            Ok(false) | Err(_) => Self::Ticks,
        }
    }
}

fn all_changes_show(directory: &Path) -> std::io::Result<bool> {
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    let mut before = (i64::MIN, 0);
    for _ in 0..Stamps::CHANGES {
        file.write_all(b"x")?;
        let status = file.as_file().metadata()?;
        let now = (status.ctime(), status.ctime_nsec());
        if now <= before {
            return Ok(false);
        }
        before = now;
    }
    Ok(true)
}
