//! Is what the program does when it is started again to confine a command: before any thread, and never for a person.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::unistd::close;

use super::plan::Plan;
use super::stage::{Fault, Stage, VOICE, WORD};
use super::{groups, init, namespaces};

/// What a helper exits with when it could not confine, so that nothing ran.
const CANNOT: u8 = 125;
/// What this process has open, each under its number.
const OPEN_FILES: &str = "/proc/self/fd";
/// The last of the three streams, which are all that a command is given.
const LAST_STREAM: RawFd = 2;
/// Says that this program asked first whether it is a helper, so that it may be started again as one.
static ASKED: AtomicBool = AtomicBool::new(false);

/// Returns this program, if it becomes a helper when it is started again.
pub fn helper() -> Option<PathBuf> {
    let asked = ASKED.load(Ordering::Relaxed);
    asked.then(std::env::current_exe).and_then(Result::ok)
}

/// Confines a command if `arguments`, the program's name first, ask for that; `None` where a person did not.
///
/// To be called before anything else: a process with a second thread can have no namespaces of its own.
pub fn enter(arguments: &[OsString]) -> Option<ExitCode> {
    ASKED.store(true, Ordering::Relaxed);
    let [_, word, rest @ ..] = arguments else {
        return None;
    };
    (word == WORD).then(|| ExitCode::from(obey(rest)))
}

fn obey(arguments: &[OsString]) -> u8 {
    if let Err(error) = close_inherited() {
        return refuse(&format!("cannot close what was left open: {error}"));
    }
    let [stage, plan, command @ ..] = arguments else {
        return refuse(&"a stage, a plan and a command are needed");
    };
    let Some(stage) = stage.to_str().and_then(Stage::parse) else {
        return refuse(&"there is no such stage");
    };
    let parsed = plan.to_str().map(serde_json::from_str::<Plan>);
    let Some(Ok(parsed)) = parsed else {
        return refuse(&"the plan cannot be read");
    };
    let ended = match stage {
        Stage::Grouped => grouped(&parsed, command),
        Stage::Namespaces => join(&parsed).and_then(|()| namespaces::make(plan, command)),
        Stage::First => namespaces::furnish(&parsed).and_then(|()| init::run(&parsed, command)),
        Stage::Inside => init::run(&parsed, command),
    };
    ended.unwrap_or_else(|fault| refuse(&fault))
}

/// Closes what whoever started this program left open, such as a lock or a log: it is none of the command's business.
///
/// To be called before this process opens anything by itself.
fn close_inherited() -> io::Result<()> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(OPEN_FILES)? {
        let name = entry?.file_name();
        numbers.extend(name.to_str().and_then(|name| name.parse::<RawFd>().ok()));
    }
    for number in numbers.into_iter().filter(|number| *number > LAST_STREAM) {
        // The list itself was among them, and is closed by now.
        close(number).ok();
    }
    Ok(())
}

fn join(plan: &Plan) -> Result<(), Fault> {
    groups::join(&plan.groups).map_err(Fault::at("join its group"))
}

/// Becomes `command`, in the group of `plan`.
fn grouped(plan: &Plan, command: &[OsString]) -> Result<u8, Fault> {
    join(plan)?;
    let [program, arguments @ ..] = command else {
        let nothing = io::Error::from(io::ErrorKind::InvalidInput);
        return Err(Fault::at("become a command")(nothing));
    };
    let failed = Command::new(program).args(arguments).exec();
    Err(Fault::at("become the command")(failed))
}

#[expect(
    clippy::print_stderr,
    reason = "the caller reads the output of the command"
)]
fn refuse(reason: &dyn std::fmt::Display) -> u8 {
    eprintln!("{VOICE}the command could not be confined and did not run: {reason}");
    CANNOT
}
