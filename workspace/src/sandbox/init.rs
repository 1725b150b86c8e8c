//! Is the first process of a confined command: gives up what it may do, starts the command, and waits for it.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, ExitStatus};
use std::sync::{Arc, OnceLock};

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, chdir};

use super::plan::Plan;
use super::stage::{Fault, VOICE};
use super::{capabilities, fence, filter, forward, limits};

/// What a shell says of a program that is not there.
const NOT_FOUND: u8 = 127;
/// What a shell adds to the number of a signal.
const SIGNALLED: u8 = 128;

/// Runs `command` inside; whatever it started ends with this process.
pub(super) fn run(plan: &Plan, command: &[OsString]) -> Result<u8, Fault> {
    confine(plan)?;
    let [program, arguments @ ..] = command else {
        let nothing = io::Error::from(io::ErrorKind::InvalidInput);
        return Err(Fault::at("start a command")(nothing));
    };
    let mut started = Command::new(program);
    started.args(arguments);
    if let Some(door) = &plan.door {
        let address = forward::begin(door).map_err(Fault::at("lead to the hosts"))?;
        forward::tell(&mut started, address);
    }
    let before = limits::Before::look(plan).map_err(Fault::at("look at the disk"))?;
    let child = match started.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(NOT_FOUND),
        Err(error) => return Err(Fault::at("start the command")(error)),
    };
    let too_much = watch(plan.clone(), before);
    let id = i32::try_from(child.id()).unwrap_or_default();
    let code = wait(Pid::from_raw(id)).map_err(Fault::at("wait for the command"))?;
    if let Some(reason) = too_much.get() {
        tell(reason);
    }
    Ok(code)
}

fn confine(plan: &Plan) -> Result<(), Fault> {
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(Fault::at("end with its starter"))?;
    // What it knows and may do is none of the command's business, which has the same user.
    prctl::set_dumpable(false).map_err(Fault::at("hide"))?;
    chdir(&plan.directory).map_err(Fault::at(format!("go to `{}`", plan.directory.display())))?;
    limits::set(plan).map_err(Fault::at("set limits"))?;
    prctl::set_no_new_privs().map_err(Fault::at("give up privileges"))?;
    capabilities::drop_all().map_err(Fault::at("give up capabilities"))?;
    fence::restrict(plan).map_err(|error| Fault::at("restrict files")(io::Error::other(error)))?;
    filter::apply().map_err(|error| Fault::at("filter system calls")(io::Error::other(error)))
}

/// Ends the command, with all that it started, when it uses up more than it may.
fn watch(plan: Plan, before: limits::Before) -> Arc<OnceLock<String>> {
    let reason = Arc::new(OnceLock::new());
    let told = Arc::clone(&reason);
    std::thread::spawn(move || {
        told.get_or_init(|| reason_of(|| limits::exceeded(&plan, &before)));
        // Everyone but this process; again, since what forks meanwhile is not hit.
        while kill(Pid::from_raw(-1), Signal::SIGKILL).is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    });
    reason
}

/// Returns what `look` found; whoever cannot be watched any more is not left to run.
fn reason_of(look: impl FnOnce() -> String) -> String {
    let found = catch_unwind(AssertUnwindSafe(look));
    found.unwrap_or_else(|_| "what it uses up can no longer be seen".to_owned())
}

/// Waits for the command, and for whatever lost its parent meanwhile.
fn wait(command: Pid) -> nix::Result<u8> {
    loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(process, code)) if process == command => {
                return Ok(u8::try_from(code & 0xff).unwrap_or_default());
            }
            Ok(WaitStatus::Signaled(process, signal, _)) if process == command => {
                return Ok(of_signal(signal as i32));
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
}

fn of_signal(signal: i32) -> u8 {
    SIGNALLED.saturating_add(u8::try_from(signal).unwrap_or_default())
}

/// Returns what a shell would say of `status`.
pub(super) fn code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code & 0xff).unwrap_or_default(),
        (None, signal) => of_signal(signal.unwrap_or_default()),
    }
}

#[expect(
    clippy::print_stderr,
    reason = "the caller reads the output of the command"
)]
fn tell(reason: &str) {
    eprintln!("{VOICE}the command was stopped: {reason}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_that_ends_by_a_fault_is_a_reason_to_stop() {
        assert_eq!(reason_of(|| "too much".to_owned()), "too much");
        let unseen = reason_of(|| panic!("nothing to look at"));
        assert_eq!(unseen, "what it uses up can no longer be seen");
    }
}
