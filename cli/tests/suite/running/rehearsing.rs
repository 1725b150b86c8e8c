//! Whoever watches a rehearsal that goes wrong hears so when it ends, and not only when they leave; one that goes well is watched
//! in a browser.

use std::io::{BufRead, BufReader};
use std::process::{Command as Process, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::world::{BINARY, World, stand_in};

/// What Ctrl-C ends with.
const INTERRUPTED: Option<i32> = Some(2);

/// Watches a rehearsal whose `cargo` does `does`; returns what is said when it has ended, and the exit code after Ctrl-C.
fn watched(does: &str) -> (String, Option<i32>) {
    let world = World::bare_of_project();
    let tools = world.root().join("tools");
    std::fs::create_dir(&tools).unwrap();
    stand_in(&tools, "cargo", does);
    let rest = std::env::var_os("PATH").unwrap().into_string().unwrap();
    let mut program = Process::new(BINARY)
        .args(["rehearse", "--watch", "--dir", "../rehearsal"])
        .env_clear()
        .envs(world.environment())
        .env("PATH", format!("{}:{rest}", tools.display()))
        .current_dir(world.repository())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(program.stderr.take().unwrap()).lines();
    let ended = lines
        .by_ref()
        .map(Result::unwrap)
        .find(|line| line.contains("stay until Ctrl-C"))
        .unwrap();
    kill(
        Pid::from_raw(program.id().try_into().unwrap()),
        Signal::SIGINT,
    )
    .unwrap();
    lines.for_each(drop);
    (ended, program.wait().unwrap().code())
}

#[test]
fn a_watched_rehearsal_that_fails_says_so_at_its_end() {
    let (said, code) = watched("[ \"$1\" = --version ]");
    assert!(said.contains("did not reach its goal"), "{said}");
    assert_eq!(code, INTERRUPTED);
}
