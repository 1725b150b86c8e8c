//! Ends commands whose starter was killed before it could.
//!
//! Each child carries the name of its owner and the directory that it began in in its environment, which all that it
//! starts inherits, also what left its process group. Where there is no `/proc` nothing is found.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Names the owner in the environment of a child.
pub(crate) const OWNER: &str = "ROPEWALK_OWNER";
/// Names the directory that a child began in.
pub(super) const DIRECTORY: &str = "ROPEWALK_DIRECTORY";

/// How often the table of processes is gone through: one that was just forked is seen the next time.
const ROUNDS: u32 = 20;
/// How long a killed process has to go away before the next round.
const PAUSE: Duration = Duration::from_millis(20);

/// Kills every process whose owner `is_gone`, and what it started; returns how many that were.
///
/// To be called by whoever has taken over what the owner had, before it starts commands of its own.
pub async fn end_orphans(is_gone: impl Fn(&str) -> bool) -> usize {
    end(OWNER, |owner| owner.to_str().is_some_and(&is_gone)).await
}

/// Kills every process that began in `directory` or below, and what it started; returns how many that were.
///
/// To be called by whoever alone may work there, before it does.
pub(crate) async fn end_orphans_in(directory: &Path) -> usize {
    end(DIRECTORY, |began| Path::new(began).starts_with(directory)).await
}

async fn end(variable: &str, is_orphan: impl Fn(&OsStr) -> bool) -> usize {
    let mut ended = std::collections::HashSet::new();
    for _ in 0..ROUNDS {
        let found = orphans(variable, &is_orphan);
        if found.is_empty() {
            break;
        }
        for process in found {
            // One that ended by itself meanwhile is what we want.
            kill(process, Signal::SIGKILL).ok();
            ended.insert(process);
        }
        tokio::time::sleep(PAUSE).await;
    }
    ended.len()
}

fn orphans(variable: &str, is_orphan: &impl Fn(&OsStr) -> bool) -> Vec<Pid> {
    let Ok(table) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let ours = Pid::this();
    let processes = table.flatten().filter_map(|entry| {
        let process = entry
            .file_name()
            .to_str()?
            .parse()
            .ok()
            .map(Pid::from_raw)?;
        let value = variable_of(process.as_raw(), variable)?;
        (process != ours && is_orphan(&value)).then_some(process)
    });
    processes.collect()
}

/// Reads a variable of a process; none where it has ended or is somebody else's.
pub(super) fn variable_of(process: i32, variable: &str) -> Option<OsString> {
    let environment = fs::read(format!("/proc/{process}/environ")).ok()?;
    environment.split(|byte| *byte == 0).find_map(|pair| {
        let value = pair.strip_prefix(variable.as_bytes())?;
        value
            .strip_prefix(b"=")
            .map(|value| OsStr::from_bytes(value).to_owned())
    })
}
