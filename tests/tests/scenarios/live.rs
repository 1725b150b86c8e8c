//! What moves in a browser while models speak and work.

use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use ropewalk_schemas::idea::{Author, Message, Session};
use ropewalk_store::Query;
use serde_json::{Value, json};

use crate::pages::{HOSTILE, Walk, answering, serve, specified};
use crate::picture::{events_of, store};
use crate::project::{PATIENCE, Project, chat, rule};

#[tokio::test]
async fn words_calls_and_differences_are_seen_while_a_task_is_worked_on() -> anyhow::Result<()> {
    let turn = |turn: u32| json!({ "agent": "build", "task": "T-001", "turn": turn });
    let waits = waiting();
    let write = json!({ "path": "parts/01.txt", "content": "part 1 is ready\n" });
    let mut begins = rule(&turn(2), "write", &write);
    begins["reply"]["text"] = json!(format!("I begin with part 1. {HOSTILE}"));
    let speaks = format!("echo line 1; echo line 2; {waits}; echo line 3; echo line 4");
    let project = answering(vec![
        rule(&turn(1), "bash", &json!({ "command": waits })),
        begins,
        rule(&turn(3), "bash", &json!({ "command": speaks })),
        rule(&turn(4), "finish", &json!({ "summary": "Wrote part 1." })),
    ])?;
    let spec = specified(&project)?;
    let (up, link) = serve(&project, "127.0.0.1:0").await?;
    let mut walk = Walk::begin("live.cjs", &[&link, &spec])?;
    for _ in 0..2 {
        walk.asks("go on")?;
        go_on(&project).await?;
        walk.answer("it goes on")?;
    }
    walk.end()?;
    drop(up);
    Ok(())
}

/// A file that a command makes in its tree where it waits, and the one that it waits for.
const WAITING: &str = "waiting";
const GO: &str = "go";

/// Returns a command that waits until [`go_on`] lets it.
pub(crate) fn waiting() -> String {
    format!("touch {WAITING}; until rm {GO} 2>/dev/null; do sleep 0.1; done; rm {WAITING}")
}

/// Lets the command go on that waits in some slot.
pub(crate) async fn go_on(project: &Project) -> anyhow::Result<()> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        for slot in std::fs::read_dir(project.path().join("state/slots"))? {
            let tree = slot?.path().join("tree");
            if tree.join(WAITING).is_file() {
                return Ok(std::fs::write(tree.join(GO), "")?);
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    bail!("no command waits")
}

#[tokio::test]
async fn a_conversation_is_heard_ended_by_its_button_and_taken_up_again() -> anyhow::Result<()> {
    let looks = json!({ "agent": "ideation", "task": "message-2", "turn": 1 });
    let mut looks = rule(&looks, "read", &json!({ "path": "README.md" }));
    looks["reply"]["text"] = json!(format!("Let me look first. {HOSTILE}"));
    let known = ["target-user", "problem", "solution-concept"];
    let mut answers = chat("", 2, &known, 0, 0, 0.5);
    answers["turn"] = json!(2);
    let held = tempfile::tempdir()?;
    let go = held.path().join("go");
    answers["reply"]["until"] = json!(go);
    // It takes back what was wrong only where it is told what.
    let mut corrected = chat("", 3, &["target-user"], 0, 0, 0.6);
    corrected["contains"] =
        json!("What you took as the target user is not so: nurses on night shifts");
    let user = &mut corrected["reply"]["tools"][0]["input"]["artifacts"][0];
    user["summary"] = json!("Nurses who work at night.");
    user["content"] = json!("Nurses on night shifts, whose days end when others begin.");
    let rules: Vec<Value> = vec![
        looks,
        answers,
        corrected,
        chat("", 4, &["brief"], 0, 0, 0.8),
        chat("", 5, &[], 0, 0, 0.8),
    ];
    let project = answering(rules)?;
    let (up, link) = serve(&project, "127.0.0.1:0").await?;
    let mut walk = Walk::begin("conversation.cjs", &[&link])?;
    walk.asks("go on")?;
    std::fs::write(&go, "")?;
    walk.answer("it goes on")?;
    walk.end()?;
    drop(up);
    let store = store(project.path()).await?;
    let session = store.list::<Session>(Query::new()).await?.remove(0);
    let artifacts = session.signals.artifacts.iter();
    let users: Vec<&str> = artifacts
        .filter(|artifact| artifact.kind == "target-user")
        .map(|artifact| artifact.content.as_str())
        .collect();
    assert_eq!(
        users,
        ["Nurses on night shifts, whose days end when others begin."]
    );
    let said = store.list::<Message>(Query::new().order_by("at")).await?;
    let mut said = said.iter().filter(|one| one.author == Author::Person);
    let last = said.next_back().context("nothing was said")?;
    ensure!(last.text.contains("it keeps a backup"), "{last:?}");
    let told = events_of(&store, "ideation.message").await?;
    let ends: Vec<bool> = told
        .iter()
        .map(|event| event.event.data["ends"] == true)
        .collect();
    assert_eq!(ends, [false, false, false, true, false]);
    Ok(())
}
