//! Watches what a command uses up, from among its processes, and says when it is too much.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, setrlimit};
use nix::sys::statvfs::statvfs;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

use super::plan::Plan;

/// How often it is looked.
const PERIOD: Duration = Duration::from_millis(40);
/// How often what is on the disk is counted where the free space says nothing.
const COUNT_PERIOD: Duration = Duration::from_secs(1);
/// The time between two such counts, in times of how long the last one took.
const COUNT_SHARE: u32 = 20;

/// Sets what the kernel holds by itself: no core, no file longer than all may be together, so many processes.
pub(super) fn set(plan: &Plan) -> io::Result<()> {
    let limits = plan.limits;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    lower(Resource::RLIMIT_FSIZE, limits.disk_bytes)?;
    if !plan.groups.is_empty() {
        return Ok(());
    }
    // Root is not held by it; the watch is what holds everyone.
    lower(Resource::RLIMIT_NPROC, limits.processes)
}

fn lower(resource: Resource, limit: u64) -> io::Result<()> {
    let (_, most) = nix::sys::resource::getrlimit(resource)?;
    let limit = limit.min(most);
    Ok(setrlimit(resource, limit, limit)?)
}

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

/// Waits until the command used up more than it may; says what.
pub(super) fn exceeded(plan: &Plan, before: &Before) -> String {
    let limits = plan.limits;
    let mut disk = DiskWatch::new(before);
    loop {
        // A group counts both by itself.
        if plan.groups.is_empty() {
            let used = used();
            if used.processes > limits.processes {
                return limits.too_many_processes();
            }
            if used.memory_bytes > limits.memory_bytes && shared_out_bytes() > limits.memory_bytes {
                return limits.too_much_memory();
            }
        }
        let seems_too_much = wrote_at_most(&before.free, &free_bytes(plan)) > limits.disk_bytes;
        if disk.is_due(seems_too_much) && disk.is_too_much(plan) {
            let most = limits.disk_bytes / (1024 * 1024);
            return format!("it wrote more than {most} MiB to the disk");
        }
        std::thread::sleep(PERIOD);
    }
}

/// Counts what a command holds on the disk, which takes as long as there are files.
///
/// Others write to the same disk, and remove from it: what only looks like too much is counted soon, and now and then
/// what looks like nothing.
struct DiskWatch<'a> {
    before: &'a Before,
    counted: Instant,
    took: Duration,
    /// What was there before the command, as found by the first count.
    held_before: Option<u64>,
}

impl<'a> DiskWatch<'a> {
    fn new(before: &'a Before) -> Self {
        Self {
            before,
            counted: Instant::now(),
            took: Duration::ZERO,
            held_before: None,
        }
    }

    fn is_due(&self, seems_too_much: bool) -> bool {
        let pause = if seems_too_much {
            self.took
        } else {
            COUNT_PERIOD.max(self.took * COUNT_SHARE)
        };
        self.counted.elapsed() >= pause
    }

    fn is_too_much(&mut self, plan: &Plan) -> bool {
        let begun = Instant::now();
        let held = held_bytes(plan, self.before.at);
        let removed = removed_bytes();
        self.counted = Instant::now();
        self.took = begun.elapsed();
        let before = *self.held_before.get_or_insert(held.unchanged);
        let wrote = held.all().saturating_add(removed).saturating_sub(before);
        wrote > plan.limits.disk_bytes
    }
}

/// What all processes but this one use.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct ResourceUsage {
    processes: u64,
    memory_bytes: u64,
}

fn used() -> ResourceUsage {
    let mut used = ResourceUsage::default();
    let page_bytes = rustix::param::page_size() as u64;
    for process in processes() {
        let Ok(line) = fs::read_to_string(format!("/proc/{process}/stat")) else {
            continue;
        };
        if let Some((threads, pages)) = threads_and_pages(&line) {
            used.processes += threads;
            used.memory_bytes += pages * page_bytes;
        }
    }
    used
}

fn processes() -> impl Iterator<Item = u32> {
    let table = fs::read_dir("/proc").into_iter().flatten().flatten();
    table
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|process| *process != std::process::id())
}

/// Reads a line of `/proc/PID/stat`; the name in it may hold anything.
fn threads_and_pages(line: &str) -> Option<(u64, u64)> {
    let (_, rest) = line.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let threads = fields.nth(17)?.parse().ok()?;
    let pages = fields.nth(3)?.parse().ok()?;
    Some((threads, pages))
}

/// Counts memory that several processes share once. It takes longer, so that it is done only where it matters.
fn shared_out_bytes() -> u64 {
    let of = |process: u32| {
        let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
        let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kibibytes * 1024)
    };
    // One that hides its memory is not counted again, and would be a way around: then the first count holds.
    let counted: Option<Vec<u64>> = processes().map(of).collect();
    counted.map_or(u64::MAX, |counted| counted.iter().sum())
}

/// Returns the bytes that are free where the command may write.
fn free_bytes(plan: &Plan) -> Vec<u64> {
    plan.writable()
        .map(|place| statvfs(place).map_or(0, |disk| disk.blocks_free() * disk.fragment_size()))
        .collect()
}

fn wrote_at_most(before: &[u64], now: &[u64]) -> u64 {
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
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            let bytes = metadata.blocks() * 512;
            // Nobody sets this time at will.
            if TimeSpec::new(metadata.ctime(), metadata.ctime_nsec()) < since {
                held.unchanged += bytes;
            } else {
                held.changed += bytes;
            }
            if metadata.is_dir() {
                open.push(entry.path());
            }
        }
    }
}

/// Counts files that have no name any more and that a process holds open.
fn removed_bytes() -> u64 {
    let mut files = BTreeMap::new();
    for process in processes() {
        let open = fs::read_dir(format!("/proc/{process}/fd"));
        for file in open.into_iter().flatten().flatten() {
            let Ok(metadata) = fs::metadata(file.path()) else {
                continue;
            };
            if metadata.is_file() && metadata.nlink() == 0 {
                files.insert((metadata.dev(), metadata.ino()), metadata.blocks() * 512);
            }
        }
    }
    files.values().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_threads_and_pages_whatever_the_name_is() {
        let line = "7 (a) b (c) S 3 5 6 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 9 0 4711 1000 321 18446";
        assert_eq!(threads_and_pages(line), Some((9, 321)));
        assert_eq!(threads_and_pages("7 (cut"), None);
    }

    #[test]
    fn only_what_is_gone_from_a_disk_counts() {
        assert_eq!(wrote_at_most(&[10, 10], &[4, 12]), 6);
        assert_eq!(wrote_at_most(&[], &[]), 0);
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
        }
    }
}
