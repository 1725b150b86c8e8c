//! A conversation over pipes that is stopped.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStderr, Command as Process, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::begin;
use crate::world::{BINARY, World};

/// A conversation over pipes.
struct Chat {
    child: Child,
    said: Lines<BufReader<ChildStderr>>,
}

impl Chat {
    fn start(world: &World) -> Self {
        let mut child = Process::new(BINARY)
            .args(["idea", "chat", "walks"])
            .env_clear()
            .envs(world.environment())
            .current_dir(world.repository())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, said }
    }

    fn writes(&mut self, lines: &str) {
        let pipe = self.child.stdin.as_mut().unwrap();
        pipe.write_all(lines.as_bytes()).unwrap();
    }

    /// Waits until it says `text`.
    fn says(&mut self, text: &str) {
        let mut said = self.said.by_ref().map_while(Result::ok);
        assert!(said.any(|line| line.contains(text)), "not `{text}`");
    }

    /// Interrupts it; returns its exit code, and what it said at the end.
    fn interrupted(mut self) -> (Option<i32>, String) {
        let id = Pid::from_raw(self.child.id().try_into().unwrap());
        kill(id, Signal::SIGINT).unwrap();
        let said: Vec<String> = self.said.by_ref().map_while(Result::ok).collect();
        (self.child.wait().unwrap().code(), said.join("\n"))
    }
}

#[test]
fn lines_that_a_stopped_conversation_did_not_keep_are_named() {
    let world = World::scripted();
    begin(&world, "walks");
    world.run("stop");
    // The opening still waits for its reply, and nothing is taken before it comes.
    let mut chat = Chat::start(&world);
    chat.writes("first\n\nsecond\nthird\nfourth\nfifth\n");
    chat.says("waiting: ");
    let (code, said) = chat.interrupted();
    assert_eq!(code, Some(2), "{said}");
    let expected = "not kept: `first`, `second`, `third` and 2 more lines";
    assert!(said.contains(expected), "{said}");
    assert_eq!(super::messages(&world, "walks", "person"), 1);
}
