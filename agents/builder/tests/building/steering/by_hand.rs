//! A task that failed is fixed by a person, on the branch of its build.

use ropewalk_schemas::SpecId;
use ropewalk_schemas::build::{Build, BuildState, PauseReason};
use ropewalk_schemas::payload::TaskRetry;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{Payload, Subject, TaskId};
use serde_json::{Value, json};

use crate::world::house::{House, OpenHouse, git, task, writes};

fn plan(id: &str) -> Value {
    json!({
        "id": id, "phase": "api", "action": "CREATE", "file": format!("{id}.txt"),
        "validation": { "command": format!("grep -q good {id}.txt"), "expected": "exit 0" },
    })
}

/// The second task fails at its first try, and passes at the next one.
fn house() -> House {
    let bad = writes("T-2", "T-2.txt", "bad\n", None).replace("  turn:", "  attempt: 1\n  turn:");
    let rules = [
        writes("T-1", "T-1.txt", "good\n", None),
        bad,
        writes("T-2", "T-2.txt", "good\n", None),
    ];
    House::new(&rules.concat()).with(|options| {
        options.loops = 1;
        options.tries.tries = 1;
    })
}

/// Builds until the second task has failed, and a person says that they fix it.
async fn left_to_a_person(open: &OpenHouse) -> (SpecId, Build) {
    let spec = open.approve(json!([plan("T-1"), plan("T-2")])).await;
    open.until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    open.answer("T-2", "I'll fix this manually").await;
    let (build, _) = open
        .until(spec, |build, _| build.state == BuildState::Failed)
        .await;
    (spec, build)
}

/// Commits a file on the branch of the build, and returns the commit.
fn commit(open: &OpenHouse, file: &str, content: &str) -> String {
    let aside = tempfile::tempdir().unwrap();
    let aside = aside.path().join("tree");
    let tree = aside.to_str().unwrap();
    open.git(&["worktree", "add", "-q", "--detach", tree, "build/habits"]);
    std::fs::write(aside.join(file), content).unwrap();
    git(&aside, &["add", "."]);
    git(&aside, &["commit", "-q", "-m", "Fix it myself"]);
    let theirs = git(&aside, &["rev-parse", "HEAD"]);
    open.git(&["update-ref", "refs/heads/build/habits", &theirs]);
    theirs
}

async fn retry(open: &OpenHouse, build: &Build) {
    let task = TaskId::parse("T-2").unwrap();
    let wish = TaskRetry {
        build_id: build.id,
        task_id: task.clone(),
        requested_by: "ada".to_owned(),
        guidance: None,
    };
    open.emit(Subject::task(build.id, &task), Payload::TaskRetry(wish))
        .await;
}

async fn succeeded(open: &OpenHouse, spec: SpecId) -> (Build, Vec<Task>) {
    let (build, tasks) = open
        .until(spec, |build, _| build.state == BuildState::Succeeded)
        .await;
    assert_eq!(task(&tasks, "T-2").state, TaskState::Complete);
    let head = build.head.as_ref().unwrap().as_str();
    assert_eq!(open.git(&["show", "build/habits:T-2.txt"]), "good");
    assert_eq!(open.git(&["rev-parse", "build/habits"]), head);
    (build, tasks)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fix_by_hand_lands_without_a_model_once_its_task_is_tried_again() {
    let house = house();
    let open = house.open().await;
    let (spec, build) = left_to_a_person(&open).await;
    let theirs = commit(&open, "T-2.txt", "good\n");
    let calls = house.calls();
    retry(&open, &build).await;
    let (build, tasks) = succeeded(&open, spec).await;
    assert_eq!(house.calls(), calls, "no model was asked");
    assert_eq!(
        task(&tasks, "T-2").commit.as_ref().unwrap().as_str(),
        theirs
    );
    let attempts = open.attempts(build.id, "T-2").await;
    let told = attempts.last().unwrap().summary.as_deref();
    assert_eq!(told, Some("Made by hand: Fix it myself"));
    let evidence = open.evidence(build.id).await;
    let seen = evidence.iter().any(|one| one.commit.as_str() == theirs);
    assert!(seen, "the gate saw it");
    assert!(open.questions("branch_moved").await.is_empty());
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fix_by_hand_that_does_not_pass_is_asked_about_and_built_on() {
    let house = house();
    let open = house.open().await;
    let (spec, build) = left_to_a_person(&open).await;
    let theirs = commit(&open, "T-2.txt", "still bad\n");
    let calls = house.calls();
    retry(&open, &build).await;
    let (paused, tasks) = open
        .until(spec, |build, tasks| {
            let told = task(tasks, "T-2").reason.is_some();
            build.pause_reason == Some(PauseReason::Conflict) && told
        })
        .await;
    assert_eq!(paused.state, BuildState::Paused);
    let told = task(&tasks, "T-2").reason.clone().unwrap();
    assert!(told.contains("does not pass its check yet"), "{told}");
    assert_eq!(house.calls(), calls, "a person decides first");
    open.answer_about_build("build-on-top").await;
    let (build, _) = succeeded(&open, spec).await;
    assert!(house.calls() > calls, "a model went on from it");
    let head = build.head.as_ref().unwrap().as_str();
    open.git(&["merge-base", "--is-ancestor", &theirs, head]);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fix_that_the_build_went_on_upon_already_needs_no_model_either() {
    let house = house();
    let open = house.open().await;
    let (spec, build) = left_to_a_person(&open).await;
    let theirs = commit(&open, "T-2.txt", "good\n");
    // What another landing finds on the branch, and what a person says of it.
    open.change_build(build.id, |build| {
        build.head = Some(theirs.parse().unwrap());
        build.published.clone_from(&build.head);
    })
    .await;
    let calls = house.calls();
    retry(&open, &build).await;
    let (_, tasks) = succeeded(&open, spec).await;
    assert_eq!(house.calls(), calls, "no model was asked");
    assert_eq!(
        task(&tasks, "T-2").commit.as_ref().unwrap().as_str(),
        theirs
    );
    open.close().await;
}
