//! Numbers the processes that run agents on one state directory at the same time.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ropewalk_orchestrator::Suspects;
use ropewalk_orchestrator::notices::{DutyGuard, Turn};
use ropewalk_runtime::InHand;
use ropewalk_schemas::advice::Words;
use ropewalk_workspace::FileLock;
use tracing::warn;

use crate::error::CliError;

/// The most processes on one state directory.
const MOST: u32 = 64;

/// What the names begin with under which processes are shown.
const SHOWN: &str = "ropewalk-";

/// The number of this process among those that run: the lowest free one, held to its end.
///
/// Whoever is given a number knows that the process that had it before is gone, and sets right what that one left.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) number: u32,
    _lock: FileLock,
}

impl Place {
    /// Takes the lowest free number on `state`.
    pub(super) fn take(state: &Path) -> Result<Self, CliError> {
        let directory = directory(state);
        fs::create_dir_all(&directory).map_err(|error| CliError::file(&directory, &error))?;
        for number in 1..=MOST {
            if let Some(lock) = FileLock::take(&file(state, number))? {
                return Ok(Self {
                    number,
                    _lock: lock,
                });
            }
        }
        let text = (
            format!("{MOST} processes run on `{}` already", state.display()),
            "stop one first",
        );
        Err(CliError::refused("running", text))
    }
}

/// Names a process that runs on `state`, by its number or as the only one.
pub(super) fn name(state: &Path, number: Option<u32>) -> String {
    format!("{}#{}", state.display(), number.unwrap_or_default())
}

/// Returns what takes the duty `name`, which one process at a time has on a state directory.
pub(super) fn turn(state: &Path, name: &str) -> Turn {
    let directory = directory(state);
    let file = directory.join(format!("{name}.turn"));
    Arc::new(move || {
        fs::create_dir_all(&directory).ok()?;
        match FileLock::take(&file) {
            Ok(lock) => lock.map(|lock| -> DutyGuard { Box::new(lock) }),
            Err(error) => {
                warn!(
                    "nobody can take `{}`: {}",
                    file.display(),
                    Words::of(&error)
                );
                None
            }
        }
    })
}

/// Ends the commands that processes which are gone have left: those that had our number, or all if we are the only one.
pub(super) async fn end_orphans(state: &Path, number: Option<u32>) {
    let (ours, any) = (name(state, number), format!("{}#", state.display()));
    let ended = ropewalk_workspace::end_orphans(|owner| match number {
        Some(_) => owner == ours,
        None => owner.starts_with(&any),
    });
    let ended = ended.await;
    if ended > 0 {
        warn!("ended {ended} commands that a process which was killed had left");
    }
}

/// Opens the notes of what this process has in hand, which the next one of its number reads if this one dies.
pub(super) fn suspects(state: &Path, number: Option<u32>) -> Suspects {
    let name = number.map_or_else(
        || "in-hand".to_owned(),
        |number| format!("{number}.in-hand"),
    );
    match InHand::open(&directory(state).join(name)) {
        Ok((in_hand, left)) => Suspects::new(in_hand, left),
        Err(error) => {
            warn!("what is in hand cannot be noted, so a death is not counted: {error}");
            Suspects::default()
        }
    }
}

/// Returns whether any numbered process runs on `state`.
pub(super) fn any(state: &Path) -> Result<bool, CliError> {
    for number in 1..=MOST {
        let file = file(state, number);
        if file.exists() && FileLock::take(&file)?.is_none() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns how a process of this machine is named where its agents are shown.
pub(super) fn shown(id: u32) -> String {
    format!("{SHOWN}{id}")
}

/// Returns whether the process of this machine that is `shown` so is there.
pub(super) fn lives(shown: &str) -> bool {
    let id = shown.strip_prefix(SHOWN).and_then(|id| id.parse().ok());
    let found = id.map(|id| nix::sys::signal::kill(nix::unistd::Pid::from_raw(id), None));
    // Of another user it cannot be asked, but is there.
    matches!(found, Some(Ok(()) | Err(nix::errno::Errno::EPERM)))
}

fn directory(state: &Path) -> PathBuf {
    state.join("processes")
}

fn file(state: &Path, number: u32) -> PathBuf {
    directory(state).join(format!("{number}.lock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_the_lowest_free_number_until_it_ends() {
        let state = tempfile::tempdir().unwrap();
        assert!(!any(state.path()).unwrap());
        let first = Place::take(state.path()).unwrap();
        let second = Place::take(state.path()).unwrap();
        assert_eq!((first.number, second.number), (1, 2));
        drop(first);
        assert!(any(state.path()).unwrap());
        assert_eq!(Place::take(state.path()).unwrap().number, 1);
        drop(second);
        assert!(!any(state.path()).unwrap());
    }
}
