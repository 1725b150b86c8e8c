//! Looking back at what happened: cut by time, source, type and chain, always in commit order (V27).

use std::io::{BufRead, BufReader};
use std::process::{Child, Command as Process, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::approvals::specified;
use crate::world::{BINARY, World};

/// Starts a verb that follows what happens.
fn following(world: &World, verb: &str) -> Child {
    Process::new(BINARY)
        .args(verb.split(' '))
        .env_clear()
        .envs(world.environment())
        .current_dir(world.repository())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Runs a verb that follows what happens, reads its first line and closes its ears; what `happens` then ends it.
fn heard_enough(world: &World, verb: &str, happens: impl Fn()) {
    let mut program = following(world, verb);
    let mut first = String::new();
    let mut said = BufReader::new(program.stdout.take().unwrap());
    said.read_line(&mut first).unwrap();
    assert!(!first.is_empty(), "{verb}");
    drop(said);
    happens();
    let began = Instant::now();
    loop {
        if let Some(ended) = program.try_wait().unwrap() {
            assert!(ended.success(), "{verb}: {ended}");
            return;
        }
        if began.elapsed() > Duration::from_mins(1) {
            program.kill().unwrap();
            panic!("`{verb}` follows for nobody");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_follows_ends_when_nobody_reads_it() {
    let world = World::scripted();
    let spec = specified(&world);
    heard_enough(&world, "event tail --after 0", || {
        world.run("idea new Hills");
    });
    world.write(
        "../script.yaml",
        "- agent: build\n  reply: { delay_ms: 600000, text: x }\n",
    );
    let _up = world.up();
    let [id, hash] = ["id", "hash"].map(|name| spec[name].as_str().unwrap());
    let approved = world.json(&format!("spec approve {id} --hash {hash}"));
    let build = approved["build"].as_str().unwrap();
    heard_enough(&world, &format!("build log {build} --follow"), || {
        world.run(&format!("build priority {build} 3"));
    });
}

#[test]
fn words_a_tool_and_a_cost_are_told_while_the_model_works() {
    let world = World::scripted();
    let spec = specified(&world);
    world.write(
        "../script.yaml",
        "- agent: build\n  task: T-001\n  turn: 1\n  reply: { text: Let us see., tools: [\n\
         \x20   { name: bash, input: { command: \"echo seen\" } },\n\
         \x20   { name: write, input: { path: a.txt, content: \"a walk\\n\" } }] }\n\
         - agent: build\n  task: T-001\n  reply: { tools: [{ name: finish, input: { summary: Wrote it. } }] }\n\
         - agent: build\n  reply: { delay_ms: 600000, text: x }\n",
    );
    let _up = world.up();
    let [id, hash] = ["id", "hash"].map(|name| spec[name].as_str().unwrap());
    let approved = world.json(&format!("spec approve {id} --hash {hash}"));
    let build = approved["build"].as_str().unwrap();
    let mut follower = following(&world, &format!("build log {build} --follow"));
    let lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    // The other tasks never end: whatever is told is told meanwhile.
    let mut wanted = vec![
        "says  (",
        "Let us see.",
        "calls bash command=echo seen",
        "bash answered",
        "calls write path=a.txt",
        "| +a walk",
        "the gate took it",
    ];
    let mut told = String::new();
    for line in lines.map_while(Result::ok) {
        wanted.retain(|wanted| !line.contains(wanted));
        told = told + &line + "\n";
        if wanted.is_empty() {
            break;
        }
    }
    follower.kill().unwrap();
    follower.wait().unwrap();
    assert!(wanted.is_empty(), "{wanted:?} in {told}");
    assert_eq!(
        world.json(&format!("build show {build}"))["state"],
        "running"
    );
}

fn positions(events: &Value) -> Vec<i64> {
    let events = events.as_array().unwrap().iter();
    events
        .map(|event| event["sequence"].as_i64().unwrap())
        .collect()
}

#[test]
fn the_timeline_is_cut_by_time_source_type_and_chain_in_commit_order() {
    let world = World::scripted();
    for name in ["Walks", "Rests", "Hills"] {
        world.run(&format!("idea new {name}"));
    }
    let all = world.json("event list");
    assert_eq!(positions(&all), [1, 2, 3]);
    let second = &all[1];
    for field in [
        "id",
        "time",
        "source",
        "type",
        "subject",
        "data",
        "correlationid",
    ] {
        assert!(!second[field].is_null(), "{field}: {second}");
    }
    assert_eq!(second["priority"], 1, "people wait for it");
    let (time, chain) = (
        second["time"].as_str().unwrap(),
        second["correlationid"].as_str().unwrap(),
    );
    for (cut, expected) in [
        (format!("--since {time}"), vec![2, 3]),
        (format!("--until {time}"), vec![1]),
        (format!("--since {time} --until {time}"), vec![]),
        (format!("--correlation {chain}"), vec![2]),
        ("--source cli --type ideation.*".to_owned(), vec![1, 2, 3]),
        ("--source loop-1".to_owned(), vec![]),
        ("--type task.*".to_owned(), vec![]),
        ("--limit 2".to_owned(), vec![2, 3]),
    ] {
        let found = world.json(&format!("event list {cut}"));
        assert_eq!(positions(&found), expected, "{cut}");
    }
    let said = world.refused("event list --since yesterday", 3);
    assert!(said.contains("2026-11-21T08:00:00Z"), "{said}");
}

#[test]
fn the_last_digits_of_an_id_are_enough_for_an_event_and_a_chain() {
    let world = World::scripted();
    for name in ["Walks", "Rests", "Hills"] {
        world.run(&format!("idea new {name}"));
    }
    let all = world.json("event list");
    let (id, chain) = (
        last_digits(&all[1]["id"]),
        last_digits(&all[1]["correlationid"]),
    );
    assert_eq!(world.json(&format!("event show {id}"))["sequence"], 2);
    let found = world.json(&format!("event list --correlation {chain}"));
    assert_eq!(positions(&found), [2]);
    let told = world.json(&format!(
        "event tail --after 0 --count 1 --correlation {chain}"
    ));
    assert_eq!(told["sequence"], 2);
    // What they begin with tells when they were made, which is the same for all three.
    for (field, verb) in [
        ("id", "event show"),
        ("correlationid", "event list --correlation"),
    ] {
        let whole = all[1][field].as_str().unwrap();
        let said = world.refused(&format!("{verb} {}", &whole[..6]), 1);
        assert!(
            said.contains("fits 3 of them: ") && said.contains(whole),
            "{said}"
        );
    }
    for verb in [
        "event show",
        "event list --correlation",
        "event replay pm --from",
    ] {
        let said = world.refused(&format!("{verb} 00000000-abc"), 1);
        assert!(said.contains("`ropewalk event list"), "{said}");
    }
    world.refused("event list --correlation walks", 3);
}

fn last_digits(id: &Value) -> String {
    let id = id.as_str().unwrap();
    id[id.len() - 8..].to_owned()
}

#[test]
fn what_happened_before_a_subscriber_began_is_handed_to_it_once() {
    let world = World::scripted();
    world.run("stop");
    world.run("resume");
    let said = world.refused("event replay notify.terminal --from 1", 1);
    assert!(
        said.contains("no subscriber is called `notify.terminal`"),
        "{said}"
    );
    world.refused("event replay notify.terminal --from 0", 3);
    let config = std::fs::read_to_string(world.repository().join("ropewalk.toml")).unwrap();
    world.write(
        "ropewalk.toml",
        &format!("{config}\n[notices]\nterminal = true\n"),
    );
    let up = world.up();
    let deliveries = || {
        let event = world.json("event show 1");
        let deliveries = event["deliveries"].as_array().unwrap();
        let terminal = |one: &&Value| one["subscriber"] == "notify.terminal";
        deliveries.iter().filter(terminal).count()
    };
    assert_eq!(deliveries(), 0, "what was before it is no news");
    let told = |from: &str, expected: u64| {
        let done = world.json(&format!("event replay notify.terminal --from {from}"));
        assert_eq!(done["events"], expected, "{done}");
    };
    let second = world.json("event show 2");
    told(&last_digits(&second["id"]), 1);
    assert_eq!(deliveries(), 0, "it is before the one that was named");
    told("1", 1);
    assert_eq!(deliveries(), 1);
    told("1", 0);
    let said = world.refused("event replay nobody --from 1", 1);
    assert!(said.contains("`notify.terminal`"), "{said}");
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
}
