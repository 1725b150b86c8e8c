//! What models were asked and answered is recorded, and answers again when their provider is gone.

use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use ropewalk_tests::servers::Aimock;
use serde_json::{Value, json};

use crate::approvals::{specified, text};
use crate::world::{World, one_task};

/// So long a build takes at most.
const PATIENCE: Duration = Duration::from_mins(3);

fn calls(number: u32, tool: &str, arguments: &Value) -> Value {
    json!({
        "blocks": [{ "type": "toolCall", "id": format!("call_{number}"), "name": tool, "arguments": arguments }],
        "usage": { "input_tokens": 900, "output_tokens": 120, "prompt_tokens": 900,
                   "completion_tokens": 120, "total_tokens": 1020 },
    })
}

/// Starts an emulator whose model writes the file, looks at it and hands it in.
fn emulator(directory: &Path) -> Aimock {
    let after = |number: u32| json!({ "toolCallId": format!("call_{number}") });
    let file = json!({ "path": "a.txt", "content": "a walk\n" });
    let fixtures = json!([
        { "match": after(2), "response": calls(3, "finish", &json!({ "summary": "Wrote the list." })) },
        { "match": after(1), "response": calls(2, "read", &json!({ "path": "a.txt" })) },
        { "match": { "toolName": "write" }, "response": calls(1, "write", &file) },
    ]);
    let path = directory.join("fixtures.json");
    std::fs::write(&path, json!({ "fixtures": fixtures }).to_string()).unwrap();
    Aimock::start(&path).unwrap()
}

/// Makes a project whose task is checked by `check` and built by a model at `url`.
fn project(url: &str, check: &str) -> World {
    let world = World::scripted();
    world.write("../script.yaml", &one_task(check));
    let config = std::fs::read_to_string(world.repository().join("ropewalk.toml")).unwrap();
    let config = config.replace("build = \"script/x\"", "build = \"far/big\"");
    let provider =
        format!("{config}\n[providers.far]\nkind = \"openai\"\nbase_url = \"{url}/v1\"\n");
    world.write("ropewalk.toml", &provider);
    world
}

/// Lets a program that was started so build the task, until `is_over`; returns what `build show` has then.
fn build(world: &World, flags: [&str; 2], is_over: impl Fn(&Value) -> bool) -> Value {
    let spec = specified(world);
    let (id, hash) = (text(&spec["id"]), text(&spec["hash"]));
    let up = world.start(&["up", flags[0], flags[1]], &[]);
    let approved = world.json(&format!("spec approve {id} --hash {hash}"));
    let show = format!("build show {}", text(&approved["build"]));
    let began = Instant::now();
    let shown = loop {
        let shown = world.json(&show);
        if is_over(&shown) {
            break shown;
        }
        assert!(began.elapsed() < PATIENCE, "{shown}");
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
    shown
}

/// Says what happened to the build, in order.
fn happened(world: &World) -> Vec<String> {
    let events = world.json("event list --limit 1000");
    let events = events.as_array().unwrap().iter();
    let mut kinds: Vec<(u64, String)> = events
        .map(|event| {
            (
                event["sequence"].as_u64().unwrap(),
                text(&event["type"]).to_owned(),
            )
        })
        .filter(|(_, kind)| kind.starts_with("build.") || kind.starts_with("task."))
        .collect();
    kinds.sort();
    kinds.into_iter().map(|(_, kind)| kind).collect()
}

#[test]
fn a_recorded_build_is_played_again_without_its_provider_and_a_changed_prompt_is_named() {
    let place = tempfile::tempdir().unwrap();
    let cassette = place.path().join("build.jsonl");
    let cassette = cassette.to_str().unwrap();
    let server = emulator(place.path());
    let url = server.url();
    let is_over = |shown: &Value| shown["state"] == "succeeded" || shown["state"] == "failed";

    let first = project(&url, "test -s a.txt");
    let shown = build(&first, ["--record", cassette], is_over);
    assert_eq!(shown["state"], "succeeded", "{shown}");
    drop(server);
    let recorded = std::fs::read_to_string(cassette).unwrap();
    let asked = recorded.matches("\"provider\":\"far\"").count();
    assert_eq!(asked, 3, "a line for each request");

    let again = project(&url, "test -s a.txt");
    let shown = build(&again, ["--replay", cassette], is_over);
    assert_eq!(shown["state"], "succeeded", "{shown}");
    assert_eq!(happened(&again), happened(&first));
    assert_eq!(again.git(&["show", "build/walks:a.txt"]), "a walk");

    let other = project(&url, "test -s ./a.txt");
    let differs = |shown: &Value| shown.to_string().contains("differs");
    let shown = build(&other, ["--replay", cassette], differs).to_string();
    assert!(shown.contains("what was told differs"), "{shown}");
}
