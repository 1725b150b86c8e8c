//! Makes namespaces for a command where there is no bubblewrap: its own users, mounts, processes, network and queues.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::process::Command;

use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{getegid, geteuid};

use super::plan::Plan;
use super::stage::{Fault, Stage, WORD};
use super::starter::Starter;
use super::{capabilities, init, loopback, tree};

/// This very program, also when its file was replaced meanwhile.
const SELF: &str = "/proc/self/exe";

/// Makes the namespaces, starts their first process, and returns what it exits with.
pub(super) fn make(text: &OsStr, command: &[OsString]) -> Result<u8, Fault> {
    let starter = Starter::of_this_process();
    let starter = starter.map_err(Fault::at("watch over who started it"))?;
    separate().map_err(Fault::at("make namespaces"))?;
    // The first process is another program in the eyes of the kernel, and would lose them.
    capabilities::hand_on().map_err(Fault::at("keep the capabilities"))?;
    let mut first = Command::new(SELF)
        .arg(WORD)
        .arg(Stage::First.word())
        .arg(text)
        .args(command)
        .spawn()
        .map_err(Fault::at("start the first process"))?;
    // The command is asked to end by a signal to the whole group; whoever waits for it stays.
    let mut asked = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        asked.add(signal);
    }
    asked
        .thread_block()
        .map_err(Fault::at("wait for the command"))?;
    let status = starter
        .wait_for(&mut first)
        .map_err(Fault::at("wait for the command"))?;
    Ok(init::code(status))
}

fn separate() -> io::Result<()> {
    let own = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWCGROUP;
    let (user, group) = (geteuid(), getegid());
    match unshare(own | CloneFlags::CLONE_NEWUSER) {
        Ok(()) => {}
        // Root needs nobody's leave, where users may not have namespaces.
        Err(_) if user.is_root() => return Ok(unshare(own)?),
        Err(error) => return Err(error.into()),
    }
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Builds what the command sees, as the first process of its namespaces.
pub(super) fn furnish(plan: &Plan) -> Result<(), Fault> {
    loopback::bring_up().map_err(Fault::at("bring its loopback up"))?;
    tree::enter(plan)
}
