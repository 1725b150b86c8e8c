//! Notes on disk what a process has in hand, so that the next one knows what it died of.
//!
//! A note is one unsynced write to a file: it outlives the process, not the machine, and a machine that stops is nobody's
//! fault. Which notes count, and what follows, is for the reader to decide; a note may be out of date where the reader
//! can see in the store that its work was done.
//!
//! Code far below whoever holds something says how far it came by [`reached`] and [`advanced`], and lays it aside while
//! it waits for others by [`aside`]. Without a [`Mark`] around it, that does nothing.

use std::fs::{self, File};
use std::future::Future;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tracing::warn;

/// The room of one note; the first holds the header.
const SLOT_BYTES: usize = 256;
/// The most notes at once; what comes beyond is not noted.
const SLOTS: usize = 512;
/// How the header of a process that was not asked to stop begins.
const RUNNING: &str = "running";
/// How that of one begins that was.
const STOPPING: &str = "stopping";

/// What a process had in hand when it ended without having been asked to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkItem {
    /// Names it.
    pub entity: String,
    /// How far it had come.
    pub step: u32,
}

/// The notes of this process; by default they are not kept. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct InHand(Option<Arc<Notes>>);

#[derive(Debug)]
struct Notes {
    file: File,
    free: Mutex<Vec<usize>>,
    complained: AtomicBool,
}

impl InHand {
    /// Opens the notes at `path`; returns what the process before had in hand, if it died.
    ///
    /// What that one noted stays until [`InHand::begin`].
    pub fn open(path: &Path) -> io::Result<(Self, Vec<WorkItem>)> {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        let left = match fs::read(path) {
            Ok(bytes) => left(&bytes, &header(RUNNING)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)?;
        let notes = Notes {
            file,
            free: Mutex::new((1..SLOTS).rev().collect()),
            complained: AtomicBool::new(false),
        };
        Ok((Self(Some(Arc::new(notes))), left))
    }

    /// Forgets what the process before noted; from here on a death of this one tells what it had in hand.
    pub fn begin(&self) {
        let Some(notes) = &self.0 else {
            return;
        };
        // The whole file at once, so that no later note asks a full disk for room.
        let mut blank = vec![0; SLOTS * SLOT_BYTES];
        let header = header(RUNNING);
        blank[..header.len()].copy_from_slice(header.as_bytes());
        notes.write(0, &blank);
    }

    /// Notes that this process was asked to stop: whatever ends it from now on is no death.
    pub fn stop(&self) {
        if let Some(notes) = &self.0 {
            notes.write(0, &slot(&header(STOPPING)));
        }
    }

    /// Takes `entity` in hand, which has come to `step`.
    pub fn hold(&self, entity: impl Into<String>, step: u32) -> Mark {
        let number = self.0.as_ref().and_then(|notes| notes.free().pop());
        let mark = Mark(Arc::new(Inner {
            notes: self.0.clone(),
            number,
            entity: entity.into(),
            step: AtomicU32::new(step),
        }));
        mark.0.note();
        mark
    }
}

impl Notes {
    fn free(&self) -> std::sync::MutexGuard<'_, Vec<usize>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Work is not refused because it cannot be noted; a death is only not counted then.
    fn write(&self, number: usize, bytes: &[u8]) {
        let at = u64::try_from(number * SLOT_BYTES).unwrap_or_default();
        if let Err(error) = self.file.write_all_at(bytes, at)
            && !self.complained.swap(true, Ordering::Relaxed)
        {
            warn!("what is in hand cannot be noted, so a death would not be counted: {error}");
        }
    }
}

/// Something that is in hand until this is dropped.
#[derive(Debug)]
pub struct Mark(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    notes: Option<Arc<Notes>>,
    number: Option<usize>,
    entity: String,
    step: AtomicU32,
}

tokio::task_local! {
    static CURRENT: Arc<Inner>;
}

impl Mark {
    /// Runs `work`, which may say how far it came.
    pub async fn around<T>(&self, work: impl Future<Output = T>) -> T {
        CURRENT.scope(Arc::clone(&self.0), work).await
    }

    /// Gives it out of hand without a word, where the store shows that it is done.
    pub fn done(self) {
        self.0.free();
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        if self.0.is_free() {
            return;
        }
        self.0.erase();
        self.0.free();
    }
}

impl Inner {
    fn note(&self) {
        let text = format!("{} {}", self.step.load(Ordering::Relaxed), self.entity);
        if let (Some(notes), Some(number)) = (&self.notes, self.number)
            && text.len() <= SLOT_BYTES
            && !self.is_free()
        {
            notes.write(number, &slot(&text));
        }
    }

    fn erase(&self) {
        if let (Some(notes), Some(number)) = (&self.notes, self.number) {
            notes.write(number, &[0]);
        }
    }

    /// Whoever held it gave it away, and the slot may be another's.
    fn is_free(&self) -> bool {
        self.step.load(Ordering::Relaxed) == u32::MAX
    }

    fn free(&self) {
        self.step.store(u32::MAX, Ordering::Relaxed);
        if let (Some(notes), Some(number)) = (&self.notes, self.number) {
            notes.free().push(number);
        }
    }
}

/// Returns how far what is in hand has come.
pub fn step() -> Option<u32> {
    CURRENT
        .try_with(|inner| inner.step.load(Ordering::Relaxed))
        .ok()
}

/// Notes that what is in hand came to `step`, unless it was further already.
pub fn reached(step: u32) {
    change(|before| before.max(step));
}

/// Notes that what is in hand came one step further.
pub fn advanced() {
    change(|before| before.saturating_add(1));
}

fn change(to: impl Fn(u32) -> u32) {
    let changed = CURRENT.try_with(|inner| {
        if inner.is_free() {
            return;
        }
        let before = inner.step.load(Ordering::Relaxed);
        let after = to(before).min(u32::MAX - 1);
        if after != before {
            inner.step.store(after, Ordering::Relaxed);
            inner.note();
        }
    });
    // Nothing is in hand, so there is nothing to note.
    changed.unwrap_or_default();
}

/// Lays what is in hand aside while it waits for `others`, such as a model: a death meanwhile is not its own.
pub async fn aside<T>(others: impl Future<Output = T>) -> T {
    /// Takes it in hand again, also when the wait is given up.
    struct Back(Arc<Inner>);

    impl Drop for Back {
        fn drop(&mut self) {
            self.0.note();
        }
    }

    let back = CURRENT.try_with(|inner| {
        inner.erase();
        Back(Arc::clone(inner))
    });
    let outcome = others.await;
    drop(back);
    outcome
}

fn header(state: &str) -> String {
    format!("{state} {}", boot())
}

/// Tells this run of the machine from earlier ones.
fn boot() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

fn slot(text: &str) -> [u8; SLOT_BYTES] {
    let mut slot = [0; SLOT_BYTES];
    let length = text.len().min(SLOT_BYTES);
    slot[..length].copy_from_slice(&text.as_bytes()[..length]);
    slot
}

/// Reads what was in hand, if the header is `expected`: a process on this run of the machine that nobody asked to stop.
fn left(bytes: &[u8], expected: &str) -> Vec<WorkItem> {
    let mut slots = bytes.chunks(SLOT_BYTES).map(text);
    if slots.next().flatten() != Some(expected) {
        return Vec::new();
    }
    let mut left: Vec<WorkItem> = slots.flatten().filter_map(held).collect();
    left.sort();
    left.dedup();
    left
}

fn text(slot: &[u8]) -> Option<&str> {
    let end = slot
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(slot.len());
    let text = std::str::from_utf8(&slot[..end]).ok()?;
    (!text.is_empty()).then_some(text)
}

fn held(text: &str) -> Option<WorkItem> {
    let (step, entity) = text.split_once(' ')?;
    Some(WorkItem {
        entity: entity.to_owned(),
        step: step.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(entity: &str, step: u32) -> WorkItem {
        WorkItem {
            entity: entity.to_owned(),
            step,
        }
    }

    fn open(directory: &tempfile::TempDir) -> (InHand, Vec<WorkItem>) {
        InHand::open(&directory.path().join("in/hand")).unwrap()
    }

    #[tokio::test]
    async fn the_next_process_reads_what_was_in_hand_and_how_far_it_came() {
        let directory = tempfile::tempdir().unwrap();
        let (notes, left) = open(&directory);
        assert_eq!(left, []);
        notes.begin();
        let given_back = notes.hold("task/b/T-1", 0);
        drop(given_back);
        let first = notes.hold("delivery/7/pm", 3);
        let second = notes.hold("task/b/T-2", 0);
        second
            .around(async {
                reached(5);
                reached(4);
                advanced();
                assert_eq!(step(), Some(6));
            })
            .await;
        let left = [held("delivery/7/pm", 3), held("task/b/T-2", 6)];
        assert_eq!(open(&directory).1, left);
        assert_eq!(step(), None);
        // Until the next one begins, whoever comes reads the same.
        let (next, again) = open(&directory);
        assert_eq!(again, left);
        next.begin();
        assert_eq!(open(&directory).1, []);
        drop((first, second));
    }

    #[tokio::test]
    async fn what_waits_for_others_is_not_in_hand() {
        let directory = tempfile::tempdir().unwrap();
        let (notes, _) = open(&directory);
        notes.begin();
        let mark = notes.hold("task/b/T-1", 1);
        let meanwhile = mark.around(aside(async { open(&directory).1 })).await;
        assert_eq!(meanwhile, []);
        assert_eq!(open(&directory).1, [held("task/b/T-1", 1)]);
    }

    #[test]
    fn a_stop_in_order_and_a_machine_that_stopped_leave_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let (notes, _) = open(&directory);
        notes.begin();
        let mark = notes.hold("task/b/T-1", 1);
        assert_eq!(open(&directory).1.len(), 1);
        notes.stop();
        assert_eq!(open(&directory).1, []);
        drop(mark);

        let other_boot = slot("running 0000");
        let bytes = [other_boot, slot("1 task/b/T-1")].concat();
        assert_eq!(left(&bytes, &header(RUNNING)), []);
        assert_eq!(left(&bytes, "running 0000"), [held("task/b/T-1", 1)]);
        assert_eq!(left(b"rubbish", "running 0000"), []);
    }

    #[test]
    fn what_the_store_knows_to_be_done_costs_no_second_write() {
        let directory = tempfile::tempdir().unwrap();
        let (notes, _) = open(&directory);
        notes.begin();
        notes.hold("delivery/7/pm", 0).done();
        assert_eq!(open(&directory).1, [held("delivery/7/pm", 0)]);
        // Its place is taken by the next.
        let next = notes.hold("delivery/8/pm", 0);
        assert_eq!(open(&directory).1, [held("delivery/8/pm", 0)]);
        drop(next);
    }

    #[test]
    fn notes_that_are_not_kept_change_nothing() {
        drop(InHand::default().hold("task/b/T-1", 1));
        reached(3);
        advanced();
    }
}
