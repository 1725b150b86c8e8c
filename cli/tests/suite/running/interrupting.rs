//! A signal that comes before a verb has begun to run agents ends it all the same.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};

use crate::approvals::{documented, until};
use crate::conversations::begin;
use crate::world::{BINARY, World, stand_in};

/// What a person interrupted.
const CANCELLED: Option<i32> = Some(2);

/// A `git` at which the program waits when it calls it first: before it runs any agent.
struct Gate {
    /// Where it stands.
    path: String,
}

impl Gate {
    fn build(world: &World, name: &str) -> Self {
        let folder = world.root().join(name);
        fs::create_dir(&folder).unwrap();
        for name in ["reached", "opened"] {
            mkfifo(&folder.join(name), Mode::S_IRWXU).unwrap();
        }
        let git = format!(
            "PATH=${{PATH#*:}}\nif mkdir '{0}/passed' 2>/dev/null; then\n  echo > '{0}/reached'\n  cat '{0}/opened'\nfi\nexec git \"$@\"",
            folder.display()
        );
        stand_in(&folder, "git", &git);
        stand_in(&folder, "cargo", "exit 0");
        let rest = std::env::var_os("PATH").unwrap().into_string().unwrap();
        Self {
            path: format!("{}:{rest}", folder.display()),
        }
    }

    /// Sends `signal` to a program that stands at the gate, which waits there no longer.
    fn signal_and_leave(&self, program: &Child, signal: Signal) {
        // A pipe with a name opens when the other end does.
        let mut reached = String::new();
        let mut pipe = File::open(self.folder().join("reached")).unwrap();
        pipe.read_to_string(&mut reached).unwrap();
        kill(Pid::from_raw(program.id().try_into().unwrap()), signal).unwrap();
    }

    /// Sends `signal` to a program that stands at the gate, then lets it pass.
    fn signal(&self, program: &Child, signal: Signal) {
        self.signal_and_leave(program, signal);
        drop(File::create(self.folder().join("opened")).unwrap());
    }

    fn folder(&self) -> &Path {
        Path::new(self.path.split(':').next().unwrap())
    }
}

fn begun(world: &World, verb: &str, path: &str) -> Child {
    Process::new(BINARY)
        .args(verb.split(' '))
        .env_clear()
        .envs(world.environment())
        .env("PATH", path)
        .current_dir(world.repository())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_signal_before_the_agents_run_is_not_lost() {
    let world = World::scripted();
    world.write_untrusted("../text.md", "# Walks\n\nA list of my walks.\n");
    let gate = Gate::build(&world, "first");
    let verb = "spec generate --from ../text.md";
    let mut program = begun(&world, verb, &gate.path);
    gate.signal(&program, Signal::SIGINT);
    assert_eq!(program.wait().unwrap().code(), CANCELLED);
    assert_eq!(world.json("spec list"), serde_json::json!([]));
    let rehearsal = world.root().join("rehearsal");
    let verb = format!("rehearse --dir {}", rehearsal.display());
    let gate = Gate::build(&world, "second");
    let mut program = begun(&world, &verb, &gate.path);
    gate.signal(&program, Signal::SIGINT);
    assert_eq!(program.wait().unwrap().code(), CANCELLED);
}

#[test]
fn whoever_ends_a_program_that_starts_has_ended_it_in_order() {
    for (signal, code) in [(Signal::SIGTERM, Some(0)), (Signal::SIGINT, CANCELLED)] {
        let world = World::scripted();
        let gate = Gate::build(&world, "gate");
        let mut program = begun(&world, "up", &gate.path);
        gate.signal_and_leave(&program, signal);
        assert_eq!(program.wait().unwrap().code(), code, "{signal}");
    }
}

#[test]
fn a_signal_is_not_lost_beside_another_process_either() {
    let world = World::scripted();
    world.write_untrusted("../text.md", "# Walks\n\nA list of my walks.\n");
    // The model takes longer than anybody waits.
    let script = fs::read_to_string(world.root().join("script.yaml")).unwrap();
    let slow = "- agent: specification\n  reply: { delay_ms: 600000, tools: [{ name: reply, input: {} }] }\n";
    world.write("../script.yaml", &format!("{slow}{script}"));
    let _up = world.up();
    let gate = Gate::build(&world, "gate");
    let mut program = begun(&world, "spec generate --from ../text.md", &gate.path);
    gate.signal(&program, Signal::SIGINT);
    assert_eq!(program.wait().unwrap().code(), CANCELLED);
}

#[test]
fn a_signal_ends_a_verb_that_reads_its_text() {
    let world = World::scripted();
    let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
    let mut program = begun(&world, "spec generate --from -", &path);
    let mut text = program.stdin.take().unwrap();
    // The pipe holds one page: when more is written, the program reads.
    let page = nix::fcntl::fcntl(&text, nix::fcntl::FcntlArg::F_SETPIPE_SZ(4096)).unwrap();
    let long = vec![b'x'; 2 * usize::try_from(page).unwrap()];
    text.write_all(&long).unwrap();
    let id = Pid::from_raw(program.id().try_into().unwrap());
    kill(id, Signal::SIGINT).unwrap();
    assert_eq!(program.wait().unwrap().code(), CANCELLED);
    drop(text);
    assert_eq!(world.json("idea list"), serde_json::json!([]));
}

#[test]
fn a_stop_waits_for_no_model_that_thinks_and_the_next_start_asks_it_again() {
    let world = World::scripted();
    documented(&world, "hills");
    let script = fs::read_to_string(world.root().join("script.yaml")).unwrap();
    let slow = |agent: &str| {
        format!("- {{ agent: {agent}, reply: {{ delay_ms: 600000, text: late }} }}\n{script}")
    };
    let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
    for agent in ["ideation", "specification"] {
        world.write("../script.yaml", &slow(agent));
        let up = world.up();
        let asked = match agent {
            "ideation" => {
                begin(&world, "walks");
                None
            }
            _ => Some(begun(&world, "spec generate hills", &path)),
        };
        until(&world, "agent list", |agents| {
            let mut agents = agents.as_array().unwrap().iter();
            agents.any(|one| one["name"] == agent && one["state"] == "active")
        });
        let began = Instant::now();
        assert_eq!(up.stop(Signal::SIGINT), CANCELLED);
        let took = began.elapsed();
        // Whatever is waited for is cut off after eight seconds, and says so; a model that never answers holds nothing for a minute.
        assert!(took < Duration::from_mins(1), "{agent}: {took:?}");
        let log = std::fs::read_to_string(world.root().join("up.log")).unwrap();
        assert!(!log.contains("are cut off"), "{agent}: {log}");
        if let Some(mut asked) = asked {
            asked.kill().unwrap();
            asked.wait().unwrap();
        }
    }
    world.write("../script.yaml", &script);
    let _up = world.up();
    until(&world, "idea show walks", |idea| {
        let messages = idea["messages"].as_array().unwrap();
        messages.iter().any(|message| message["author"] == "agent")
    });
    until(&world, "spec list", |specs| {
        specs[0]["state"] == "generated"
    });
}
