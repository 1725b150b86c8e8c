//! Ends everything that a command started, also what left its process group.
//!
//! This process adopts what outlives its parent among its descendants, so that a daemon of a command is sooner or later a
//! child of ours. It is known by the mark in its environment. One that threw its environment away left our session, and
//! belongs to the command in whose directory it is; one that is nowhere goes with the last of the commands that ran when
//! it began. Where there is no `/proc` the process group is all that is ended.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getsid};

use super::orphans::variable_of;

/// Names the command in the environment of a child.
const COMMAND: &str = "ROPEWALK_COMMAND";

/// How long the table of processes is gone through: one that was just forked is seen the next time, one that waits for
/// a slow disk goes when it has what it waits for.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a killed process has to go away before the next round.
const PAUSE: Duration = Duration::from_millis(2);

/// The commands that run now, by the process that leads each.
static RUNNING: Mutex<BTreeMap<i32, RunningCommand>> = Mutex::new(BTreeMap::new());
static NUMBER: AtomicU64 = AtomicU64::new(0);
static ADOPTING: Once = Once::new();

/// A command that runs.
#[derive(Debug, Clone)]
struct RunningCommand {
    began: u64,
    directory: PathBuf,
}

fn running() -> MutexGuard<'static, BTreeMap<i32, RunningCommand>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What tells the processes of one command from those of all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark(String);

impl Mark {
    /// Makes the mark of a command that is about to start; from now on this process adopts what commands leave.
    pub(super) fn fresh() -> Self {
        ADOPTING.call_once(adopt);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self(format!("{}-{number}", Pid::this()))
    }

    /// Returns the variable that carries the mark.
    pub(super) fn variable(&self) -> (&'static str, &str) {
        (COMMAND, &self.0)
    }
}

#[cfg(target_os = "linux")]
fn adopt() {
    if let Err(error) = nix::sys::prctl::set_child_subreaper(true) {
        tracing::warn!("daemons of commands cannot be found: {error}");
    }
}

#[cfg(not(target_os = "linux"))]
fn adopt() {}

/// The processes of a command; dropping it kills what is left of them.
#[derive(Debug)]
pub(super) struct ProcessTree {
    leader: Pid,
    /// Beside the group, what left it is ended too.
    daemons: Option<Mark>,
}

impl ProcessTree {
    /// Watches what `child` leads; `None` when the child is already reaped.
    pub(super) fn led_by(
        child: &tokio::process::Child,
        mark: Option<Mark>,
        directory: &Path,
    ) -> Option<Self> {
        let leader = child.id().and_then(|id| i32::try_from(id).ok())?;
        let daemons = mark.and_then(|mark| {
            let began = Process::read(leader)?.began;
            let directory = directory.canonicalize().ok()?;
            running().insert(leader, RunningCommand { began, directory });
            Some(mark)
        });
        Some(Self {
            leader: Pid::from_raw(leader),
            daemons,
        })
    }

    /// Asks every process of the group to end.
    pub(super) fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Kills all that is left of the command; returns when nothing is.
    pub(super) async fn end(self) {
        if self.daemons.is_none() {
            return;
        }
        // Beside the async threads. Whoever stops waiting for it stops nothing: it is at work already.
        tokio::task::spawn_blocking(move || drop(self)).await.ok();
    }

    fn signal(&self, signal: Signal) {
        // An error says that the group is empty, which is what we want.
        killpg(self.leader, signal).ok();
    }

    fn kill(&self) {
        let Some(mark) = &self.daemons else {
            self.signal(Signal::SIGKILL);
            return;
        };
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            // Looked at before the group dies: a child of a dead parent no longer says whose it is.
            let table = Table::read();
            let ProcessSnapshot {
                processes: found,
                is_all,
            } = table.of(self.leader.as_raw(), mark);
            self.signal(Signal::SIGKILL);
            for process in &found {
                // One that ended by itself meanwhile is what we want.
                kill(Pid::from_raw(process.id), Signal::SIGKILL).ok();
            }
            let mut left = !is_all;
            for process in found {
                // What was adopted has nobody else who waits for it; the leader has.
                if process.parent == table.ours && process.id != self.leader.as_raw() {
                    waitpid(Pid::from_raw(process.id), Some(WaitPidFlag::WNOHANG)).ok();
                }
                left |= !process.ended;
            }
            if !left {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        self.kill();
        if self.daemons.is_some() {
            running().remove(&self.leader.as_raw());
        }
    }
}

/// A row of the table of processes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Process {
    id: i32,
    parent: i32,
    group: i32,
    session: i32,
    /// In ticks since the machine was started.
    began: u64,
    /// It only waits for its parent.
    ended: bool,
}

impl Process {
    fn read(id: i32) -> Option<Self> {
        Self::parse(id, &fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
    }

    /// Reads a line of `/proc/PID/stat`; the name in it may hold anything.
    fn parse(id: i32, line: &str) -> Option<Self> {
        let (_, rest) = line.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        let number = |index: usize| fields.get(index)?.parse().ok();
        Some(Self {
            id,
            parent: number(1)?,
            group: number(2)?,
            session: number(3)?,
            began: fields.get(19)?.parse().ok()?,
            ended: matches!(fields.first(), Some(&("Z" | "X"))),
        })
    }

    /// Says that it changes its program at this moment: it has neither arguments nor variables then.
    fn is_changing(&self) -> bool {
        let arguments = fs::read(format!("/proc/{}/cmdline", self.id));
        !self.ended && arguments.is_ok_and(|arguments| arguments.is_empty())
    }
}

/// What belongs to a command at one moment.
struct ProcessSnapshot {
    processes: Vec<Process>,
    /// There may be more, where a process could not be told at that moment.
    is_all: bool,
}

/// All processes of the machine at one moment.
struct Table {
    ours: i32,
    session: i32,
    processes: Vec<Process>,
}

impl Table {
    fn read() -> Self {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let processes = entries
            .filter_map(|entry| Process::read(entry.file_name().to_str()?.parse().ok()?))
            .collect();
        Self {
            ours: Pid::this().as_raw(),
            session: getsid(None).map_or(0, Pid::as_raw),
            processes,
        }
    }

    /// Finds what belongs to a command: its group, its daemons, and all below them.
    fn of(&self, leader: i32, mark: &Mark) -> ProcessSnapshot {
        let running = running().clone();
        let mut is_all = true;
        let mut found = HashSet::new();
        for process in &self.processes {
            let is_its = match self.is_daemon(process, leader, mark, &running) {
                _ if process.group == leader => true,
                Some(is_its) => is_its,
                None => {
                    is_all = false;
                    false
                }
            };
            if is_its {
                found.insert(process.id);
            }
        }
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        for process in &self.processes {
            children.entry(process.parent).or_default().push(process.id);
        }
        let mut open: Vec<i32> = found.iter().copied().collect();
        while let Some(parent) = open.pop() {
            for child in children.get(&parent).into_iter().flatten() {
                if found.insert(*child) {
                    open.push(*child);
                }
            }
        }
        let is_found = |process: &&Process| found.contains(&process.id);
        ProcessSnapshot {
            processes: self.processes.iter().filter(is_found).cloned().collect(),
            is_all,
        }
    }

    /// Says whether a child of ours is what the command left behind; none where only a later look can tell.
    fn is_daemon(
        &self,
        process: &Process,
        leader: i32,
        mark: &Mark,
        running: &BTreeMap<i32, RunningCommand>,
    ) -> Option<bool> {
        if process.parent != self.ours || running.contains_key(&process.id) {
            return Some(false);
        }
        let is_its = || variable_of(process.id, COMMAND).map(|found| *found == *mark.0);
        // A child of our own that is no command stays in our session.
        if process.session == self.session {
            return Some(is_its().unwrap_or_default());
        }
        if let Some(told) = is_its() {
            return Some(told);
        }
        if process.is_changing() {
            return None;
        }
        // Asked again: it may have had none for that moment alone.
        Some(is_its().unwrap_or_else(|| {
            let place = fs::read_link(format!("/proc/{}/cwd", process.id)).ok();
            suspects(running, process.began, place.as_deref()) == [leader]
        }))
    }
}

/// Returns the leaders of those commands that may have started what began then and is there.
fn suspects(running: &BTreeMap<i32, RunningCommand>, began: u64, place: Option<&Path>) -> Vec<i32> {
    let before = || {
        running
            .iter()
            .filter(move |(_, command)| command.began <= began)
    };
    let depth = |command: &RunningCommand| {
        let inside = place.is_some_and(|place| place.starts_with(&command.directory));
        if inside {
            command.directory.components().count()
        } else {
            0
        }
    };
    let deepest = before()
        .map(|(_, command)| depth(command))
        .max()
        .unwrap_or_default();
    before()
        .filter(|(_, command)| depth(command) == deepest)
        .map(|(leader, _)| *leader)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threw_everything_away_is_of_the_command_in_whose_directory_it_is() {
        let running: BTreeMap<i32, RunningCommand> = [
            (1, 10, "/slots/1"),
            (2, 20, "/slots/2"),
            (3, 30, "/slots/2"),
        ]
        .into_iter()
        .map(|(leader, began, directory)| {
            let directory = PathBuf::from(directory);
            (leader, RunningCommand { began, directory })
        })
        .collect();
        let cases: [(u64, Option<&str>, &[i32]); 7] = [
            (5, Some("/slots/1"), &[]),
            (15, Some("/"), &[1]),
            (25, Some("/slots/2/tree"), &[2]),
            (25, Some("/slots/1"), &[1]),
            (35, Some("/slots/2"), &[2, 3]),
            (35, Some("/elsewhere"), &[1, 2, 3]),
            (35, None, &[1, 2, 3]),
        ];
        for (began, place, expected) in cases {
            let found = suspects(&running, began, place.map(Path::new));
            assert_eq!(found, expected, "{began} {place:?}");
        }
    }

    #[test]
    fn a_name_with_brackets_and_blanks_hides_no_field() {
        let line = "7 (a) b (c) S 3 5 6 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 1 1";
        let process = Process {
            id: 7,
            parent: 3,
            group: 5,
            session: 6,
            began: 4711,
            ended: false,
        };
        assert_eq!(Process::parse(7, line), Some(process));
        let zombie = line.replace(" S ", " Z ");
        assert!(Process::parse(7, &zombie).is_some_and(|process| process.ended));
        assert_eq!(Process::parse(7, "7 (cut"), None);
    }
}
