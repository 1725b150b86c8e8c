//! Looking back at what happened: cut by time, source, type and chain, always in commit order (V27).

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::world::World;

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
    let told = |expected: u64| {
        let done = world.json("event replay notify.terminal --from 1");
        assert_eq!(done["events"], expected, "{done}");
    };
    told(2);
    assert_eq!(deliveries(), 1);
    told(0);
    let said = world.refused("event replay nobody --from 1", 1);
    assert!(said.contains("`notify.terminal`"), "{said}");
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
}
