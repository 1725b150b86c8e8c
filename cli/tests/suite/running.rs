//! `up`: one at a time, stopped by signals, and what verbs record without it is not lost on it.
mod cassettes;
mod deploying;
mod following;
mod interrupting;
mod rehearsing;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use ropewalk_bus::Poker;
use serde_json::Value;

use crate::world::{World, one_line};

#[test]
fn a_termination_is_a_success_and_ctrl_c_is_not() {
    let world = World::scripted();
    // The last is that of a terminal that is closed.
    for (signal, code) in [
        (Signal::SIGTERM, 0),
        (Signal::SIGINT, 2),
        (Signal::SIGHUP, 0),
    ] {
        let up = world.up_attached();
        assert_eq!(up.stop(signal), Some(code));
    }
}

#[test]
fn what_is_to_outlive_its_terminal_does() {
    let world = World::scripted();
    let up = world.up_detached();
    up.signal(Signal::SIGHUP);
    world.run("idea new Walks");
    let mut chat = world.ropewalk(["idea", "chat", "walks"]);
    chat.write_stdin("I walk every day.").assert().success();
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
}

#[test]
fn who_runs_is_found_by_verbs_that_know_another_runtime_directory_or_none() {
    let world = World::scripted();
    let runtime = world.root().join("run");
    DirBuilder::new().mode(0o700).create(&runtime).unwrap();
    let up = world.up_with(&[("XDG_RUNTIME_DIR", runtime.to_str().unwrap())]);
    let sockets = || {
        let lying = std::fs::read_dir(runtime.join("ropewalk"));
        lying.unwrap().count()
    };
    assert_eq!(sockets(), 2, "what is poked and what is heard");
    for variable in [None, Some("elsewhere"), Some("/run/user/4711")] {
        let mut verb = world.ropewalk(["idea", "new", "Walks"]);
        verb.envs(variable.map(|value| ("XDG_RUNTIME_DIR", value)));
        verb.assert().success();
        assert!(Poker::poke(&world.state()).unwrap());
    }
    // Only beside who runs does a conversation go on without a second instance on the state.
    let mut chat = world.ropewalk(["idea", "chat", "walks"]);
    chat.write_stdin("I walk every day.").assert().success();
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
    assert_eq!(sockets(), 0, "nothing is left");
}

#[test]
fn a_second_process_on_one_state_is_refused() {
    let world = World::scripted();
    let up = world.up();
    let said = world.refused("up", 1);
    assert!(
        said.contains("already runs") && said.contains("process"),
        "{said}"
    );
    let states = || world.run("agent list");
    let agents = || {
        let found = world.json("doctor");
        let mut found = found.as_array().unwrap().iter();
        let agents = found.find(|finding| finding["check"] == "agents");
        agents.cloned().unwrap()
    };
    let began = Instant::now();
    while !states().contains("pm") && began.elapsed() < Duration::from_mins(1) {}
    assert_eq!(agents()["verdict"], "ok", "{}", agents());
    assert!(!states().contains("gone"), "{}", states());
    let process = format!("ropewalk-{}", up.id());
    assert_eq!(up.stop(Signal::SIGKILL), None);
    let parts = states().lines().count() - 1;
    assert_eq!(states().matches("gone").count(), parts, "{}", states());
    let told = agents();
    assert_eq!(told["verdict"], "warn");
    assert!(told["detail"].to_string().contains(&process), "{told}");
    // A process that was killed leaves nothing behind that stops the next one.
    assert_eq!(world.up().stop(Signal::SIGTERM), Some(0));
}

#[test]
fn agents_without_a_shared_store_or_bus_are_refused_and_told_what_to_name() {
    let world = World::scripted();
    let said = world.refused("agent build", 1);
    assert!(
        said.contains("`store.location` is `sqlite`") && said.contains("--store postgres://"),
        "{said}"
    );
    let elsewhere = "agent build pm --store postgres://ada@127.0.0.1:1/habits";
    let said = world.refused(elsewhere, 1);
    assert!(
        said.contains("`bus.transport` is `embedded`") && said.contains("--bus nats://"),
        "{said}"
    );
    let said = world.refused(&format!("{elsewhere} --bus nats"), 1);
    assert!(said.contains("`bus.transport` is `nats`"), "{said}");
    assert!(!world.state().join("processes").exists());
}

#[test]
fn a_message_that_came_before_the_first_start_is_answered() {
    let world = World::scripted();
    let text = "I walk every day and always forget where I have been; I want a list of my walks.";
    world
        .ropewalk(["idea", "new", "Walks", "--text", text])
        .assert()
        .success();
    let up = world.up();
    let began = Instant::now();
    let answered = |idea: &Value| idea["messages"].as_array().unwrap().len() == 2;
    while !answered(&world.json("idea show walks")) {
        assert!(began.elapsed() < Duration::from_mins(1), "nobody answers");
    }
    drop(up);
}

#[test]
fn nobody_need_listen_to_what_is_said_while_it_works() {
    // Whoever listened has left, or has stopped to: then a pipe is soon full.
    for has_left in [true, false] {
        let world = World::scripted();
        let (up, unread) = world.up_unheard();
        let unread = (!has_left).then_some(unread);
        world.run("idea new Walks");
        let messages = || {
            let idea = world.json("idea show walks");
            idea["messages"].as_array().unwrap().len()
        };
        for _ in 0..2 {
            let before = messages();
            let mut chat = world.ropewalk(["idea", "chat", "walks"]);
            chat.write_stdin("I walk every day.").assert().success();
            assert!(messages() > before + 1, "nobody answered");
        }
        assert_eq!(up.stop(Signal::SIGTERM), Some(0));
        if let Some(mut unread) = unread {
            let said = unread.by_ref().map_while(Result::ok);
            let bytes: usize = said.map(|line| line.len() + 1).sum();
            assert!(bytes >= 32_000, "the pipe was not full: {bytes}");
        }
    }
}

#[test]
fn what_is_stopped_stays_so_over_a_restart_until_somebody_lets_it_go_on() {
    let world = World::scripted();
    let text = "I walk every day and always forget where I have been; I want a list of my walks.";
    let messages = || {
        let idea = world.json("idea show walks");
        idea["messages"].as_array().unwrap().len()
    };
    let said = world.refused("resume", 1);
    assert!(
        said.contains("nothing is stopped; `ropewalk build resume BUILD`"),
        "{said}"
    );
    let stop = |reason: &str| {
        let mut command = world.ropewalk(["stop", "--reason"]);
        command.arg(reason);
        command
    };
    let said = one_line(stop(&"x".repeat(100_000)), 1);
    assert!(
        said.contains("100000 bytes, and 8192 is the most"),
        "{said}"
    );
    assert!(world.refused("resume", 1).contains("nothing is stopped"));
    stop(&format!("dear {}", "x".repeat(8_000)))
        .assert()
        .success();
    let up = world.up();
    world
        .ropewalk(["idea", "new", "Walks", "--text", text])
        .assert()
        .success();
    // A model that may be asked answers within a second.
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(messages(), 1, "a model was asked");
    let looked = world.ropewalk(["build", "list"]).assert().success();
    let noted = String::from_utf8_lossy(&looked.get_output().stderr).into_owned();
    assert!(
        noted.contains("`ropewalk resume` lets it go on") && noted.len() < 400,
        "{noted}"
    );
    let waited = world.ropewalk(["idea", "chat", "walks"]).assert();
    let ended = String::from_utf8_lossy(&waited.get_output().stderr).into_owned();
    assert!(
        ended.contains("stopped everything at") && ended.contains("it is kept"),
        "{ended}"
    );
    let said = world.refused("stop", 1);
    assert!(said.contains("stopped everything at"), "{said}");
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
    let up = world.up();
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(messages(), 1, "a model was asked after a restart");
    world.run("resume");
    let began = Instant::now();
    while messages() == 1 {
        assert!(began.elapsed() < Duration::from_mins(1), "nobody answers");
    }
    drop(up);
}

#[test]
fn a_verb_that_waits_is_stopped_by_ctrl_c() {
    let world = World::scripted();
    world.run("idea new Walks");
    let mut child = Process::new(env!("CARGO_BIN_EXE_ropewalk"))
        .args(["event", "tail", "--after", "0"])
        .current_dir(world.repository())
        .env("HOME", world.home())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut reader = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut reader, &mut line).unwrap();
    assert!(line.contains("ideation.message"), "{line}");
    let pid = nix::unistd::Pid::from_raw(child.id().try_into().unwrap());
    nix::sys::signal::kill(pid, Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

#[test]
fn knowledge_is_added_once_and_found_again() {
    let world = World::scripted();
    let lesson = "Walks over midnight belong to the day on which they begin";
    let add = ["knowledge", "add", lesson, "--file", "src/*.rs", "--json"];
    let first = world
        .ropewalk(add)
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    let first: Value = serde_json::from_slice(&first).unwrap();
    assert_eq!(first["outcome"], "added");
    let again = world
        .ropewalk(add)
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    let again: Value = serde_json::from_slice(&again).unwrap();
    assert_eq!(
        (&again["outcome"], &again["id"]),
        (&"seen-again".into(), &first["id"])
    );
    let said = world.ropewalk(add[..5].iter().copied()).assert().success();
    let said = String::from_utf8_lossy(&said.get_output().stdout).into_owned();
    assert!(
        said.contains("known already") && !said.contains("once more"),
        "who says it twice counts once: {said}"
    );
    let found = world.json("knowledge search midnight");
    assert_eq!(found.as_array().unwrap().len(), 1);
    assert_eq!(found[0]["globs"], serde_json::json!(["src/*.rs"]));
    let id = first["id"].as_str().unwrap();
    assert!(world.run(&format!("knowledge show {id}")).contains(lesson));
    assert_eq!(world.json("lock list"), Value::Array(Vec::new()));
    assert_eq!(world.json("wait list"), Value::Array(Vec::new()));
    assert!(world.run("wait graph --dot").starts_with("digraph"));
    assert!(world.run("wait graph --svg").starts_with("<svg "));
}
