//! Counts the memory of a command where no group does: what its processes map, and what lies in memory without them.
//!
//! Files that are mapped count with the share of each process, and what of the disk is merely cached counts as nothing.

use std::fs;
use std::path::Path;
use std::time::Instant;

use nix::sys::statvfs::statvfs;

use super::pace::{BlindSpot, Pace};
use super::processes::{MemoryDevices, Process, nameless};
use crate::sandbox::SCRATCH_BYTES;
use crate::sandbox::plan::{Mount, Plan};

/// Directories in memory that every command has, whatever its plan shows.
const DEVICES: [&str; 2] = ["/dev", "/dev/shm"];
/// What the kernel keeps of a file in memory beside its content, in bytes.
const FILE_BYTES: u64 = 1024;
/// What processes can leave with the kernel, also when they end: where it lists that, and how many bytes one of a column
/// stands for.
const LISTS: [(&str, &[(&str, u64)]); 3] = [
    ("/proc/sysvipc/shm", &[("rss", 1), ("swap", 1)]),
    // The smallest message, and the smallest semaphore, takes a line of the cache.
    ("/proc/sysvipc/msg", &[("cbytes", 1), ("qnum", 64)]),
    ("/proc/sysvipc/sem", &[("nsems", 64)]),
];

/// How the memory was before a command began.
pub(super) struct Before {
    shared_bytes: u64,
}

impl Before {
    pub(super) fn look() -> Self {
        Self {
            shared_bytes: shared_bytes(),
        }
    }
}

/// Counts the memory that a command takes up.
pub(super) struct MemoryWatch<'a> {
    before: &'a Before,
    devices: &'a MemoryDevices,
    pace: Pace,
    /// Processes that hide what they hold open.
    blind_spot: BlindSpot,
    /// What others put into memory since the command began, as of the last count.
    of_others: u64,
}

impl<'a> MemoryWatch<'a> {
    pub(super) fn new(before: &'a Before, devices: &'a MemoryDevices) -> Self {
        Self {
            before,
            devices,
            pace: Pace::new(),
            blind_spot: BlindSpot::default(),
            of_others: 0,
        }
    }

    /// Says what was done where `processes`, all that there are, use more than they may, as far as can be told.
    ///
    /// Each time it adds up what is known of them, and reads `/proc/meminfo`, which takes as long as one process more:
    /// all that nobody maps is in its sum, with what others have there. It counts at once only where both are too much.
    pub(super) fn exceeded(&mut self, plan: &Plan, processes: &[Process]) -> Option<String> {
        let mapped: u64 = processes.iter().map(|process| process.mapped_bytes).sum();
        let grown = shared_bytes().saturating_sub(self.before.shared_bytes);
        let seems = mapped.saturating_add(grown.saturating_sub(self.of_others));
        let limit = plan.limits.memory_bytes;
        if !self.pace.is_due(seems > limit) {
            return None;
        }
        let begun = Instant::now();
        let (left, hidden) = self.left(plan, processes, grown);
        let all = left.saturating_add(hidden);
        let is_too_much = |left: u64| {
            // Whatever several processes map counts for each of them so far.
            mapped.saturating_add(left) > limit && shared_out(processes, left) > limit
        };
        let reason = if !is_too_much(all) {
            None
        } else if hidden == 0 || is_too_much(left) {
            Some(plan.limits.too_much_memory())
        } else {
            let gone = grown / (1024 * 1024);
            Some(format!(
                "it hides what it holds, and {gone} MiB of memory are gone"
            ))
        };
        self.pace.counted(begun);
        reason
    }

    /// Counts what lies in memory without a process that maps it, of the bytes by which all such has `grown`; the second
    /// count is of what is hidden.
    fn left(&mut self, plan: &Plan, processes: &[Process], grown: u64) -> (u64, u64) {
        let open = nameless(processes, self.devices);
        let left = open.in_memory + in_directories(plan) + in_lists();
        self.of_others = grown.saturating_sub(left);
        // What is hidden may be all that there is more of.
        if self.blind_spot.lasts(open.is_partial) {
            (left, grown.saturating_sub(left))
        } else {
            (left, 0)
        }
    }
}

/// Returns what lies in memory on this machine and is no memory of a process of its own, in bytes, whoever put it there.
fn shared_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    kibibytes(&text, "Shmem:").unwrap_or_default()
}

/// Reads a line of a list that the kernel writes, as bytes.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let count: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(count * 1024)
}

/// Returns what the files of the directories in memory take up that go with the command, removed ones among them.
fn in_directories(plan: &Plan) -> u64 {
    directories(plan).map(taken_up).sum()
}

/// Lists the directories in memory that go with the command.
pub(super) fn directories(plan: &Plan) -> impl Iterator<Item = &Path> {
    let scratch = plan.laid().filter_map(|mount| match mount {
        Mount::Scratch(place) => Some(place.as_path()),
        _ => None,
    });
    let is_covered = move |device: &Path| {
        let mut mounts = plan.mounts.iter();
        mounts.any(|mount| device.starts_with(mount.place()))
    };
    let devices = DEVICES.iter().map(Path::new);
    let devices = devices.filter(move |device| !is_covered(device));
    scratch.chain(devices)
}

/// One that was closed to this process, too, may be full.
fn taken_up(directory: &Path) -> u64 {
    statvfs(directory).map_or(SCRATCH_BYTES, |disk| {
        let blocks = disk.blocks().saturating_sub(disk.blocks_free());
        let files = disk.files().saturating_sub(disk.files_free());
        blocks * disk.fragment_size() + files * FILE_BYTES
    })
}

/// Returns what was left with the kernel.
fn in_lists() -> u64 {
    let lists = LISTS.iter().map(|(list, columns)| {
        let text = fs::read_to_string(list).unwrap_or_default();
        let columns = columns.iter();
        columns
            .map(|(name, bytes)| sum_of(&text, name).saturating_mul(*bytes))
            .sum::<u64>()
    });
    lists.sum()
}

/// Adds up a column of a list, whose first line names all.
fn sum_of(list: &str, column: &str) -> u64 {
    let mut lines = list.lines();
    let mut names = lines.next().unwrap_or_default().split_whitespace();
    let Some(at) = names.position(|name| name == column) else {
        return 0;
    };
    let entries = lines.filter_map(|line| line.split_whitespace().nth(at)?.parse::<u64>().ok());
    entries.fold(0, u64::saturating_add)
}

/// Counts once what several processes map, and what is `left` in memory beside that. The kernel walks through all that
/// they map, so that it is done only where it matters.
fn shared_out(processes: &[Process], left: u64) -> u64 {
    let mut all = MappedBytes::default();
    for process in processes {
        let mapped = process.read("smaps_rollup");
        let mapped = mapped.and_then(|text| MappedBytes::parse(&text));
        // One that hides its memory is not counted again, and would be a way around: then the first count holds for it.
        let mapped = mapped.unwrap_or_else(|| MappedBytes {
            own: if process.runs() {
                process.mapped_bytes
            } else {
                0
            },
            in_files: 0,
        });
        all.own = all.own.saturating_add(mapped.own);
        all.in_files = all.in_files.saturating_add(mapped.in_files);
    }
    // What is left may be mapped as well, and what is mapped need not be among what is left.
    all.own.saturating_add(all.in_files.max(left))
}

/// What a process maps, in bytes, by its share where there are others.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct MappedBytes {
    own: u64,
    /// In files that lie in memory.
    in_files: u64,
}

impl MappedBytes {
    /// Reads `smaps_rollup`; a kernel that does not tell files in memory apart counts all as such.
    fn parse(text: &str) -> Option<Self> {
        let all = kibibytes(text, "Pss:")?;
        let in_files = kibibytes(text, "Pss_Shmem:").unwrap_or(all);
        Some(Self {
            own: all.saturating_sub(in_files),
            in_files,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::plan::{Limits, Reach};

    #[test]
    fn what_a_process_maps_is_told_apart() {
        for (text, own, in_files) in [
            (
                "Rss: 9 kB\nPss:  7 kB\nPss_Anon: 5 kB\nPss_Shmem:  2 kB\n",
                5,
                2,
            ),
            ("Rss: 9 kB\nPss:  7 kB\n", 0, 7),
        ] {
            let expected = MappedBytes {
                own: own * 1024,
                in_files: in_files * 1024,
            };
            assert_eq!(MappedBytes::parse(text), Some(expected));
        }
        assert_eq!(MappedBytes::parse(""), None);
    }

    #[test]
    fn a_column_is_found_by_its_name() {
        let list = "  key  shmid  rss   swap\n  0  11  4096  0\n  0  12  8192  1\n";
        assert_eq!(sum_of(list, "rss"), 12_288);
        assert_eq!(sum_of(list, "swap"), 1);
        assert_eq!(sum_of(list, "other"), 0);
        assert_eq!(sum_of("", "rss"), 0);
    }

    #[test]
    fn a_disk_that_lies_where_memory_did_is_not_counted() {
        let limits = Limits::default();
        let everything = [Mount::Scratch("/".into()), Mount::Write("/".into())];
        let plan = Plan::new(Path::new("/"), &everything, &[], &Reach::default(), limits);
        assert_eq!(in_directories(&plan), 0);
    }
}
