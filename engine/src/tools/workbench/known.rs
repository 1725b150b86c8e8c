//! Remembers which files the model knows, and as what.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, SystemTime};

use ropewalk_schemas::ContentHash;

/// So many files are remembered.
pub(super) const REMEMBERED: usize = 500;
/// A file whose time moved by more than this since it was read was written by somebody else, whatever it holds.
const TOLERANCE: Duration = Duration::from_secs(1);

/// Is a file at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileState {
    modified: SystemTime,
    content: ContentHash,
}

impl FileState {
    /// Describes a file that holds `content` and was written at the time `modified`.
    pub(super) fn of(modified: SystemTime, content: &[u8]) -> Self {
        Self {
            modified,
            content: ContentHash::of(content),
        }
    }

    /// Says that nobody wrote the file in between. Two writes may bear the same time, so the content counts beside it.
    pub(super) fn is_still(&self, now: &Self) -> bool {
        let (then, now_at) = (self.modified, now.modified);
        let moved = then
            .duration_since(now_at)
            .or_else(|_| now_at.duration_since(then))
            .unwrap_or_default();
        moved <= TOLERANCE && self.content == now.content
    }
}

/// Is what the model knows of files, the latest [`REMEMBERED`] of them.
#[derive(Debug, Default)]
pub(super) struct FileKnowledge {
    files: BTreeMap<String, FileState>,
    order: VecDeque<String>,
}

impl FileKnowledge {
    /// Returns a file as the model knows it.
    pub(super) fn of(&self, file: &str) -> Option<&FileState> {
        self.files.get(file)
    }

    /// Remembers that the model knows a file so.
    pub(super) fn remember(&mut self, file: &str, stand: FileState) {
        self.order.retain(|known| known != file);
        self.order.push_back(file.to_owned());
        self.files.insert(file.to_owned(), stand);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.files.remove(&oldest);
        }
    }

    /// Takes a file for unknown.
    pub(super) fn forget(&mut self, file: &str) {
        self.files.remove(file);
        self.order.retain(|known| known != file);
    }
}
