//! Lets one after the other change a file, whichever agents of this process they serve.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The files that somebody is changing, and the news that one is free again.
static BUSY: (Mutex<BTreeSet<PathBuf>>, Condvar) = (Mutex::new(BTreeSet::new()), Condvar::new());

/// Is the right to change some files, until it is dropped.
#[derive(Debug)]
pub(in crate::tools) struct Turn {
    files: BTreeSet<PathBuf>,
}

impl Turn {
    /// Waits until nobody changes any of `files`, and takes them all at once, so that nobody waits in a cycle. It is not to
    /// be held over an await.
    pub(super) fn take(files: impl IntoIterator<Item = PathBuf>) -> Self {
        let files: BTreeSet<PathBuf> = files.into_iter().collect();
        let mut busy = BUSY
            .1
            .wait_while(held(), |busy| !busy.is_disjoint(&files))
            .unwrap_or_else(PoisonError::into_inner);
        busy.extend(files.iter().cloned());
        Self { files }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        held().retain(|file| !self.files.contains(file));
        BUSY.1.notify_all();
    }
}

fn held() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    BUSY.0.lock().unwrap_or_else(PoisonError::into_inner)
}
