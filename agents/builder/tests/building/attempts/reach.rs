//! How far a failure reaches: what it says, whom it stops, what it leaves in the slot, and when nothing progresses.

use std::path::Path;

use ropewalk_schemas::attempt::FailureClass;
use ropewalk_schemas::build::{BuildState, PauseReason};
use ropewalk_schemas::payload::TaskRetry;
use ropewalk_schemas::task::TaskState;
use ropewalk_schemas::{Payload, Subject};
use serde_json::{Value, json};

use crate::world::project::{Project, git, task, writes};
use crate::world::script::{append, meet, steps};

fn plan(id: &str, needs: &[&str]) -> Value {
    json!({
        "id": id, "phase": "api", "action": "CREATE", "file": format!("{id}.txt"),
        "validation": { "command": format!("cat {id}.txt; grep -q good {id}.txt"), "expected": "exit 0" },
        "depends_on": needs,
    })
}

fn at_try(number: u32, rules: &str) -> String {
    rules.replace("  turn:", &format!("  attempt: {number}\n  turn:"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_says_whom_it_blocks_and_stops_nobody_else() {
    let signals = tempfile::tempdir().unwrap();
    let go = signals.path().join("go");
    let rules = [
        at_try(4, &writes("T-1", "T-1.txt", "good\n", None)),
        writes("T-1", "T-1.txt", "bad\n", None),
        steps("T-2", &[meet(&go), append("good", "T-2.txt")]),
        writes("T-3", "T-3.txt", "good\n", None),
        writes("T-4", "T-4.txt", "good\n", None),
        writes("T-5", "T-5.txt", "good\n", None),
    ];
    let project = Project::new(&rules.concat()).with(|options| options.loops = 2);
    let open = project.open().await;
    let spec = open
        .approve(json!([
            plan("T-1", &[]),
            plan("T-2", &[]),
            plan("T-3", &["T-1", "T-2"]),
            plan("T-4", &["T-2"]),
            plan("T-5", &["T-3", "T-4"]),
        ]))
        .await;
    // The second works until the first has failed for good.
    open.until(spec, |_, tasks| {
        task(tasks, "T-1").state == TaskState::Failed
            && task(tasks, "T-2").state == TaskState::Working
    })
    .await;
    std::fs::write(&go, "").unwrap();
    let (build, _) = open
        .until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    assert_eq!(build.pause_reason, Some(PauseReason::Person));
    let told = open.events().await;
    let last = told.iter().rev().find(|(kind, _)| kind == "task.failed");
    let told = &last.unwrap().1;
    assert_eq!(told["will_retry"], json!(false));
    assert_eq!(
        (&told["blocked"], &told["continuing"]),
        (&json!(2), &json!(2))
    );
    assert!(told["error"].as_str().unwrap().contains("bad"));
    assert!(told["recommended"].as_str().unwrap().contains("guidance"));
    let question = open.open_question("T-1").await.unwrap();
    let reach = "2 tasks are blocked by it, 2 tasks go on without it.";
    assert!(question.text.contains(reach), "{}", question.text);
    assert_eq!(
        open.attempts(build.id, "T-2").await.len(),
        1,
        "not interrupted"
    );
    let retry = TaskRetry {
        build_id: build.id,
        task_id: question_task(&question),
        requested_by: "ada".to_owned(),
        may_resume: false,
        guidance: None,
    };
    open.emit(Subject::build(build.id), Payload::TaskRetry(retry))
        .await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert!(tasks.iter().all(|task| task.state == TaskState::Complete));
    let tried = open.attempts(build.id, "T-1").await;
    let failed: usize = tried.iter().map(|one| one.failures().count()).sum();
    assert_eq!((tried.len(), failed), (2, 3), "its history stays");
    open.close().await;
}

fn question_task(question: &ropewalk_schemas::question::Question) -> ropewalk_schemas::TaskId {
    match &question.about {
        ropewalk_schemas::question::About::Task { task, .. } => task.clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_same_error_without_a_change_is_no_progress() {
    let other = |number: u32| {
        let content = format!("bad {}\n", "x".repeat(number as usize));
        at_try(number, &writes("T-2", "T-2.txt", &content, None))
    };
    let rules = [
        writes("T-1", "T-1.txt", "bad\n", None),
        other(1),
        other(2),
        other(3),
    ];
    let project = Project::new(&rules.concat());
    let open = project.open().await;
    // The error of the second is always the same, but what it changes is not.
    let mut second = plan("T-2", &[]);
    second["validation"]["command"] = json!("grep -q good T-2.txt");
    let spec = open.approve(json!([plan("T-1", &[]), second])).await;
    let (build, tasks) = open
        .until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    let class = |id: &str| task(&tasks, id).failures.last().unwrap().class;
    assert_eq!(class("T-1"), FailureClass::NoProgress);
    assert_eq!(class("T-2"), FailureClass::ValidationFailed);
    let told = open.events().await;
    let ends: Vec<&Value> = told
        .iter()
        .filter(|(kind, data)| kind == "task.failed" && data["category"] == json!("NO_PROGRESS"))
        .map(|(_, data)| data)
        .collect();
    assert_eq!(ends.len(), 1);
    let error = ends[0]["error"].as_str().unwrap();
    assert!(
        error.starts_with("attempts 1, 2, 3 ended with the same error"),
        "{error}"
    );
    assert!(error.contains("bad"), "{error}");
    for id in ["T-1", "T-2"] {
        assert!(open.open_question(id).await.is_some(), "{id}");
        let attempts = open.attempts(build.id, id).await;
        assert_eq!(attempts.len(), 1, "one conversation");
        assert_eq!(attempts[0].failures().count(), 3);
    }
    open.close().await;
}

/// Lists the files below a directory, in order.
fn files(directory: &Path, prefix: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path(), &format!("{name}/")));
        } else {
            found.push(name);
        }
    }
    found.sort();
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_attempt_leaves_its_slot_as_it_was_and_its_work_under_a_ref() {
    let messy = writes("T-2", "T-2.txt", "bad\n", None).replace(
        "mkdir -p $(dirname T-2.txt);",
        "mkdir -p junk/deep; echo x > junk/deep/stray.tmp; echo y > stray.tmp; mkfifo pipe;",
    );
    assert!(messy.contains("stray.tmp"));
    let project = Project::new(&messy)
        .with_files(&[(".gitignore", "*.tmp\n")])
        .with(|options| options.loops = 1);
    let open = project.open().await;
    let spec = open.approve(json!([plan("T-2", &[])])).await;
    let (build, _) = open
        .until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    let attempts = open.attempts(build.id, "T-2").await;
    let [attempt] = &attempts[..] else {
        panic!("one conversation: {attempts:?}");
    };
    assert_eq!(attempt.failures().count(), 3);
    let clone = project.state().join("repository.git");
    let refused = attempt.tries.iter().map(|one| &one.preserve_ref);
    for kept in refused.chain([&attempt.preserve_ref]) {
        let kept = kept.as_ref().unwrap();
        assert_eq!(git(&clone, &["show", &format!("{kept}:T-2.txt")]), "bad");
    }
    let slot = project.state().join("slots/1/tree");
    let base = attempt.base.as_str();
    let listed = git(&clone, &["ls-tree", "-r", "--name-only", base]);
    let expected: Vec<&str> = listed.lines().collect();
    assert_eq!(files(&slot, ""), expected);
    for path in expected {
        let content = git(&clone, &["show", &format!("{base}:{path}")]);
        let found = std::fs::read_to_string(slot.join(path)).unwrap();
        assert_eq!(found.trim(), content, "{path}");
    }
    assert!(
        open.held_locks().await.is_empty(),
        "the question holds no lock"
    );
    open.close().await;
}
