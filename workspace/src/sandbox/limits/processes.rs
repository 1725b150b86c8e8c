//! Looks at the processes of a command, and at the files without a name that they hold open.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::libc::MFD_NOEXEC_SEAL;
use nix::sys::memfd::{MFdFlags, memfd_create};

/// A process, as its line in `/proc` tells it.
pub(super) struct Process {
    /// Where the kernel tells of it.
    place: PathBuf,
    pub(super) threads: u64,
    /// What it maps and that is in memory, in bytes; whatever several share counts for each.
    pub(super) mapped_bytes: u64,
}

/// Returns all processes but this one. It reads a line of each, which takes some 20 µs.
pub(super) fn all() -> Vec<Process> {
    let table = fs::read_dir("/proc").into_iter().flatten().flatten();
    table
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|id: &u32| *id != std::process::id())
        .filter_map(|id| Process::look(PathBuf::from(format!("/proc/{id}"))))
        .collect()
}

impl Process {
    fn look(place: PathBuf) -> Option<Self> {
        let line = Line::read(&place)?;
        let (mut shown, mut at) = (line, place);
        // Where the first thread has ended, the others go on, and have all that the process has.
        if line.has_ended() && line.threads > 1 {
            let threads = fs::read_dir(at.join("task"))
                .into_iter()
                .flatten()
                .flatten();
            let mut threads = threads.filter_map(|thread| {
                let place = thread.path();
                Some((Line::read(&place)?, place))
            });
            (shown, at) = threads.find(|(line, _)| !line.has_ended())?;
        }
        Some(Self {
            place: at,
            threads: line.threads,
            mapped_bytes: shown.pages * rustix::param::page_size() as u64,
        })
    }

    /// Reads a file in which the kernel tells of it.
    pub(super) fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.place.join(name)).ok()
    }

    /// Says that it runs: what cannot be read of such a one is hidden, and what has ended has nothing more.
    pub(super) fn runs(&self) -> bool {
        Line::read(&self.place).is_some_and(|line| !line.has_ended())
    }
}

/// What a line of `/proc/PID/stat` tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line {
    threads: u64,
    /// The size of what it has mapped, in bytes.
    size: u64,
    /// Pages of it that are in memory.
    pages: u64,
}

impl Line {
    fn read(place: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(place.join("stat")).ok()?)
    }

    /// The name in it may hold anything.
    fn parse(line: &str) -> Option<Self> {
        let (_, rest) = line.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        Some(Self {
            threads: fields.nth(17)?.parse().ok()?,
            size: fields.nth(2)?.parse().ok()?,
            pages: fields.next()?.parse().ok()?,
        })
    }

    /// Says that it has given its memory back, and waits for its parent or for its other threads.
    fn has_ended(self) -> bool {
        self.size == 0
    }
}

/// By which devices files are known to lie in memory.
#[derive(Debug)]
pub(super) struct MemoryDevices {
    /// That of files that never had a name; none where none can be made.
    nameless: Option<u64>,
    /// Those of directories that are counted as a whole, with what was removed from them.
    directories: Vec<u64>,
}

impl MemoryDevices {
    /// Finds them, for `directories` that are counted as a whole.
    pub(super) fn find<'a>(directories: impl Iterator<Item = &'a Path>) -> Self {
        let made = in_memory("device").and_then(|file| file.metadata().ok());
        let directories = directories.filter_map(|directory| fs::metadata(directory).ok());
        Self {
            nameless: made.map(|file| file.dev()),
            directories: directories.map(|directory| directory.dev()).collect(),
        }
    }
}

/// What files take up that have no name and that a process holds open.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct NamelessBytes {
    /// Those that were removed from the disk.
    pub(super) removed: u64,
    /// Those that never had one, and lie in memory.
    pub(super) in_memory: u64,
    /// Says that a process hides what it holds open.
    pub(super) is_partial: bool,
}

/// Counts what `processes` hold open; files in memory are known by their `devices`.
///
/// It asks for each open file of each process, which takes some 2 µs, so that it is done at a pace.
pub(super) fn nameless(processes: &[Process], devices: &MemoryDevices) -> NamelessBytes {
    let mut counted = NamelessBytes::default();
    let mut files = BTreeMap::new();
    for process in processes {
        let Ok(open) = fs::read_dir(process.place.join("fd")) else {
            counted.is_partial |= process.runs();
            continue;
        };
        for file in open.flatten() {
            match fs::metadata(file.path()) {
                Ok(file) if file.is_file() && file.nlink() == 0 => {
                    files.insert((file.dev(), file.ino()), file.blocks() * 512);
                }
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                    counted.is_partial |= process.runs();
                }
                _ => {}
            }
        }
    }
    for ((on, _), bytes) in files {
        if Some(on) == devices.nameless {
            counted.in_memory += bytes;
        } else if !devices.directories.contains(&on) {
            counted.removed += bytes;
        }
    }
    counted
}

/// Makes a file in memory that has no name; none where none can be made.
fn in_memory(called: &str) -> Option<File> {
    let plain = MFdFlags::MFD_CLOEXEC;
    // Some machines refuse those that could be run, and old ones do not know how to say so.
    let ways = [plain, plain | MFdFlags::from_bits_retain(MFD_NOEXEC_SEAL)];
    let mut made = ways.into_iter().map(|way| memfd_create(called, way));
    made.find_map(Result::ok).map(File::from)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_line_tells_threads_and_pages_whatever_the_name_is() {
        let line = "7 (a) b (c) S 3 5 6 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 9 0 4711 1000 321 18446";
        let expected = Line {
            threads: 9,
            size: 1000,
            pages: 321,
        };
        assert_eq!(Line::parse(line), Some(expected));
        assert!(!expected.has_ended());
        assert_eq!(Line::parse("7 (cut"), None);
        let ended = line.replace("1000 321", "0 0");
        assert!(Line::parse(&ended).is_some_and(Line::has_ended));
    }

    #[test]
    fn files_without_a_name_are_counted_where_they_lie() {
        let own = PathBuf::from(format!("/proc/{}", std::process::id()));
        let own = [Process::look(own).unwrap()];
        let devices = MemoryDevices::find(std::iter::empty());
        let before = nameless(&own, &devices);
        let mut file = in_memory("test").unwrap();
        file.write_all(&vec![1; 64 * 1024]).unwrap();
        let after = nameless(&own, &devices);
        assert!(after.in_memory >= before.in_memory + 64 * 1024, "{after:?}");
        assert!(own[0].runs() && !after.is_partial);
        assert!(own[0].mapped_bytes > 0);
    }

    #[test]
    fn what_was_removed_from_a_directory_that_is_counted_as_a_whole_is_not_counted_again() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = tempfile::tempfile_in(directory.path()).unwrap();
        file.write_all(&vec![1; 64 * 1024]).unwrap();
        // It holds nothing else open that has no name.
        let mut holder = Command::new("sleep")
            .arg("60")
            .stdin(file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let process = Process::look(PathBuf::from(format!("/proc/{}", holder.id())));
        let counted = process.map(|process| {
            let elsewhere = MemoryDevices::find(std::iter::empty());
            let there = MemoryDevices::find([directory.path()].into_iter());
            [elsewhere, there].map(|devices| nameless(std::slice::from_ref(&process), &devices))
        });
        holder.kill().unwrap();
        holder.wait().unwrap();
        let [elsewhere, there] = counted.unwrap();
        assert!(elsewhere.removed >= 64 * 1024, "{elsewhere:?}");
        assert_eq!(there, NamelessBytes::default());
    }
}
