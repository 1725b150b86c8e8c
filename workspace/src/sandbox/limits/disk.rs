//! Counts what a command holds on the disk, which takes as long as there are files.

use std::cell::LazyCell;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use nix::sys::statvfs::statvfs;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

use super::pace::{BlindSpot, Pace};
use super::processes::{MemoryDevices, Process, nameless};
use crate::sandbox::plan::Plan;

/// The bits of a mode by which anybody passes through a directory.
const PASSABLE: u32 = 0o111;

/// How the disks were before a command began.
pub(super) struct Before {
    free: Vec<u64>,
    /// Whatever was written later changed later.
    at: TimeSpec,
}

impl Before {
    pub(super) fn look(plan: &Plan) -> nix::Result<Self> {
        Ok(Self {
            free: free_bytes(plan),
            // The clock that files are given their times by.
            at: clock_gettime(ClockId::CLOCK_REALTIME_COARSE)?,
        })
    }
}

/// Counts what a command holds on the disk.
///
/// Others write to the same disk, and remove from it: what only looks like too much is counted soon, and now and then
/// what looks like nothing. What the command hides cannot be counted; then it is what is gone from the disk.
pub(super) struct DiskWatch<'a> {
    before: &'a Before,
    /// What lies there is memory, and not counted here.
    devices: &'a MemoryDevices,
    pace: Pace,
    /// Directories and processes that hide what they hold.
    blind_spot: BlindSpot,
    /// What was there before the command, as found by the first count.
    held_before: Option<u64>,
}

impl<'a> DiskWatch<'a> {
    pub(super) fn new(before: &'a Before, devices: &'a MemoryDevices) -> Self {
        Self {
            before,
            devices,
            pace: Pace::new(),
            blind_spot: BlindSpot::default(),
            held_before: None,
        }
    }

    /// Says what the command did where it wrote more than it may, as far as can be told.
    ///
    /// It takes `processes`, all that there are, only where it counts.
    pub(super) fn exceeded(
        &mut self,
        plan: &Plan,
        processes: &LazyCell<Vec<Process>>,
    ) -> Option<String> {
        let limit = plan.limits.disk_bytes;
        let gone = gone_at_most(&self.before.free, &free_bytes(plan));
        if !self.pace.is_due(gone > limit) {
            return None;
        }
        let begun = Instant::now();
        // First, while those are all that there are: the rest takes as long as the command has files. A file that is removed
        // between the two is in neither count until the next.
        let open = nameless(processes, self.devices);
        let held = held_bytes(plan, self.before.at);
        self.pace.counted(begun);
        let before = *self.held_before.get_or_insert(held.unchanged);
        let wrote = held.all().saturating_add(open.removed);
        let is_unseen = self.blind_spot.lasts(held.is_partial || open.is_partial);
        let wrote = wrote.saturating_sub(before);
        reason((wrote, is_unseen.then_some(gone)), limit)
    }
}

/// Says what is too much: what was counted, else all that is gone from the disk, where the command hides what it holds.
fn reason((wrote, gone): (u64, Option<u64>), limit: u64) -> Option<String> {
    if wrote > limit {
        let limit = mebibytes(limit);
        return Some(format!("it wrote more than {limit} MiB to the disk"));
    }
    let gone = mebibytes(gone.filter(|gone| *gone > limit)?);
    Some(format!(
        "it hides what it holds, and {gone} MiB of the disk are gone"
    ))
}

fn mebibytes(bytes: u64) -> u64 {
    bytes / (1024 * 1024)
}

/// Returns the bytes that are free where the command may write.
fn free_bytes(plan: &Plan) -> Vec<u64> {
    plan.writable()
        .map(|place| statvfs(place).map_or(0, |disk| disk.blocks_free() * disk.fragment_size()))
        .collect()
}

fn gone_at_most(before: &[u64], now: &[u64]) -> u64 {
    let gone = before
        .iter()
        .zip(now)
        .map(|(before, now)| before.saturating_sub(*now));
    gone.max().unwrap_or_default()
}

/// What files take up.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct HeldBytes {
    /// Files that nobody changed since a moment.
    unchanged: u64,
    changed: u64,
    /// Says that there may be more that was changed, in what cannot be read.
    is_partial: bool,
}

impl HeldBytes {
    fn all(self) -> u64 {
        self.unchanged.saturating_add(self.changed)
    }
}

fn held_bytes(plan: &Plan, since: TimeSpec) -> HeldBytes {
    let mut held = HeldBytes::default();
    for place in plan.writable() {
        count_below(place, since, &mut held);
    }
    held
}

fn count_below(directory: &Path, since: TimeSpec, held: &mut HeldBytes) {
    // Each with whether something in it can have changed although it cannot be read.
    let mut open = vec![(directory.to_owned(), true)];
    while let Some((directory, can_change)) = open.pop() {
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) => {
                held.is_partial |= can_change && is_hidden(&error);
                continue;
            }
        };
        for entry in entries {
            let found = entry.and_then(|entry| Ok((entry.metadata()?, entry.path())));
            let (metadata, path) = match found {
                Ok(found) => found,
                Err(error) => {
                    held.is_partial |= can_change && is_hidden(&error);
                    continue;
                }
            };
            let bytes = metadata.blocks() * 512;
            // Nobody sets this time at will.
            let is_unchanged = TimeSpec::new(metadata.ctime(), metadata.ctime_nsec()) < since;
            if is_unchanged {
                held.unchanged += bytes;
            } else {
                held.changed += bytes;
            }
            if metadata.is_dir() {
                // One that was closed to everybody all the time was so to the command as well.
                let was_closed = is_unchanged && metadata.mode() & PASSABLE == 0;
                open.push((path, !was_closed));
            }
        }
    }
}

/// Says that there is something that cannot be read; what went meanwhile hides nothing.
fn is_hidden(error: &io::Error) -> bool {
    !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_held_against_a_command_as_what_it_is() {
        const MIB: u64 = 1024 * 1024;
        let reason = |wrote: u64, gone: Option<u64>| {
            let gone = gone.map(|gone| gone * MIB);
            reason((wrote * MIB, gone), 10 * MIB)
        };
        let wrote = Some("it wrote more than 10 MiB to the disk".to_owned());
        let hides = Some("it hides what it holds, and 70 MiB of the disk are gone".to_owned());
        assert_eq!(reason(11, None), wrote);
        assert_eq!(reason(11, Some(70)), wrote);
        assert_eq!(reason(3, Some(70)), hides);
        assert_eq!(reason(10, Some(10)), None);
        assert_eq!(reason(10, None), None);
    }

    #[test]
    fn only_what_is_gone_from_a_disk_counts() {
        assert_eq!(gone_at_most(&[10, 10], &[4, 12]), 6);
        assert_eq!(gone_at_most(&[], &[]), 0);
    }

    #[test]
    fn what_a_directory_holds_is_counted_with_all_below() {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir(base.path().join("inner")).unwrap();
        let file = base.path().join("inner/file");
        fs::write(&file, vec![1; 64 * 1024]).unwrap();
        let written = fs::metadata(&file).unwrap();
        let [before, after] = [0, 1].map(|second| TimeSpec::new(written.ctime() + second, 0));
        for (since, changed) in [(before, true), (after, false)] {
            let mut held = HeldBytes::default();
            count_below(base.path(), since, &mut held);
            assert!(held.all() >= 64 * 1024);
            assert_eq!(held.changed == held.all(), changed, "{held:?}");
            assert!(!held.is_partial);
        }
    }

    #[test]
    fn what_cannot_be_read_is_noted_and_what_is_gone_is_not() {
        let base = tempfile::tempdir().unwrap();
        let gone = base.path().join("gone");
        // Nobody can ask for so long a name.
        let too_long = base.path().join("x/".repeat(4096));
        for (place, is_partial) in [(gone, false), (too_long, true)] {
            let mut held = HeldBytes::default();
            count_below(&place, TimeSpec::new(0, 0), &mut held);
            assert_eq!(held.is_partial, is_partial, "{}", place.display());
        }
    }
}
