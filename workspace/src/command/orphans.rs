//! Ends commands whose starter was killed before it could.
//!
//! Each child carries the name of its owner in its environment, which all that it starts inherits, also what left its
//! process group. Where there is no `/proc` nothing is found.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Names the owner in the environment of a child.
pub(super) const OWNER: &str = "ROPEWALK_OWNER";

/// How often the table of processes is gone through: one that was just forked is seen the next time.
const ROUNDS: u32 = 20;
/// How long a killed process has to go away before the next round.
const PAUSE: Duration = Duration::from_millis(20);

/// Kills every process whose owner `is_gone`, and what it started; returns how many that were.
///
/// To be called by whoever has taken over what the owner had, before it starts commands of its own.
pub async fn end_orphans(is_gone: impl Fn(&str) -> bool) -> usize {
    let mut ended = std::collections::HashSet::new();
    for _ in 0..ROUNDS {
        let found = orphans(&is_gone);
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

fn orphans(is_gone: &impl Fn(&str) -> bool) -> Vec<Pid> {
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
        let owner = owner(&entry.path())?;
        (process != ours && is_gone(&owner)).then_some(process)
    });
    processes.collect()
}

/// Reads the owner of a process; none for those of others and those that have ended.
fn owner(process: &Path) -> Option<String> {
    let environment = fs::read(process.join("environ")).ok()?;
    let owner = environment.split(|byte| *byte == 0).find_map(|variable| {
        let value = variable.strip_prefix(OWNER.as_bytes())?;
        value.strip_prefix(b"=")
    })?;
    String::from_utf8(owner.to_vec()).ok()
}
