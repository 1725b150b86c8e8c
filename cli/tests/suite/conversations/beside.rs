//! A conversation that is stopped, that is in the way of another verb, or whose agents go away.

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

#[test]
fn a_verb_whose_agent_a_conversation_lacks_is_refused_by_name() {
    let world = World::scripted();
    begin(&world, "walks");
    let mut chat = Chat::start(&world);
    // Its agents are known by then.
    chat.says("[exploring");
    let said = world.refused("spec generate walks", 1);
    assert!(said.contains("`ropewalk idea chat`"), "{said}");
    assert!(said.contains("`specification`"), "{said}");
    assert!(said.contains("end that one first"), "{said}");
    assert!(said.contains("beside `ropewalk up` several"), "{said}");
    assert!(!said.contains("run `ropewalk up` instead"), "{said}");
    chat.writes("and hills\n");
    chat.says("[exploring");
    let (code, said) = chat.interrupted();
    assert_eq!(code, Some(2), "{said}");
}

#[test]
fn whoever_talks_to_agents_that_go_away_is_told_at_once() {
    let world = World::scripted();
    begin(&world, "walks");
    let up = world.up();
    let mut chat = Chat::start(&world);
    chat.says("[exploring");
    assert_eq!(up.stop(Signal::SIGKILL), None);
    chat.writes("and hills\n");
    chat.says("the process that ran the agents has ended; waiting 15 s for another");
    let (code, said) = chat.interrupted();
    assert_eq!(code, Some(2), "{said}");
    assert_eq!(super::messages(&world, "walks", "person"), 2, "it is kept");
}
