//! When a build pauses, gives up, and goes on from there.

use std::time::Duration;

use chrono::{TimeZone, Utc};
use ropewalk_runtime::Clock;
use ropewalk_schemas::attempt::AttemptState;
use ropewalk_schemas::build::{BuildState, PauseReason};
use ropewalk_schemas::task::TaskState;
use ropewalk_schemas::{Payload, Subject};
use serde_json::{Value, json};

use crate::world::patience::until;
use crate::world::project::{Project, request, task, writes};
use crate::world::script::{append, holds_back, meet, steps};

fn plan(id: &str) -> Value {
    json!({
        "id": id, "phase": "api", "action": "CREATE", "file": format!("{id}.txt"),
        "validation": { "command": format!("cat {id}.txt; grep -q good {id}.txt"), "expected": "exit 0" },
    })
}

/// The same rules, for one try only.
fn at_try(number: u32, rules: &str) -> String {
    rules.replace("  turn:", &format!("  attempt: {number}\n  turn:"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_counts_who_still_runs_and_holds_back_a_retry_that_comes_due() {
    let signals = tempfile::tempdir().unwrap();
    let [first, second, seen] = ["first", "second", "seen"].map(|name| signals.path().join(name));
    let mut rules = vec![
        steps("T-1", &[meet(&first), append("good", "T-1.txt")]),
        steps("T-2", &[meet(&second), append("good", "T-2.txt")]),
    ];
    for number in 3..=6 {
        let id = format!("T-{number}");
        rules.push(writes(&id, &format!("{id}.txt"), "good\n", None));
    }
    let project = Project::new(&rules.concat()).with(|options| {
        options.loops = 2;
        options.tries.backoff = Duration::from_millis(200);
    });
    let open = project.open().await;
    let mut tasks: Vec<Value> = (1..=6).map(|number| plan(&format!("T-{number}"))).collect();
    let seen = seen.display();
    tasks[1]["validation"]["command"] = json!(format!(
        "if [ -e {seen} ]; then grep -q good T-2.txt; else touch {seen}; echo 'Could not resolve host: crates'; exit 1; fi"
    ));
    let spec = open.approve(json!(tasks)).await;
    let working = |task: &ropewalk_schemas::task::Task| task.state == TaskState::Working;
    let (build, _) = open
        .until(spec, |_, tasks| {
            tasks.iter().filter(|task| working(task)).count() == 2
        })
        .await;
    let pause = Payload::BuildPause(request(build.id));
    open.emit(Subject::build(build.id), pause).await;
    for (seen, go) in [
        ("pause requested, 2 running", second),
        ("pause requested, 1 running", first),
    ] {
        open.until(spec, |build, _| build.reason.as_deref() == Some(seen))
            .await;
        std::fs::write(go, "").unwrap();
    }
    let (build, _) = open
        .until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    assert_eq!(build.pause_reason, Some(PauseReason::Person));
    assert!(open.held_locks().await.is_empty());
    // Longer than the pause before the retry: nothing tells that nothing happens.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let tasks = open.tasks(build.id).await;
    let attempts: Vec<u32> = tasks.iter().map(|task| task.attempts).collect();
    assert_eq!(attempts, [1, 1, 0, 0, 0, 0]);
    let resume = Payload::BuildResume(request(build.id));
    open.emit(Subject::build(build.id), resume).await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let attempts: Vec<u32> = tasks.iter().map(|task| task.attempts).collect();
    assert_eq!(
        attempts,
        [1, 2, 1, 1, 1, 1],
        "nothing finished is run again"
    );
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_failures_go_on_a_fourth_stops_and_the_rest_can_be_resumed() {
    let mut rules = Vec::new();
    for number in 1..=6 {
        let id = format!("T-{number}");
        let file = format!("{id}.txt");
        if !matches!(number, 4 | 6) {
            rules.push(at_try(1, &writes(&id, &file, "bad\n", None)));
        }
        rules.push(writes(&id, &file, "good\n", None));
    }
    let project = Project::new(&rules.concat()).with(|options| {
        options.loops = 1;
        options.tries.tries = 1;
    });
    let open = project.open().await;
    let tasks: Vec<Value> = (1..=6).map(|number| plan(&format!("T-{number}"))).collect();
    let spec = open.approve(json!(tasks)).await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Stopped);
    assert_eq!(
        build.reason.as_deref(),
        Some("too many failures: `T-1`, `T-2`, `T-3`, `T-5`")
    );
    assert_eq!(
        task(&tasks, "T-4").state,
        TaskState::Complete,
        "three go on"
    );
    let left = task(&tasks, "T-6");
    assert_eq!((left.state, left.attempts), (TaskState::Pending, 0));
    assert!(
        left.reason
            .as_deref()
            .is_some_and(|why| why.contains("stopped"))
    );
    assert!(open.held_locks().await.is_empty());
    let told = open.events().await;
    let ended = told
        .iter()
        .rev()
        .find(|(kind, _)| kind == "build.completed");
    assert_eq!(ended.unwrap().1["reason"], json!(build.reason));
    let resume = Payload::BuildResume(request(build.id));
    open.emit(Subject::build(build.id), resume).await;
    let (build, tasks) = open
        .until(spec, |build, _| build.state == BuildState::Succeeded)
        .await;
    assert!(tasks.iter().all(|task| task.state == TaskState::Complete));
    assert_eq!(task(&tasks, "T-4").attempts, 1, "{:?}", build.reason);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn used_up_working_time_stops_and_keeps_the_work_of_whom_it_ends() {
    let limit = Duration::from_mins(5);
    let clock = Clock::manual(Utc.with_ymd_and_hms(2026, 11, 21, 12, 0, 0).unwrap());
    let rules = writes("T-1", "T-1.txt", "good\n", None);
    let project = Project::new(&holds_back(&rules, 2, "until: /nowhere"))
        .at_the_time_of(&clock)
        .with(|options| {
            options.loops = 1;
            options.stop.working_time = limit;
        });
    let open = project.open().await;
    let spec = open.approve(json!([plan("T-1"), plan("T-2")])).await;
    let asked_again = async || project.requests("T-1").len() >= 2;
    until("its model is asked again", asked_again).await;
    clock.advance(limit);
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Stopped);
    let reason = build.reason.clone().unwrap();
    assert!(reason.starts_with("time limit"), "{reason}");
    assert!(reason.ends_with("with their work kept: `T-1`"), "{reason}");
    assert_eq!(task(&tasks, "T-2").attempts, 0);
    let attempts = open.attempts(build.id, "T-1").await;
    assert_eq!(attempts[0].state, AttemptState::Interrupted);
    let kept = attempts[0].preserve_ref.as_ref().expect("a preserve ref");
    let state = project.state().join("repository.git");
    let content = crate::world::project::git(&state, &["show", &format!("{kept}:T-1.txt")]);
    assert_eq!(content, "good");
    open.close().await;
}
