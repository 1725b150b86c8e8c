//! Says what one confined command sees, may change and may use up; whoever confines it only obeys.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What a command may use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Of memory, all its processes together.
    pub memory_bytes: u64,
    /// Processes and threads at once.
    pub processes: u64,
    /// What it writes to the disk.
    pub disk_bytes: u64,
}

/// What a command may do beside reading the system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// The directories that it may change; a plain list, in which the directory that it runs in need not be.
    pub writable: Vec<PathBuf>,
    /// Says that it reaches the hosts of packages as well: for installs, and for nothing else.
    pub packages: bool,
    /// A directory for what it writes down on the way, which it finds by `TMPDIR`.
    pub scratch: Option<PathBuf>,
}

/// One thing in the tree that a command sees; later ones lie over earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Mount {
    /// What is there, to be read.
    Read(PathBuf),
    /// What is there, to be changed.
    Write(PathBuf),
    /// What lies elsewhere.
    Show {
        /// Where it lies.
        from: PathBuf,
        /// Where it is seen.
        at: PathBuf,
        /// Whether it may be changed.
        writable: bool,
    },
    /// An empty directory in memory, gone with the command.
    Scratch(PathBuf),
    /// An empty directory in which only what is laid over it is there, and nothing can be made.
    Closed(PathBuf),
    /// An empty file in the place of one that is there.
    Hide(PathBuf),
    /// A link, as it is there.
    Link {
        /// Where it is.
        at: PathBuf,
        /// Where it leads.
        to: PathBuf,
    },
}

impl Default for Limits {
    /// What the largest builds need, and no machine goes down by.
    fn default() -> Self {
        const GIBIBYTE: u64 = 1024 * 1024 * 1024;
        Self {
            memory_bytes: 8 * GIBIBYTE,
            processes: 2048,
            disk_bytes: 32 * GIBIBYTE,
        }
    }
}

impl Limits {
    /// Says that a command used more memory.
    pub(super) fn too_much_memory(&self) -> String {
        let mebibytes = self.memory_bytes / (1024 * 1024);
        format!("it used more than {mebibytes} MiB of memory")
    }

    /// Says that a command had more processes.
    pub(super) fn too_many_processes(&self) -> String {
        let processes = self.processes;
        format!("it had more than {processes} processes and threads")
    }
}

impl Mount {
    /// Returns where it is.
    pub(crate) fn place(&self) -> &Path {
        match self {
            Self::Read(place)
            | Self::Write(place)
            | Self::Scratch(place)
            | Self::Closed(place)
            | Self::Hide(place) => place,
            Self::Link { at, .. } | Self::Show { at, .. } => at,
        }
    }
}

/// What one confined command sees and may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// Where it begins.
    pub(crate) directory: PathBuf,
    /// What it sees, beside devices and its own processes.
    pub(crate) mounts: Vec<Mount>,
    /// The socket by which it reaches hosts.
    pub(crate) door: Option<PathBuf>,
    /// What it may use up.
    pub(crate) limits: Limits,
    /// What its first process writes to, to join its group, which then holds memory and processes; empty where there is
    /// none.
    pub(crate) groups: Vec<PathBuf>,
}

impl Plan {
    /// Lays what a command may change over what every command sees; `hidden` stays out wherever it lies.
    pub(crate) fn new(
        directory: &Path,
        system: &[Mount],
        hidden: &[PathBuf],
        reach: &Reach,
        limits: Limits,
    ) -> Self {
        let mut mounts = system.to_vec();
        for place in hidden {
            let mut shown = reach.writable.iter().map(PathBuf::as_path);
            let holds = shown.any(|shown| shown.starts_with(place)) || directory.starts_with(place);
            if holds || is_seen(&mounts, place) {
                mounts.push(Mount::Closed(place.clone()));
            }
        }
        for place in &reach.writable {
            mounts.extend(beside(&mounts, place).map(Mount::Closed));
        }
        mounts.extend(reach.writable.iter().cloned().map(Mount::Write));
        if !is_seen(&mounts, directory) && directory.parent().is_some() {
            mounts.push(Mount::Read(directory.to_owned()));
        }
        Self {
            directory: directory.to_owned(),
            mounts,
            door: None,
            limits,
            groups: Vec::new(),
        }
    }

    /// Shows it a socket, by which it reaches hosts.
    pub(crate) fn with_door(mut self, door: Option<PathBuf>) -> Self {
        self.mounts.extend(door.clone().map(Mount::Read));
        self.door = door;
        self
    }

    /// Holds it in a group, which is joined at `entries`.
    pub(crate) fn with_groups(self, entries: Vec<PathBuf>) -> Self {
        Self {
            groups: entries,
            ..self
        }
    }

    /// Shows it what lies elsewhere.
    pub(crate) fn with_shown(mut self, shown: impl IntoIterator<Item = Mount>) -> Self {
        self.mounts.extend(shown);
        self
    }

    /// Returns what is to be mounted: all but what a later one lies over as a whole, at which nobody can come any more.
    pub(crate) fn laid(&self) -> impl Iterator<Item = &Mount> {
        let covered = |at: usize, place: &Path| {
            let mut later = self.mounts[at + 1..].iter();
            later.any(|other| place.starts_with(other.place()))
        };
        let all = self.mounts.iter().enumerate();
        all.filter(move |(at, mount)| !covered(*at, mount.place()))
            .map(|(_, mount)| mount)
    }

    /// Returns what may be changed and stays.
    pub(crate) fn writable(&self) -> impl Iterator<Item = &Path> {
        self.mounts.iter().filter_map(|mount| match mount {
            Mount::Write(place)
            | Mount::Show {
                at: place,
                writable: true,
                ..
            } => Some(place.as_path()),
            _ => None,
        })
    }

    /// Returns what holds only what is laid over it.
    pub(crate) fn closed(&self) -> impl Iterator<Item = &Path> {
        self.laid().filter_map(|mount| match mount {
            Mount::Closed(place) => Some(place.as_path()),
            _ => None,
        })
    }

    /// Returns what may be changed and goes with the command.
    pub(crate) fn scratch(&self) -> impl Iterator<Item = &Path> {
        self.mounts.iter().filter_map(|mount| match mount {
            Mount::Scratch(place) => Some(place.as_path()),
            _ => None,
        })
    }
}

/// Returns the directory around `place` where what is written there would be lost without a word: in memory, and in none
/// that is there for that.
fn beside(mounts: &[Mount], place: &Path) -> Option<PathBuf> {
    let around = place.parent()?;
    match top(mounts, around)? {
        Mount::Scratch(scratch) if scratch != around => Some(around.to_owned()),
        _ => None,
    }
}

/// Returns the topmost of `mounts` that holds `place`.
pub(super) fn top<'a>(mounts: &'a [Mount], place: &Path) -> Option<&'a Mount> {
    let mut from_above = mounts.iter().rev();
    from_above.find(|mount| place.starts_with(mount.place()))
}

/// Says whether the topmost of `mounts` that holds `place` shows what is there.
pub(super) fn is_seen(mounts: &[Mount], place: &Path) -> bool {
    matches!(top(mounts, place), Some(Mount::Read(_) | Mount::Write(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        memory_bytes: 1,
        processes: 1,
        disk_bytes: 1,
    };

    fn paths(places: &[&str]) -> Vec<PathBuf> {
        places.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn what_is_hidden_is_covered_only_where_it_would_be_seen() {
        let system = [
            Mount::Read("/usr".into()),
            Mount::Read("/opt".into()),
            Mount::Scratch("/home/ada".into()),
            Mount::Read("/home/ada/.cargo".into()),
        ];
        let hidden = paths(&["/opt/state", "/home/ada/state", "/srv/state"]);
        let reach = Reach {
            writable: paths(&["/opt/state/slots/1/tree"]),
            packages: false,
            scratch: None,
        };
        let plan = Plan::new(Path::new("/srv"), &system, &hidden, &reach, LIMITS);
        assert_eq!(
            plan.mounts[system.len()..],
            [
                Mount::Closed("/opt/state".into()),
                Mount::Write("/opt/state/slots/1/tree".into()),
                Mount::Read("/srv".into()),
            ]
        );
        assert_eq!(plan.scratch().count(), 1);
        assert_eq!(plan.writable().count(), 1);
    }

    #[test]
    fn what_a_later_one_lies_over_is_not_mounted() {
        let system = [
            Mount::Read("/opt/env/plugins/shims".into()),
            Mount::Read("/opt/env/bin".into()),
            Mount::Read("/opt/env/plugins".into()),
            Mount::Closed("/opt/env/plugins/secret".into()),
        ];
        let (nothing, reach) = (paths(&[]), Reach::default());
        let plan = Plan::new(Path::new("/opt/env/bin"), &system, &nothing, &reach, LIMITS);
        let laid: Vec<&Mount> = plan.laid().collect();
        assert_eq!(laid, [&system[1], &system[2], &system[3]]);
    }

    #[test]
    fn what_lies_around_a_checkout_in_memory_is_closed() {
        let system = [
            Mount::Scratch("/tmp".into()),
            Mount::Scratch("/home/ada".into()),
        ];
        let cases: [(&str, &[&str], Option<&str>); 5] = [
            (
                "/home/ada/state/slots/1/tree",
                &["/home/ada/state"],
                Some("/home/ada/state"),
            ),
            (
                "/home/ada/trial/tree",
                &["/home/ada/state"],
                Some("/home/ada/trial"),
            ),
            ("/home/ada/tree", &[], None),
            ("/tmp/a/tree", &["/tmp/a"], Some("/tmp/a")),
            ("/srv/a/tree", &[], None),
        ];
        for (tree, hidden, expected) in cases {
            let reach = Reach {
                writable: paths(&[tree]),
                packages: false,
                scratch: None,
            };
            let plan = Plan::new(Path::new(tree), &system, &paths(hidden), &reach, LIMITS);
            let closed: Vec<_> = plan.closed().collect();
            assert_eq!(closed.first().copied(), expected.map(Path::new), "{tree}");
            assert!(closed.len() < 2, "{tree}: {closed:?}");
        }
    }
}
