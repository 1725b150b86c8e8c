//! A configuration that is changed while a build runs: the turn under way ends as it began, the next asks the other model.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::approvals::{specified, text};
use crate::world::{World, one_task};

/// Writes the file, and looks at it for as long as a person needs to change the configuration; after that it knows nothing.
const SLOW: &str = r#"
- agent: "build"
  turn: 1
  reply: { tools: [
    { name: "write", input: { path: "a.txt", content: "a walk\n" } },
    { name: "bash", input: { command: "sleep 8" } } ] }
"#;

fn until<Answer>(mut look: impl FnMut() -> Option<Answer>) -> Answer {
    let began = Instant::now();
    loop {
        if let Some(answer) = look() {
            return answer;
        }
        assert!(began.elapsed() < Duration::from_mins(1));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn the_next_turn_asks_the_model_that_the_changed_configuration_names() {
    let world = World::scripted();
    world.write("../script.yaml", &one_task("test -s a.txt"));
    world.write("../slow.yaml", SLOW);
    let path = world.repository().join("ropewalk.toml");
    let after = std::fs::read_to_string(path).unwrap()
        + "\n[providers.slow]\nkind = \"scripted\"\nscript = \"../slow.yaml\"\n";
    let before = after.replace("build = \"script/x\"", "build = \"slow/big\"");
    world.write("ropewalk.toml", &before);
    let spec = specified(&world);
    let (id, hash) = (text(&spec["id"]), text(&spec["hash"]));
    let _up = world.up();
    let approved = world.json(&format!("spec approve {id} --hash {hash}"));
    let build = text(&approved["build"]).to_owned();

    let used = || world.json(&format!("usage --build {build}"));
    until(|| (used()[0]["calls"] == 1).then_some(()));
    world.write("ropewalk.toml", &after);
    let state = until(|| {
        let shown = world.json(&format!("build show {build}"));
        let is_over = shown["state"] == "succeeded" || shown["state"] == "failed";
        is_over.then(|| shown["state"].clone())
    });
    assert_eq!(state, "succeeded");
    let used = used();
    let named: Vec<(&str, u64)> = used
        .as_array()
        .unwrap()
        .iter()
        .map(|row: &Value| (text(&row["key"]), row["calls"].as_u64().unwrap()))
        .collect();
    assert_eq!(named, [("script/x", 1), ("slow/big", 1)]);
}
