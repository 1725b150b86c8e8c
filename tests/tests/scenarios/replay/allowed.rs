//! A build in which a person allowed what a rule had left to one is done again: it is refused and allowed at the same turns.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, ensure};
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::task::Task;
use ropewalk_store::Query;
use ropewalk_tests::program::Runner;
use ropewalk_tests::repository;
use serde_json::{Value, json};

use super::{check_same, replay};
use crate::fallback::Project as Walks;
use crate::picture::{at, store};
use crate::project::{PATIENCE, rule};
use crate::running::{start, stop, until_ready};

/// What the model wants to run, and the rule that leaves it to a person.
const LINE: &str = "expr 1111111 + 1 >> a.txt";
const RULE: &str = "
[build]
loops = 1

[[policy.rules]]
permission = \"bash\"
pattern = \"expr *\"
action = \"ask\"
";

/// Plans one task, and has it done by `turns`: what each has to contain or lack, the tool and its input.
fn script(turns: &[(u32, Value, &str, Value)]) -> String {
    let check = "grep -q 1111112 a.txt";
    let plan = json!({
        "document": {
            "title": "Walks", "context_read": [], "missing_inputs": [], "objective": "Count.",
            "success_criteria": ["it is counted"], "out_of_scope": [],
            "requirements": [{ "id": "FR-1", "text": "It is counted.", "priority": "must",
                "acceptance": "it is there", "source": "planning/brief.md" }],
            "quality": [], "new_files": [], "modified_files": [], "avoid_files": [], "interfaces": [],
            "data": [], "dependencies": [], "gotchas": [], "validation": [check], "risks": [] },
        "tasks": [{ "id": "T-001", "phase": "api", "action": "UPDATE", "file": "a.txt",
            "requirements": [{ "id": "FR-1", "text": "Count." }], "gotchas": [], "depends_on": [],
            "validation": { "command": check, "expected": "exit 0" } }],
    });
    let mut rules = vec![rule(
        &json!({ "agent": "specification" }),
        "specification",
        &plan,
    )];
    for (turn, more, tool, input) in turns {
        let mut key = json!({ "agent": "build", "task": "T-001", "turn": turn });
        for (name, value) in more.as_object().into_iter().flatten() {
            key[name] = value.clone();
        }
        rules.push(rule(&key, tool, input));
    }
    Value::Array(rules).to_string()
}

/// Lays a project whose models say so, with an approved plan.
fn project(turns: &[(u32, Value, &str, Value)]) -> anyhow::Result<Walks> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().to_owned();
    repository::begin(&path.join("repo"), &[("a.txt", "a\n")])?;
    fs::write(
        path.join("ropewalk.toml"),
        format!("{}{RULE}", repository::SCRIPTED),
    )?;
    fs::write(path.join("script.yaml"), script(turns))?;
    let project = Walks::at(directory, Runner::new(&path));
    project.approve()?;
    Ok(project)
}

/// Waits until a person is asked about a refused call.
async fn until_asked(project: &Walks) -> anyhow::Result<String> {
    let began = Instant::now();
    loop {
        let open = project.json("question list")?;
        let mut open = open.as_array().context("a list")?.iter();
        if let Some(asked) = open.find(|one| one["trigger"] == "decision_needed") {
            return Ok(asked["id"].as_str().context("an id")?.to_owned());
        }
        ensure!(began.elapsed() < PATIENCE, "nobody is asked");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// Waits until the task is as wanted.
async fn until_task(project: &Walks, wanted: impl Fn(&Task) -> bool) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        let store = store(project.path()).await?;
        let tasks = store.list::<Task>(Query::new()).await?;
        store.close().await?;
        if tasks.iter().any(|task| wanted(&task.record)) {
            return Ok(());
        }
        ensure!(began.elapsed() < PATIENCE, "{tasks:?}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

async fn calls(directory: &Path) -> anyhow::Result<u64> {
    let store = store(directory).await?;
    let of_build = Query::new().equal("role", "build");
    let calls = store.count::<ModelCall>(of_build).await?;
    store.close().await?;
    Ok(calls)
}

/// Replays the build, and finds it the same; the request of the turn `strays` was another one.
async fn check_again(project: &Walks, strays: Option<u32>) -> anyhow::Result<()> {
    let build = project.json("build show walks")?;
    assert_eq!(at(&build, "/state")?, "succeeded", "{build}");
    let place = tempfile::tempdir()?;
    let into = place.path().join("again");
    let (output, report) = replay(&project.runner, "walks", &into)?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{report}{errors}");
    assert_eq!(at(&report, "/same")?, true, "{report}");
    let strayed = at(&report, "/strayed")?.get("turn").and_then(Value::as_u64);
    assert_eq!(strayed, strays.map(u64::from), "{report}");
    let repository = project.path().join("repo");
    check_same(&repository, &into.join("repo"), "build/walks")?;
    assert_eq!(calls(&into).await?, calls(project.path()).await?);
    Ok(())
}

/// The model gives up; what a person allows then begins another round, in which it may.
#[tokio::test]
async fn a_build_that_went_on_when_a_person_allowed_a_call_is_done_again_to_the_same_commits()
-> anyhow::Result<()> {
    for choice in ["allow-call", "allow-rule"] {
        let gives_up = json!({ "summary": "No.", "blocked": "I have to count." });
        let early = || json!({ "absent": "allowed now" });
        let asks = json!({ "absent": "allowed now", "contains": "to a person" });
        let project = project(&[
            (1, early(), "bash", json!({ "command": LINE })),
            (2, asks, "finish", gives_up),
            (
                1,
                json!({ "contains": "allowed now" }),
                "bash",
                json!({ "command": LINE }),
            ),
            (
                2,
                json!({ "contains": "exit" }),
                "finish",
                json!({ "summary": "Counted." }),
            ),
        ])?;
        let mut up = start(&project.runner, &["up"])?;
        until_ready(project.path(), &mut up).await?;
        let asked = until_asked(&project).await?;
        until_task(&project, |task| {
            task.state == ropewalk_schemas::task::TaskState::Failed
        })
        .await?;
        project.run(&format!("question answer {asked} {choice}"))?;
        project.run("build wait walks --at-most 100")?;
        stop(&mut up).await?;
        check_again(&project, None).await?;
    }
    Ok(())
}

/// The model still works when a person allows the call; it hears so, and may from its next turn on.
#[tokio::test]
async fn a_build_whose_model_heard_that_a_call_is_allowed_is_done_again_to_the_same_commits()
-> anyhow::Result<()> {
    // Nobody goes to the place of the replay.
    let waits = "case $PWD in */again/*) ;; *) until test -e go; do sleep 0.05; done; rm go;; esac";
    let project = project(&[
        (1, json!({}), "bash", json!({ "command": LINE })),
        (
            2,
            json!({ "contains": "to a person" }),
            "bash",
            json!({ "command": waits }),
        ),
        (
            3,
            json!({ "contains": "allowed now" }),
            "bash",
            json!({ "command": LINE }),
        ),
        (4, json!({}), "finish", json!({ "summary": "Counted." })),
    ])?;
    let mut up = start(&project.runner, &["up"])?;
    until_ready(project.path(), &mut up).await?;
    let asked = until_asked(&project).await?;
    project.run(&format!("question answer {asked} allow-call"))?;
    until_task(&project, |task| !task.guidance.is_empty()).await?;
    fs::write(slot(&project.path().join("state"))?.join("go"), "")?;
    project.run("build wait walks --at-most 100")?;
    stop(&mut up).await?;
    // What people said to a model that worked is not repeated, and the replay says so.
    check_again(&project, Some(3)).await
}

/// Finds the one checkout in which the task is worked on.
fn slot(state: &Path) -> anyhow::Result<PathBuf> {
    let mut above = vec![state.join("slots")];
    while let Some(directory) = above.pop() {
        if directory.join("a.txt").exists() {
            return Ok(directory);
        }
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.is_dir() {
                above.push(path);
            }
        }
    }
    anyhow::bail!("no slot in {}", state.display())
}
