//! A provider that goes away in the middle of a build: the next of its role finishes it, and `usage` names both.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::approvals::{specified, text};
use crate::world::{World, one_task};

/// Takes the second call of a build for an outage.
const DIES: &str = r#"
- agent: "build"
  turn: 1
  reply: { tools: [{ name: "write", input: { path: "a.txt", content: "a walk\n" } }] }
- agent: "build"
  reply: { error: { kind: "overloaded", message: "no room" } }
"#;

/// Checks that the figures for programs are the sums that people are shown, model by model.
fn metrics_agree(world: &World) {
    let metrics = world.json("metrics");
    let text = world.run("metrics");
    for row in world.json("usage").as_array().unwrap() {
        let model = row["key"].as_str().unwrap();
        for (name, sum) in [
            ("calls", "calls"),
            ("input_tokens", "input_tokens"),
            ("output_tokens", "output_tokens"),
            ("unpriced_calls", "unpriced_calls"),
        ] {
            let name = format!("ropewalk_model_{name}_total");
            let mut metrics = metrics.as_array().unwrap().iter();
            let metric = metrics.find(|metric| metric["name"] == name.as_str());
            let mut samples = metric.unwrap()["samples"].as_array().unwrap().iter();
            let sample = samples.find(|sample| sample["labels"]["model"] == model);
            assert_eq!(sample.unwrap()["value"], row[sum], "{name} of {model}");
            let line = format!("{name}{{model=\"{model}\"}} {}\n", row[sum]);
            assert!(text.contains(&line), "{line}{text}");
        }
    }
}

#[test]
fn the_fallback_finishes_the_build_of_a_provider_that_dies_and_usage_names_both() {
    let world = World::scripted();
    world.write("../script.yaml", &one_task("test -s a.txt"));
    let config = std::fs::read_to_string(world.repository().join("ropewalk.toml")).unwrap();
    let config = config.replace("build = \"script/x\"", "build = \"first/big\"");
    world.write("../dies.yaml", DIES);
    world.write(
        "ropewalk.toml",
        &format!(
            "{config}\n[models.fallbacks]\nbuild = [\"script/second\"]\n\n[providers.first]\nkind = \"scripted\"\nscript = \"../dies.yaml\"\n"
        ),
    );
    let spec = specified(&world);
    let up = world.up();
    let (id, hash) = (text(&spec["id"]), text(&spec["hash"]));
    let approved = world.json(&format!("spec approve {id} --hash {hash}"));
    let build = text(&approved["build"]).to_owned();
    let began = Instant::now();
    let state = loop {
        let shown = world.json(&format!("build show {build}"));
        if shown["state"] == "succeeded" || shown["state"] == "failed" {
            break shown["state"].clone();
        }
        assert!(began.elapsed() < Duration::from_mins(1), "{shown}");
    };
    assert_eq!(state, "succeeded");
    assert_eq!(world.git(&["show", "build/walks:a.txt"]), "a walk");
    let used = world.json(&format!("usage --build {build}"));
    let named: Vec<(&str, u64)> = used
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (text(&row["key"]), row["calls"].as_u64().unwrap()))
        .collect();
    assert_eq!(named, [("first/big", 1), ("script/second", 1)]);
    let row = &used[0];
    assert_eq!(row["cache_hit_rate"], 0.0);
    assert_eq!(
        (&row["micro_usd"], &row["unpriced_calls"]),
        (&Value::Null, &1.into())
    );
    let log = world.run(&format!("build log {build}"));
    assert!(
        log.contains("script/second takes over from first/big"),
        "{log}"
    );
    let builds = world.json("usage --by build");
    assert!(
        builds
            .as_array()
            .unwrap()
            .iter()
            .any(|row| row["key"] == build.as_str())
    );
    metrics_agree(&world);
    let days = world.json("usage --by day");
    assert_eq!(days.as_array().unwrap().len(), 1, "{days}");
    assert_eq!(text(&days[0]["key"]).len(), "2026-01-01".len());
    drop(up);
}
