//! Pages with much on them: more ideas than a page of the board has, a large build, questions, and whatever is wrong.

use anyhow::Context;
use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_runtime::Clock;
use ropewalk_schemas::ContentHash;
use ropewalk_schemas::alert::Alert;
use ropewalk_schemas::attempt::{Attempt, Evidence};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::idea::Idea;
use ropewalk_schemas::lease::Lease;
use ropewalk_schemas::question::Question;
use ropewalk_schemas::task::Task;
use ropewalk_schemas::wait::Wait;
use ropewalk_store::{ChangeSet, DeliveryFilter, DeliveryState, Outcome, Record, Store};
use serde_json::{Value, json};

use crate::pages::{HOSTILE, Walk, serve, specified};
use crate::picture::store;
use crate::project::Project;

/// More ideas than a page of the board has.
const IDEAS: usize = 60;
/// As many tasks as a large build has.
const TASKS: usize = 500;

fn now() -> DateTime<Utc> {
    Clock::system().now()
}

/// Returns an id that nothing else has.
fn id(number: usize) -> String {
    format!("0190f5fe-7c00-7000-8000-{number:012x}")
}

fn row<R: Record>(value: Value) -> anyhow::Result<R> {
    let told = value.to_string();
    serde_json::from_value(value).context(told)
}

/// Stores ideas, each a day older than the one before.
fn ideas(changes: &mut ChangeSet) -> anyhow::Result<()> {
    for number in 0..IDEAS {
        let days = TimeDelta::days(i64::try_from(number)? + 1);
        changes.insert(&row::<Idea>(json!({
            "slug": format!("bees-{number}"), "user": "pat", "title": format!("Bees of day {number} {HOSTILE}"),
            "state": "captured", "session": id(number), "correlation_id": id(number), "created_at": now() - days,
        }))?);
    }
    Ok(())
}

/// Stores a build that was stopped when half of its tasks were complete, and returns its id.
fn large_build(changes: &mut ChangeSet) -> anyhow::Result<String> {
    let build = id(1_000);
    changes.insert(&row::<Build>(json!({
        "id": build, "spec": id(1_001), "revision": 1, "hash": ContentHash::of(b"large"), "idea": "bees-59", "user": "pat",
        "state": "stopped", "pause_requested": false, "branch": "build/bees-59", "target": "main", "priority": 5,
        "working_ms": 0, "correlation_id": id(1_002), "created_at": now(), "completed_at": now(),
    }))?);
    for number in 1..=TASKS {
        let needs = (number > 10).then(|| format!("T-{:03}", number - 10));
        let requirement =
            json!({ "id": "FR-1", "text": format!("Write part {number}. {HOSTILE}") });
        changes.insert(&row::<Task>(json!({
            "build": build, "id": format!("T-{number:03}"), "number": number, "attempts": 0, "tries": 0, "installs": 0,
            "rebases": 0, "state": if number <= TASKS / 2 { "complete" } else { "pending" },
            "block": { "id": format!("T-{number:03}"), "phase": "api", "action": "CREATE", "file": format!("parts/{number}.txt"),
                "requirements": [requirement], "gotchas": [], "depends_on": needs.into_iter().collect::<Vec<_>>(),
                "validation": { "command": "true", "expected": "exit 0" } },
        }))?);
    }
    Ok(build)
}

/// Stores a question with two choices and returns its id.
fn question(changes: &mut ChangeSet, number: usize, consequential: bool) -> anyhow::Result<String> {
    let choice = |id: &str| json!({ "id": id, "label": format!("Take {id}"), "recommended": false, "with_words": false });
    let asked = id(2_000 + number);
    changes.insert(&row::<Question>(json!({
        "id": asked, "kind": "blocking", "trigger": format!("drink_{number}"), "agent": "specification",
        "text": format!("What is drunk at table {number}? {HOSTILE}"), "context": format!("```\n{}\n```", long()), "choices": [choice("tea"), choice("coffee")],
        "free_text": true, "consequential": consequential, "about": { "kind": "nothing" }, "state": "pending",
        "correlation_id": id(3_000 + number), "asked_at": now(),
    }))?);
    Ok(asked)
}

/// Returns more lines than a page shows without scrolling.
fn long() -> String {
    let lines = (1..=80).map(|line| format!("line {line} {HOSTILE}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Stores an attempt at a task that failed, with more output than fits, and what the gate saw of it.
fn failed_attempt(changes: &mut ChangeSet, build: &str) -> anyhow::Result<()> {
    let attempt = id(1_004);
    changes.insert(&row::<Attempt>(json!({
        "id": attempt, "build": build, "task": "T-001", "number": 1, "loop_name": "loop-9", "state": "failed", "token": 1,
        "base": "5".repeat(40), "tokens": 4_321, "started_at": now(), "ended_at": now(),
        "failure": { "class": "VALIDATION_FAILED", "error": long(), "attempt": 1, "fingerprint": "f" },
    }))?);
    changes.insert(&row::<Evidence>(json!({
        "build": build, "task": "T-001", "attempt": attempt, "commit": "6".repeat(40), "tree": "7".repeat(40),
        "verdict": "failed", "at": now(), "checks": [{
            "name": "validation", "command": "true", "exit_code": 1, "duration_ms": 65_000, "output": long(),
        }],
    }))?);
    Ok(())
}

/// Stores something wrong, somebody who waits, and a file that is locked.
fn troubles(changes: &mut ChangeSet, build: &str) -> anyhow::Result<()> {
    let at = now();
    changes.insert(&row::<Alert>(json!({
        "cause": "planted", "severity": "critical", "message": format!("Something stands still. {HOSTILE}"), "raised_at": at,
        "escalations": 0,
    }))?);
    changes.insert(&row::<Wait>(json!({
        "waiter": { "kind": "task", "build": build, "task": "T-499" }, "since": at,
        "resource": { "kind": "lease", "path": "parts/500.txt" },
        "holder": { "kind": "task", "build": build, "task": "T-500" },
    }))?);
    changes.insert(&row::<Lease>(json!({
        "path": "parts/500.txt", "state": "granted", "token": 1_000, "renewals": 0, "ttl_ms": 86_400_000, "reason": "writes",
        "granted_at": at, "holder": { "build": build, "task": "T-500", "attempt": id(1_003), "loop_name": "loop-9" },
    }))?);
    Ok(())
}

/// Lets whatever is handed out next fail for good, and names it.
async fn dead_letter(store: &Store) -> anyhow::Result<String> {
    let all = store.deliveries(&DeliveryFilter::default()).await?;
    let open = all.iter().find(|one| one.state == DeliveryState::Open);
    let key = open.context("nothing is handed out")?.key.clone();
    let mut changes = ChangeSet::new();
    let error = format!("no such file {HOSTILE}");
    changes.close(&key, Outcome::Dead { error });
    store.commit(changes).await?;
    Ok(key.to_string())
}

#[tokio::test]
async fn pages_with_much_on_them_are_found_looked_at_and_answered_by_keys_alone()
-> anyhow::Result<()> {
    let project = Project::new()?;
    let spec = specified(&project)?;
    let lesson = format!("What was learned. {HOSTILE}");
    let lesson = project.verb(&["knowledge", "add", &lesson], "")?;
    let lesson = lesson["id"].as_str().context("an id")?.to_owned();
    project.verb(
        &["idea", "new", "Walks around the lake", "--slug", "walks"],
        "",
    )?;
    let store = store(project.path()).await?;
    let letter = dead_letter(&store).await?;
    project.verb(&["spec", "revise", &spec, "Leave the last part out."], "")?;
    let mut changes = ChangeSet::new();
    ideas(&mut changes)?;
    let build = large_build(&mut changes)?;
    troubles(&mut changes, &build)?;
    failed_attempt(&mut changes, &build)?;
    let asked = [false, true, false];
    let asked: Vec<String> = asked
        .into_iter()
        .enumerate()
        .map(|(number, consequential)| question(&mut changes, number, consequential))
        .collect::<anyhow::Result<_>>()?;
    store.commit(changes).await?;
    store.close().await?;
    let (up, link) = serve(&project, "127.0.0.1:0").await?;
    let told = json!({ "spec": spec, "lesson": lesson, "letter": letter, "build": build, "questions": asked });
    Walk::begin("planted.cjs", &[&link, &told.to_string()])?.end()?;
    drop(up);
    Ok(())
}
