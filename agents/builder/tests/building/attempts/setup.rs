//! A line of the project's file makes each fresh checkout ready: for the model, and for the gate, where it is evidence.

mod retired;

use ropewalk_schemas::build::{Build, BuildState, PauseReason};
use ropewalk_schemas::task::{TaskState, WaitReason};
use serde_json::{Value, json};

use crate::world::project::{Project, task, writes};
use crate::world::script::writes_after;

/// What the line makes is ignored, so that it is no work of the task.
fn project(setup: &str) -> Project {
    let project_file = format!("[build]\nsetup = {}\n", json!(setup));
    Project::new(&writes("T-1", "a.txt", "good\n", None)).with_files(&[
        ("ropewalk.toml", &project_file),
        (".gitignore", "ready.txt\n"),
    ])
}

/// Passes where the line ran before it.
fn plan() -> Value {
    json!([{
        "id": "T-1", "phase": "api", "action": "CREATE", "file": "a.txt",
        "validation": { "command": "grep -q ready ready.txt && grep -q good a.txt", "expected": "exit 0" },
    }])
}

fn is_held(build: &Build) -> bool {
    build.state == BuildState::Paused && build.pause_reason != Some(PauseReason::Conflict)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_makes_checkouts_ready_runs_in_slot_and_gate_and_is_evidence() {
    let project = project("echo ready > ready.txt");
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let told = project.prompts("T-1").concat();
    let ran =
        "## Made Ready\nBefore you began, this was run in the checkout: `echo ready > ready.txt`.";
    assert!(told.contains(ran), "{told}");
    let system = project.requests("T-1").remove(0).system;
    let is_run = "is first made ready by `echo ready > ready.txt`";
    assert!(system.contains(is_run), "{system}");
    assert!(!system.contains("No package is installed"), "{system}");
    let evidence = open.evidence(build.id).await;
    assert!(evidence.len() > 1, "of the task and of the whole");
    for seen in &evidence {
        let names: Vec<&str> = seen.installs.iter().map(|run| &*run.name).collect();
        assert_eq!(names, ["setup"], "{seen:?}");
    }
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_fails_holds_the_work_and_asks_a_person() {
    let project = project("echo no such server >&2; exit 3");
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (_, tasks) = open
        .until(spec, |build, tasks| {
            is_held(build) && task(tasks, "T-1").state == TaskState::Waiting
        })
        .await;
    let held = task(&tasks, "T-1");
    assert_eq!(held.waiting_for, Some(WaitReason::Check), "{held:?}");
    let asked = open.questions("check_held").await;
    assert_eq!(asked.len(), 1);
    assert!(asked[0].text.contains("setup"), "{}", asked[0].text);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_changes_the_project_is_undone_and_told() {
    let project = project("echo ready > ready.txt; echo more >> README.md");
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    open.until(spec, |build, _| is_held(build)).await;
    let asked = open.questions("check_held").await;
    assert!(asked[0].text.contains("`README.md`"), "{}", asked[0].text);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_judges_a_build_is_that_of_its_base_whatever_is_edited_and_committed_meanwhile() {
    let place = tempfile::tempdir().unwrap();
    let go = place.path().join("go");
    let of = |setup: &str, check: &str| {
        format!(
            "[build]\nsetup = {}\n[[gate.commands]]\nname = {}\ncommand = \"true\"\nlevel = \"quick\"\n",
            json!(setup),
            json!(check)
        )
    };
    let base = of("echo ready > ready.txt", "of-base");
    let project = Project::new(&writes_after("T-1", "a.txt", "good\n", &go))
        .with_files(&[("ropewalk.toml", &base), (".gitignore", "ready.txt\n")]);
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    open.until(spec, |_, tasks| {
        task(tasks, "T-1").state == TaskState::Working
    })
    .await;
    let project_file = project.repo().join("ropewalk.toml");
    std::fs::write(&project_file, of("exit 3", "committed")).unwrap();
    open.git(&["commit", "-q", "-a", "-m", "Check otherwise"]);
    std::fs::write(&project_file, of("exit 4", "edited")).unwrap();
    std::fs::write(go, "").unwrap();
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let evidence = open.evidence(build.id).await;
    assert!(evidence.len() > 1, "of the task and of the whole");
    for seen in &evidence {
        let names: Vec<&str> = seen.checks.iter().map(|check| &*check.name).collect();
        assert!(names.contains(&"of-base"), "{names:?}");
        assert!(!names.contains(&"committed") && !names.contains(&"edited"));
        assert_eq!(seen.installs.len(), 1, "{seen:?}");
    }
    open.close().await;
}
