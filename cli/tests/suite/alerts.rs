//! What is wrong is listed until its cause is gone, with who has seen it.

use chrono::DateTime;
use ropewalk_schemas::alert::{Alert, Severity};
use serde_json::{Value, json};

use crate::world::World;

pub(crate) fn alert(cause: &str, message: &str) -> Alert {
    Alert {
        cause: cause.to_owned(),
        severity: Severity::Error,
        message: message.to_owned(),
        build: None,
        raised_at: DateTime::UNIX_EPOCH,
        escalations: 0,
        acknowledged: None,
        cleared_at: None,
    }
}

/// A project in which a loop and the monitor are silent, and another loop was.
fn troubled() -> World {
    let world = World::scripted();
    assert_eq!(world.json("alert list"), json!([]));
    world.commit(|changes| {
        changes.insert(&alert("component/loop-1", "`loop-1` is silent"));
        changes.insert(&alert("component/monitor", "`monitor` is silent"));
        changes.insert(&Alert {
            cleared_at: Some(DateTime::UNIX_EPOCH),
            ..alert("component/loop-2", "`loop-2` is silent")
        });
    });
    world
}

fn causes(alerts: &Value) -> Vec<&str> {
    let alerts = alerts.as_array().unwrap().iter();
    let mut causes: Vec<&str> = alerts
        .map(|alert| alert["cause"].as_str().unwrap())
        .collect();
    causes.sort_unstable();
    causes
}

#[test]
fn an_alert_is_listed_until_its_cause_is_gone() {
    let world = troubled();
    let open = ["component/loop-1", "component/monitor"];
    assert_eq!(causes(&world.json("alert list")), open);
    let all = world.json("alert list --all");
    assert_eq!(
        causes(&all),
        ["component/loop-1", "component/loop-2", "component/monitor"]
    );
    let shown = world.run("alert list");
    assert!(
        shown.contains("`loop-1` is silent") && shown.contains("error"),
        "{shown}"
    );
}

#[test]
fn who_has_seen_an_alert_first_is_shown_and_nobody_else_is() {
    let world = troubled();
    let seen = world.json("alert ack component/mon");
    assert_eq!(
        (&seen["cause"], &seen["acknowledged"]["by"]),
        (&json!("component/monitor"), &json!("ada"))
    );
    let at = seen["acknowledged"]["at"].as_str().unwrap().to_owned();
    let said = world.refused("alert ack component/monitor", 1);
    assert!(said.contains("was acknowledged by ada at"), "{said}");
    let listed = world.json("alert list");
    let listed = listed.as_array().unwrap();
    let of = |cause: &str| listed.iter().find(|alert| alert["cause"] == cause).unwrap();
    assert_eq!(of("component/monitor")["acknowledged"]["at"], json!(at));
    assert!(of("component/loop-1")["acknowledged"].is_null());
    assert!(world.run("alert list").contains("ada at "));
}

#[test]
fn an_alert_that_nothing_or_too_much_is_called_is_refused() {
    let world = troubled();
    for (cause, said) in [
        ("component/", "fits 2 alerts; write more of the cause"),
        ("component/loop-2", "no alert is called `component/loop-2`"),
        ("flood", "`ropewalk alert list` shows what there is"),
    ] {
        let refused = world.refused(&format!("alert ack {cause}"), 1);
        assert!(refused.contains(said), "{cause}: {refused}");
    }
    let listed = world.json("alert list");
    let listed = listed.as_array().unwrap();
    assert!(listed.iter().all(|alert| alert["acknowledged"].is_null()));
}
