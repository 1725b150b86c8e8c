//! A configuration that is changed while a build runs: the turn under way ends as it began, the next asks the other model,
//! counts by the other prices and keeps to the other rules.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::approvals::{specified, text};
use crate::world::{World, one_task};

/// Writes the file, and waits until somebody says that the changed configuration was taken; after that it knows no more.
const SLOW: &str = r#"
- agent: "build"
  turn: 1
  reply: { tools: [
    { name: "write", input: { path: "a.txt", content: "a walk\n" } },
    { name: "bash", input: { command: "until test -e taken; do sleep 0.1; done; rm taken" } },
    { name: "bash", input: { command: "echo walked" } } ] }
"#;
/// What goes on tries the same once more.
const THEN: &str = r#"
- agent: "build"
  turn: 2
  reply: { tools: [{ name: "bash", input: { command: "echo walked" } }] }
"#;
/// Adds a rule to a file in the slot that is named as that of the project, waits until it would be found, and tries.
const ADDS: &str = r#"
- agent: "build"
  turn: 1
  reply: { tools: [
    { name: "bash", input: { command: "cat allows > ropewalk.toml" } },
    { name: "bash", input: { command: "sleep 3" } },
    { name: "bash", input: { command: "echo walked" } } ] }
- agent: "build"
  turn: 2
  reply: { tools: [
    { name: "bash", input: { command: "echo walked" } },
    { name: "bash", input: { command: "rm ropewalk.toml" } },
    { name: "write", input: { path: "a.txt", content: "a walk\n" } } ] }
"#;
/// What else the changed configuration says.
const RULE: &str = r#"
[[policy.rules]]
permission = "bash"
pattern = "echo *"
action = "deny"
"#;
/// Each token that the scripted model writes costs a dollar.
const PRICES: &str = r#"
prices = [{ model = "x", input = 0, output = 1_000_000 }]
priced = { date = "2026-11-20", source = "nobody" }
"#;

fn until<Answer>(mut look: impl FnMut() -> Option<Answer>) -> Answer {
    let began = Instant::now();
    loop {
        if let Some(answer) = look() {
            return answer;
        }
        assert!(began.elapsed() < Duration::from_mins(3));
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until the changed configuration was taken, and says so to the model that [waits](SLOW) for that.
fn say_when_taken(world: &World) {
    until(|| {
        let log = std::fs::read_to_string(world.root().join("up.log")).unwrap();
        log.contains("of the changed configuration").then_some(())
    });
    let trees = || (1..10).map(|slot| world.state().join(format!("slots/{slot}/tree")));
    let tree = until(|| trees().find(|tree| tree.join("a.txt").exists()));
    std::fs::write(tree.join("taken"), "").unwrap();
}

/// Approves a specification while the program runs; returns the build.
fn approved(world: &World, spec: &Value) -> String {
    let (id, hash) = (text(&spec["id"]), text(&spec["hash"]));
    let approved = world.json(&format!("spec approve {id} --hash {hash}"));
    text(&approved["build"]).to_owned()
}

/// Waits for the end of a build, which succeeds; returns what its model was told of its commands.
fn told_in_the_end(world: &World, build: &str) -> Vec<String> {
    let state = until(|| {
        let shown = world.json(&format!("build show {build}"));
        let is_over = shown["state"] == "succeeded" || shown["state"] == "failed";
        is_over.then(|| shown["state"].clone())
    });
    assert_eq!(state, "succeeded");
    let log = world.json(&format!("build log {build}"));
    let ends = log.as_array().unwrap().iter();
    let ends = ends.filter(|entry| entry["kind"] == "tool_ended" && entry["name"] == "bash");
    ends.map(|entry| text(&entry["output"]).to_owned())
        .collect()
}

#[test]
fn the_next_turn_asks_the_model_and_keeps_to_the_rules_that_the_changed_configuration_names() {
    let world = World::scripted();
    let script = format!("{THEN}{}", one_task("test -s a.txt"));
    world.write("../script.yaml", &script);
    world.write("../slow.yaml", SLOW);
    let path = world.repository().join("ropewalk.toml");
    let after = std::fs::read_to_string(path).unwrap()
        + "\n[providers.slow]\nkind = \"scripted\"\nscript = \"../slow.yaml\"\n";
    let before = after.replace("build = \"script/x\"", "build = \"slow/big\"");
    world.write("ropewalk.toml", &before);
    let spec = specified(&world);
    let _up = world.up();
    let build = approved(&world, &spec);
    let used = || world.json(&format!("usage --build {build}"));
    until(|| (used()[0]["calls"] == 1).then_some(()));
    world.write("ropewalk.toml", &(after + RULE));
    say_when_taken(&world);
    let told = told_in_the_end(&world, &build);
    let refused = "refused: the rule deny bash `echo *` forbids `echo walked`";
    assert_eq!(told, ["[exit code 0]", "walked", refused]);
    let used = used();
    let named: Vec<(&str, u64)> = used
        .as_array()
        .unwrap()
        .iter()
        .map(|row: &Value| (text(&row["key"]), row["calls"].as_u64().unwrap()))
        .collect();
    assert_eq!(named, [("script/x", 2), ("slow/big", 1)]);
}

#[test]
fn a_price_that_the_changed_configuration_says_holds_from_the_next_turn_on_and_binds_the_budget() {
    let world = World::scripted();
    let script = format!("{SLOW}{THEN}{}", one_task("test -s a.txt"));
    world.write("../script.yaml", &script);
    let path = world.repository().join("ropewalk.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let before = format!("[budget]\nbuild_usd = 0.5\n{text}");
    world.write("ropewalk.toml", &before);
    let spec = specified(&world);
    let _up = world.up();
    let build = approved(&world, &spec);
    let used = || world.json(&format!("usage --build {build}"))[0].clone();
    until(|| (used()["calls"] == 1).then_some(()));
    world.write("ropewalk.toml", &(before + PRICES));
    say_when_taken(&world);
    until(|| {
        let shown = world.json(&format!("build show {build}"));
        (shown["state"] == "paused").then_some(())
    });
    let used = used();
    let (calls, unpriced) = (&used["calls"], &used["unpriced_calls"]);
    assert_eq!((calls, unpriced), (&2.into(), &1.into()), "{used}");
}

#[test]
fn a_rule_that_a_model_adds_in_its_slot_changes_nothing() {
    let world = World::scripted();
    let script = format!("{ADDS}{}", one_task("test -s a.txt"));
    world.write("../script.yaml", &script);
    world.write("allows", &RULE.replace("deny", "allow"));
    world.git(&["add", "allows"]);
    world.git(&["commit", "-q", "-m", "Allow"]);
    let path = world.repository().join("ropewalk.toml");
    let text = std::fs::read_to_string(path).unwrap() + RULE;
    world.write("ropewalk.toml", &text);
    let spec = specified(&world);
    let _up = world.up();
    let build = approved(&world, &spec);
    let refused = "refused: the rule deny bash `echo *` forbids `echo walked`";
    assert_eq!(
        told_in_the_end(&world, &build),
        [
            "[exit code 0]",
            "[exit code 0]",
            refused,
            refused,
            "[exit code 0]"
        ]
    );
}
