//! A blocking question holds one idea, visibly, also over a restart, until somebody answers (V21).

use chrono::{DateTime, Utc};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::approvals::{documented, specified, text, until};
use crate::world::World;

#[test]
fn a_blocking_question_is_named_where_its_work_waits_until_it_is_answered() {
    let world = World::scripted();
    documented(&world, "rivers");
    let asked = world.json("spec generate rivers");
    let id = text(&asked["id"]);
    let waiting = world.json("spec list --idea rivers");
    let show = format!("spec show {}", text(&waiting[0]["id"]));
    assert_eq!(world.json(&show)["waits_for"], json!([id]));
    assert_eq!(world.json("idea show rivers")["waits_for"], json!([id]));
    assert!(world.run("idea show rivers").contains(id));
    let waits = world.json("wait list");
    assert!(waits.to_string().contains(id), "{waits}");
    let listed = world.json("idea list");
    assert_eq!(listed[0]["waits_for_answer"], true, "{listed}");
    for form in ["", " --dot", " --svg"] {
        let drawn = world.run(&format!("wait graph{form}"));
        let waiter = format!("specification/{}", text(&waiting[0]["id"]));
        assert!(drawn.contains(&waiter) && drawn.contains(id), "{drawn}");
    }
    let shown = world.run(&format!("question show {id}"));
    for wanted in [
        "1. plain-files: Plain files (recommended)",
        "2. a-database: A database",
        "any text of yours",
        "waits for it: specification",
    ] {
        assert!(shown.contains(wanted), "`{wanted}` is missing in {shown}");
    }

    assert_eq!(
        specified(&world)["state"],
        "generated",
        "another idea goes on"
    );
    assert_eq!(world.up().stop(Signal::SIGTERM), Some(0));
    let defaults = world.json("question answer --all-defaults");
    assert_eq!(defaults, Value::Array(Vec::new()));
    assert_eq!(world.json(&show)["state"], "draft");
    assert_eq!(world.json(&show)["waits_for"], json!([id]));
    assert_eq!(world.json("lock list"), Value::Array(Vec::new()));

    let up = world.up();
    world.run(&format!("question answer {id} Plain files"));
    let made = until(&world, &show, |spec| spec["state"] == "generated");
    assert!(!made["waits_for"].to_string().contains(id), "{made}");
    let answered = world.json(&format!("question show {id}"));
    assert_eq!(answered["state"], "answered");
    let answer = &answered["answer"];
    assert_eq!(
        (&answer["text"], &answer["by"], &answer["channel"]),
        (&json!("Plain files"), &json!("ada"), &json!("cli"))
    );
    let time = |value: &Value| text(value).parse::<DateTime<Utc>>().unwrap();
    assert!(time(&answer["at"]) > time(&answered["asked_at"]));
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
}
