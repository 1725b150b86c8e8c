//! What people ask of a build: approve once, pause, resume, stop; and when it gives up by itself.

use ropewalk_schemas::build::{BuildState, PauseReason};
use ropewalk_schemas::task::TaskState;
use ropewalk_schemas::{ContentHash, Payload, Priority, Subject};
use ropewalk_store::{ChangeSet, DeliveryFilter, DeliveryState};
use serde_json::{Value, json};

use crate::world::project::{Project, request, task, writes, writes_after};

fn plan(id: &str, command: &str) -> Value {
    json!({
        "id": id, "phase": "api", "action": "CREATE", "file": format!("{id}.txt"),
        "validation": { "command": command, "expected": "exit 0" },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_approval_begins_no_second_build() {
    let project = Project::new(&writes("T-1", "T-1.txt", "good\n", None));
    let open = project.open().await;
    let spec = open.approve(json!([plan("T-1", "true")])).await;
    let (build, _) = open.ended(spec).await;
    let mut changes = ChangeSet::new();
    changes.emit(open.approval(spec, build.hash.clone()));
    open.services.store.commit(changes).await.unwrap();
    open.settled().await;
    assert_eq!(open.builds().await, 1);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_of_another_hash_begins_nothing() {
    let project = Project::new(&writes("T-1", "T-1.txt", "good\n", None));
    let open = project.open().await;
    open.store_plan(
        json!([plan("T-1", "true")]),
        Some(ContentHash::of(b"another")),
        Priority::DEFAULT,
    )
    .await;
    open.settled().await;
    assert_eq!(open.builds().await, 0);
    let filter = DeliveryFilter {
        states: vec![DeliveryState::Dead],
        ..DeliveryFilter::default()
    };
    let dead = open.services.store.deliveries(&filter).await.unwrap();
    assert_eq!(
        dead.len(),
        1,
        "it lies in the dead letters, for people to see"
    );
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_lets_running_tasks_finish_and_nothing_new_begin() {
    let signals = tempfile::tempdir().unwrap();
    let go = signals.path().join("go");
    let rules = [
        writes_after("T-1", "T-1.txt", "good\n", &go),
        writes("T-2", "T-2.txt", "good\n", None),
    ];
    let project = Project::new(&rules.concat()).with(|options| options.loops = 1);
    let open = project.open().await;
    let spec = open
        .approve(json!([plan("T-1", "true"), plan("T-2", "true")]))
        .await;
    let (build, _) = open
        .until(spec, |_, tasks| tasks[0].state == TaskState::Working)
        .await;
    let asked = request(build.id);
    open.emit(Subject::build(build.id), Payload::BuildPause(asked))
        .await;
    open.until(spec, |build, _| build.pause_requested).await;
    std::fs::write(&go, "").unwrap();
    let (build, tasks) = open
        .until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    assert_eq!(build.pause_reason, Some(PauseReason::Person));
    assert_eq!(task(&tasks, "T-1").state, TaskState::Complete);
    assert_eq!(
        (task(&tasks, "T-2").state, task(&tasks, "T-2").attempts),
        (TaskState::Ready, 0)
    );
    assert!(open.held_locks().await.is_empty());
    let asked = request(build.id);
    open.emit(Subject::build(build.id), Payload::BuildResume(asked))
        .await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded);
    assert_eq!(task(&tasks, "T-1").attempts, 1);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_build_keeps_its_work_and_can_be_resumed() {
    let signals = tempfile::tempdir().unwrap();
    let go = signals.path().join("go");
    let rules = [
        writes_after("T-1", "T-1.txt", "good\n", &go),
        writes("T-2", "T-2.txt", "good\n", None),
    ];
    let project = Project::new(&rules.concat()).with(|options| options.loops = 1);
    let open = project.open().await;
    let spec = open
        .approve(json!([plan("T-1", "true"), plan("T-2", "true")]))
        .await;
    let (build, _) = open
        .until(spec, |_, tasks| tasks[0].state == TaskState::Working)
        .await;
    let asked = request(build.id);
    open.emit(Subject::build(build.id), Payload::BuildStop(asked))
        .await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Stopped);
    assert_eq!(
        build.reason.as_deref(),
        Some("stop requested by ada; ended in mid-attempt with their work kept: `T-1`")
    );
    assert!(open.held_locks().await.is_empty());
    assert!(tasks.iter().all(|task| task.state == TaskState::Pending));
    std::fs::write(&go, "").unwrap();
    let asked = request(build.id);
    open.emit(Subject::build(build.id), Payload::BuildResume(asked))
        .await;
    let (build, _) = open
        .until(spec, |build, _| build.state == BuildState::Succeeded)
        .await;
    let ahead = open.git(&["rev-list", "--count", "main..build/habits"]);
    assert_eq!(ahead, "3", "{:?}", build.reason);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_critical_task_stops_the_build() {
    let rules = [
        writes("T-1", "T-1.txt", "bad\n", None),
        writes("T-2", "T-2.txt", "good\n", None),
    ];
    let project = Project::new(&rules.concat()).with(|options| options.loops = 1);
    let open = project.open().await;
    let mut critical = plan("T-1", "false");
    critical["phase"] = json!("database");
    let spec = open.approve(json!([critical, plan("T-2", "true")])).await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Stopped);
    assert_eq!(
        build.reason.as_deref(),
        Some("critical task `T-1` of phase `database` failed")
    );
    assert_eq!(task(&tasks, "T-2").attempts, 0);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_tool_holds_the_task_and_never_passes() {
    let project = Project::new(&writes("T-1", "T-1.txt", "good\n", None));
    let open = project.open().await;
    let spec = open
        .approve(json!([plan("T-1", "no-such-tool --check")]))
        .await;
    let (build, tasks) = open
        .until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    let held = task(&tasks, "T-1");
    assert_eq!(held.state, TaskState::Waiting);
    let reason = held.reason.clone().unwrap();
    assert!(reason.contains("no-such-tool"), "{reason}");
    assert_eq!(held.tries, 0);
    assert!(build.reason.unwrap().contains("a check could not run"));
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_verifies_makes_no_commit() {
    let project = Project::new(&writes("T-1", "T-1.txt", "good\n", None));
    let open = project.open().await;
    let mut verify = plan("T-2", "grep -q good T-1.txt");
    verify["action"] = json!("VERIFY");
    verify["file"] = json!("T-1.txt");
    verify["depends_on"] = json!(["T-1"]);
    let spec = open.approve(json!([plan("T-1", "true"), verify])).await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(task(&tasks, "T-2").state, TaskState::Complete);
    assert_eq!(task(&tasks, "T-2").commit, None);
    let ahead = open.git(&["rev-list", "--count", "main..build/habits"]);
    assert_eq!(ahead, "2");
    open.close().await;
}
