//! One command's group: bounds it, says what it met, and ends all that is in it.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::super::plan::Limits;
use super::Hold;

/// The processes and threads of what confines a command, which are in its group too.
const OF_THE_HELPER: u64 = 8;
/// How often it is looked whether a bound was met.
const PERIOD: Duration = Duration::from_millis(20);
/// How long what was killed has to go away.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(1);
/// Where processes are listed, and written to join.
const PROCESSES: &str = "cgroup.procs";

/// The group of one command; dropping it ends all that is in it.
#[derive(Debug)]
pub(crate) struct Group {
    hold: Hold,
    places: Vec<PathBuf>,
    limits: Limits,
}

impl Group {
    pub(super) fn make(hold: Hold, places: Vec<PathBuf>, limits: Limits) -> io::Result<Self> {
        let group = Self {
            hold,
            places,
            limits,
        };
        for place in &group.places {
            fs::create_dir(place)?;
        }
        group.bound()?;
        Ok(group)
    }

    fn bound(&self) -> io::Result<()> {
        let memory = self.limits.memory_bytes.to_string();
        let processes = self.limits.processes.saturating_add(OF_THE_HELPER);
        // Swap is there only where the kernel counts it.
        let (needed, wanted): (_, &[(&str, &str)]) = match self.hold {
            Hold::CgroupV2 => {
                let wanted = &[("memory.swap.max", "0"), ("memory.oom.group", "1")];
                ("memory.max", wanted)
            }
            _ => (
                "memory.limit_in_bytes",
                &[("memory.memsw.limit_in_bytes", memory.as_str())],
            ),
        };
        self.set(needed, &memory)?;
        self.set("pids.max", &processes.to_string())?;
        for (file, value) in wanted {
            self.set(file, value).ok();
        }
        Ok(())
    }

    /// Writes to the file where it is: each controller has its own.
    fn set(&self, file: &str, value: &str) -> io::Result<()> {
        let mut files = self.places.iter().map(|place| place.join(file));
        let file = files.find(|file| file.exists());
        fs::write(file.ok_or(ErrorKind::NotFound)?, value)
    }

    fn read(&self, file: &str, counter: &str) -> u64 {
        let mut files = self.places.iter().map(|place| place.join(file));
        let text = files.find_map(|file| fs::read_to_string(file).ok());
        text.and_then(|text| count(&text, counter)).unwrap_or(0)
    }

    /// Returns where whoever joins has to write.
    pub(crate) fn entries(&self) -> Vec<PathBuf> {
        let entries = self.places.iter().map(|place| place.join(PROCESSES));
        entries.collect()
    }

    /// Says what bound the command met, from the counters of its group.
    pub(crate) fn exceeded(&self) -> Option<String> {
        let memory = match self.hold {
            Hold::CgroupV2 => "memory.events",
            _ => "memory.oom_control",
        };
        if self.read(memory, "oom_kill") > 0 {
            return Some(self.limits.too_much_memory());
        }
        let met = self.read("pids.events", "max") > 0;
        met.then(|| self.limits.too_many_processes())
    }

    /// Ends the whole command as soon as it met a bound; to be dropped when the command has ended.
    pub(crate) async fn watch(&self) -> std::convert::Infallible {
        loop {
            tokio::time::sleep(PERIOD).await;
            if self.exceeded().is_some() {
                kill_once(&self.places);
            }
        }
    }

    /// Ends all that is in it; returns when nothing is.
    pub(crate) async fn end(self) {
        // Beside the async threads. Whoever stops waiting for it stops nothing: it is at work already.
        tokio::task::spawn_blocking(move || drop(self)).await.ok();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        end(&self.places);
    }
}

/// Reads the value of `counter` out of lines of names and values.
fn count(text: &str, counter: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (name == counter).then(|| value.trim().parse().ok())?
    })
}

/// Moves this process, which has one thread, into the group with these `entries`.
pub(in super::super) fn join(entries: &[PathBuf]) -> io::Result<()> {
    entries.iter().try_for_each(|entry| fs::write(entry, "0"))
}

/// Kills what is in the groups `places` until nothing is, and removes them.
pub(super) fn end(places: &[PathBuf]) {
    let begun = Instant::now();
    loop {
        let left = places.iter().filter(|place| !is_removed(place)).count();
        if left == 0 || begun.elapsed() > PATIENCE {
            return;
        }
        kill_once(places);
        std::thread::sleep(PAUSE);
    }
}

fn is_removed(place: &Path) -> bool {
    match fs::remove_dir(place) {
        Ok(()) => true,
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

fn kill_once(places: &[PathBuf]) {
    for place in places {
        // What forks without end cannot do so any more.
        write_if_there(&place.join("pids.max"), "0");
        if write_if_there(&place.join("cgroup.kill"), "1") {
            continue;
        }
        let listed = fs::read_to_string(place.join(PROCESSES)).unwrap_or_default();
        for process in listed.lines().filter_map(|line| line.parse::<i32>().ok()) {
            // One of another namespace has the number 0, which would be ourselves.
            if process > 0 {
                kill(Pid::from_raw(process), Signal::SIGKILL).ok();
            }
        }
    }
}

fn write_if_there(file: &Path, value: &str) -> bool {
    file.exists() && fs::write(file, value).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_read_by_its_whole_name() {
        let events = "low 0\noom 4\noom_kill 3\noom_group_kill 1\n";
        assert_eq!(count(events, "oom_kill"), Some(3));
        assert_eq!(count(events, "kill"), None);
    }

    #[test]
    fn the_counters_of_version_two_tell_which_bound_was_met() {
        let limits = Limits {
            memory_bytes: 3 << 20,
            processes: 7,
            disk_bytes: 1,
        };
        let cases = [
            ("oom_kill 0", "max 0", None),
            ("oom_kill 1", "max 0", Some(limits.too_much_memory())),
            ("oom_kill 0", "max 2", Some(limits.too_many_processes())),
        ];
        for (memory, processes, expected) in cases {
            let place = tempfile::tempdir().unwrap();
            fs::write(place.path().join("memory.events"), memory).unwrap();
            fs::write(place.path().join("pids.events"), processes).unwrap();
            let group = Group {
                hold: Hold::CgroupV2,
                places: vec![place.path().to_owned()],
                limits,
            };
            assert_eq!(group.exceeded(), expected, "{memory} {processes}");
            fs::remove_file(place.path().join("memory.events")).unwrap();
            fs::remove_file(place.path().join("pids.events")).unwrap();
        }
    }
}
