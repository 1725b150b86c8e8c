//! What is asked of a build that stands still, or has ended, is answered with the verb that fits its state.

use chrono::DateTime;
use ropewalk_schemas::build::{Build, StopCause};
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{BuildId, ContentHash};
use serde_json::json;
use uuid::Uuid;

use crate::world::World;

/// A build in such a state.
fn build_in(state: &str) -> Build {
    let build = json!({
        "id": Uuid::from_u128(8 << 96), "spec": Uuid::from_u128(1), "revision": 1, "hash": ContentHash::of(b"walks"),
        "idea": "walks", "user": "ada", "state": state, "pause_requested": false, "branch": "build/walks", "target": "main",
        "priority": 5, "working_ms": 0, "correlation_id": Uuid::from_u128(2), "created_at": DateTime::UNIX_EPOCH,
    });
    serde_json::from_value(build).unwrap()
}

/// A task of it that waits for its turn.
fn task_of(build: BuildId) -> Task {
    let block = json!({
        "id": "T-001", "phase": "api", "action": "CREATE", "file": "a.txt",
        "validation": { "command": "true", "expected": "exit 0" },
    });
    Task::planned(build, 1, serde_json::from_value(block).unwrap())
}

#[test]
fn what_cannot_be_landed_yet_is_refused_with_the_verb_of_its_state() {
    let world = World::scripted();
    world.run("idea list");
    for (state, verb) in [
        ("running", "build wait"),
        ("paused", "build resume"),
        ("stopped", "build resume"),
        ("failed", "build resume"),
    ] {
        let build = build_in(state);
        world.commit(|changes| {
            changes.put(&build);
        });
        for more in ["", " --dry-run", " --resolve"] {
            let said = world.refused(&format!("build land {}{more}", build.id), 1);
            let named = format!("`ropewalk {verb} {}", build.id);
            assert!(
                said.contains(state) && said.contains(&named),
                "{more}: {said}"
            );
        }
    }
}

#[test]
fn words_for_a_build_that_stands_still_name_the_verb_that_lets_them_be_heard() {
    let world = World::scripted();
    world.run("idea list");
    let build = build_in("paused");
    world.commit(|changes| {
        changes.put(&build);
    });
    let tell = format!("build tell {} faster", build.id);
    let said = world.refused(&tell, 1);
    assert!(said.contains("`ropewalk spec revise "), "{said}");
    world.commit(|changes| {
        changes.put(&task_of(build.id));
    });
    let said = world.run(&tell);
    let next = format!("`ropewalk build resume {}`", build.id);
    assert!(
        said.contains("told T-001") && said.contains(&next),
        "{said}"
    );
}

#[test]
fn what_nothing_lets_go_on_is_not_told_to_be_resumed() {
    let world = World::scripted();
    world.run("idea list");
    let next = BuildId(Uuid::from_u128(9 << 96));
    let amended = Build {
        continued_by: Some(next),
        ..build_in("failed")
    };
    let abandoned = Build {
        stop: Some(StopCause::Abandoned),
        ..build_in("stopped")
    };
    for (build, instead) in [
        (amended, format!("build `{next}` goes on with its work")),
        (abandoned, "the idea `walks` was abandoned".to_owned()),
    ] {
        world.commit(|changes| {
            changes.put(&build);
            changes.put(&task_of(build.id));
        });
        let landed = world.refused(&format!("build land {}", build.id), 1);
        let told = world.run(&format!("build tell {} faster", build.id));
        for said in [landed, told] {
            assert!(said.contains(&instead), "{said}");
            assert!(!said.contains("`ropewalk build"), "{said}");
        }
    }
}

#[test]
fn what_goes_on_by_itself_is_not_resumed_and_can_be_waited_for() {
    let world = World::scripted();
    world.run("idea list");
    let build = build_in("verifying");
    world.commit(|changes| {
        changes.put(&build);
    });
    let said = world.refused(&format!("build resume {}", build.id), 1);
    let next = format!("goes on by itself; `ropewalk build wait {}`", build.id);
    assert!(said.contains(&next), "{said}");
}
