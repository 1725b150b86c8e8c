//! Holds each confined command in a cgroup of its own, where this process may make some.
//!
//! A [`Groups`] makes a home below the group that this process is in, and locks it; each command gets a [`Group`] in
//! there, which its first process joins before it does anything else. A home that nobody holds the lock of is what a
//! killed process left behind: whoever looks for a place next ends what is in it, and removes it.

mod group;
mod places;

use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::fcntl::{Flock, FlockArg};

use super::plan::Limits;

pub(crate) use group::Group;
pub(super) use group::join;

/// How the name of every home begins.
const HOME: &str = "ropewalk-";
/// The group of cgroup v2 that this process itself goes to: one that has groups below it can have no processes.
const OURS: &str = "ropewalk.main";
/// How many homes of others are passed by.
const HOMES: u64 = 4096;
/// What cgroup v2 is asked for.
const CONTROLLERS: &str = "+memory +pids";

/// What bounds the memory and the processes of a command, from the best to what works everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// A group of cgroup v2.
    CgroupV2,
    /// Groups of cgroup v1, of the controllers memory and pids.
    CgroupV1,
    /// The limits of a process, and a watch from among its processes.
    Watch,
}

impl Hold {
    pub(crate) const ALL: [Self; 3] = [Self::CgroupV2, Self::CgroupV1, Self::Watch];
}

impl fmt::Display for Hold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::CgroupV2 => "cgroup v2",
            Self::CgroupV1 => "cgroup v1",
            Self::Watch => "limits and a watch",
        })
    }
}

/// Where the groups of commands are made.
#[derive(Debug)]
pub(super) struct Groups {
    hold: Hold,
    homes: Vec<Home>,
    number: AtomicU64,
}

impl Groups {
    /// Finds a place for groups, and removes what killed processes left there; none where only a watch holds.
    pub(super) fn find(hold: Hold) -> Result<Option<Self>, String> {
        if hold == Hold::Watch {
            return Ok(None);
        }
        let mut homes = Vec::new();
        for base in places::of_this_process(hold)? {
            let base = match base.file_name() {
                Some(name) if name == OURS => base.parent().map(Path::to_owned).unwrap_or(base),
                _ => base,
            };
            sweep(&base);
            let made = if hold == Hold::CgroupV2 {
                share(&base).and_then(|()| Home::below(&base))
            } else {
                Home::below(&base)
            };
            let home = made.map_err(|error| format!("`{}`: {error}", base.display()))?;
            if hold == Hold::CgroupV2 {
                hand_on(&home.place).map_err(|error| error.to_string())?;
            }
            homes.push(home);
        }
        Ok(Some(Self {
            hold,
            homes,
            number: AtomicU64::new(0),
        }))
    }

    /// Makes the group of one command.
    pub(super) fn open(&self, limits: Limits) -> io::Result<Group> {
        let number = self.number.fetch_add(1, Ordering::Relaxed).to_string();
        let places = self.homes.iter().map(|home| home.place.join(&number));
        Group::make(self.hold, places.collect(), limits)
    }
}

/// A group in which the groups of commands lie; goes with this.
#[derive(Debug)]
struct Home {
    place: PathBuf,
    _lock: Flock<File>,
}

impl Home {
    fn below(base: &Path) -> io::Result<Self> {
        for number in 0..HOMES {
            let place = base.join(format!("{HOME}{}-{number}", std::process::id()));
            match fs::create_dir(&place) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            // Somebody who sweeps may have been faster; then it is gone.
            if let Some(lock) = locked(&place) {
                return Ok(Self { place, _lock: lock });
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        clear(&self.place);
    }
}

/// Takes the lock of a home, if nobody has it and it is still there.
fn locked(place: &Path) -> Option<Flock<File>> {
    let lock = Flock::lock(File::open(place).ok()?, FlockArg::LockExclusiveNonblock).ok()?;
    let is_there = fs::metadata(place).ok()?.ino() == lock.metadata().ok()?.ino();
    is_there.then_some(lock)
}

/// Ends and removes all homes below `base` that nobody holds.
fn sweep(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let is_home = entry.file_name().to_string_lossy().starts_with(HOME);
        if is_home && let Some(_lock) = locked(&entry.path()) {
            clear(&entry.path());
        }
    }
}

/// Ends what is in the groups of a home, and removes it.
fn clear(home: &Path) {
    for entry in fs::read_dir(home).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            group::end(&[entry.path()]);
        }
    }
    fs::remove_dir(home).ok();
}

/// Hands the controllers on to what is below `place`.
fn hand_on(place: &Path) -> io::Result<()> {
    fs::write(place.join("cgroup.subtree_control"), CONTROLLERS)
}

/// As [`hand_on`] for the group that this process is in, which it leaves for one below where it has to.
fn share(base: &Path) -> io::Result<()> {
    let Err(refused) = hand_on(base) else {
        return Ok(());
    };
    if refused.kind() != ErrorKind::ResourceBusy {
        return Err(refused);
    }
    let ours = base.join(OURS);
    match fs::create_dir(&ours) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => fs::write(ours.join("cgroup.procs"), "0")?,
    }
    hand_on(base).inspect_err(|_| {
        // Others are in it, who are not ours to move.
        fs::write(base.join("cgroup.procs"), "0").ok();
        fs::remove_dir(&ours).ok();
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_removed_only_when_nobody_holds_it() {
        let base = tempfile::tempdir().unwrap();
        let held = Home::below(base.path()).unwrap();
        let left = base.path().join("ropewalk-1-0");
        let other = base.path().join("other");
        fs::create_dir_all(left.join("7")).unwrap();
        fs::create_dir(&other).unwrap();
        sweep(base.path());
        assert!(held.place.exists() && other.exists() && !left.exists());
        let second = Home::below(base.path()).unwrap();
        assert_ne!(held.place, second.place);
        let place = held.place.clone();
        drop(held);
        assert!(!place.exists() && second.place.exists());
    }
}
