//! The program is ended at any step, and the next one goes on to the same result.

use std::time::SystemTime;

use ropewalk_schemas::SpecId;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::task::{Task, TaskState};
use serde_json::{Value, json};

use crate::world::project::{Project, writes, writes_slowly};

fn plan(id: &str, needs: &[&str]) -> Value {
    json!({
        "id": id, "phase": "api", "action": "CREATE", "file": format!("{id}.txt"),
        "validation": { "command": format!("sleep 0.3; grep -q good {id}.txt"), "expected": "exit 0" },
        "depends_on": needs,
    })
}

fn project() -> Project {
    let rules = [
        writes_slowly("T-1", "T-1.txt", "good\n", 200),
        // The first try of T-2 fails honestly.
        writes("T-2", "T-2.txt", "good\n", Some("exit code 1")),
        writes("T-2", "T-2.txt", "bad\n", None),
        writes("T-3", "T-3.txt", "good\n", None),
    ];
    Project::new(&rules.concat()).with(|options| options.loops = 2)
}

async fn check_end(project: &Project, spec: SpecId) {
    let open = project.open().await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert!(tasks.iter().all(|task| task.state == TaskState::Complete));
    let log = open.git(&["log", "--reverse", "--format=%s", "main..build/habits"]);
    let mut subjects: Vec<&str> = log.lines().collect();
    assert_eq!(subjects.remove(0), "ideas: add habits");
    subjects.sort_unstable();
    assert_eq!(
        subjects,
        [
            "T-1: create T-1.txt",
            "T-2: create T-2.txt",
            "T-3: create T-3.txt"
        ],
        "one commit for each task"
    );
    assert_eq!(
        build.head.unwrap().as_str(),
        open.git(&["rev-parse", "build/habits"])
    );
    assert!(open.held_locks().await.is_empty());
    let failed = open
        .events()
        .await
        .iter()
        .filter(|(event_type, _)| event_type == "task.failed")
        .count();
    assert_eq!(failed, 1, "only the honest failure counts");
    open.close().await;
}

/// How often a moment may be over before the crash comes.
const CHANCES: usize = 8;

/// Crashes as soon as `reached` holds, and expects the same end; a build that was over before shows nothing.
async fn crash_when(reached: impl Fn(&[TaskState], BuildState) -> bool) {
    for _ in 0..CHANCES {
        let project = project();
        let open = project.open().await;
        let spec = open
            .approve(json!([
                plan("T-1", &[]),
                plan("T-2", &[]),
                plan("T-3", &["T-1", "T-2"])
            ]))
            .await;
        let holds = |build: &Build, tasks: &[Task]| {
            let states: Vec<TaskState> = tasks.iter().map(|task| task.state).collect();
            reached(&states, build.state)
        };
        let (build, tasks) = open
            .until(spec, |build, tasks| {
                holds(build, tasks) || build.completed_at.is_some()
            })
            .await;
        let came_in_time = holds(&build, &tasks);
        open.crash().await;
        if came_in_time {
            return check_end(&project, spec).await;
        }
    }
    panic!("the build was over {CHANCES} times before the crash could come");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crashed_before_the_first_claim() {
    crash_when(|_, build| build == BuildState::Running).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crashed_while_an_agent_works() {
    crash_when(|tasks, _| tasks[0] == TaskState::Working).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crashed_while_the_gate_runs() {
    crash_when(|tasks, _| tasks.contains(&TaskState::Validating)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crashed_after_the_first_landing() {
    crash_when(|tasks, _| tasks.contains(&TaskState::Complete)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crashed_during_the_whole_build_check() {
    crash_when(|_, build| build == BuildState::Verifying).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crashed_between_landing_and_publishing() {
    let project = project();
    let open = project.open().await;
    let spec = open.approve(json!([plan("T-1", &[])])).await;
    let (build, _) = open.ended(spec).await;
    open.crash().await;
    // The ref never moved: as if the crash had come right after the commit to SQL.
    let repo = project.repo();
    let head = build.head.unwrap();
    crate::world::project::git(&repo, &["update-ref", "-d", "refs/heads/build/habits"]);
    project.unpublish(build.id).await;
    let open = project.open().await;
    open.until(spec, |build, _| build.published == build.head)
        .await;
    assert_eq!(open.git(&["rev-parse", "build/habits"]), head.as_str());
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_a_killed_push_left_is_cleared_and_one_of_just_now_is_waited_out() {
    for left in [Some(SystemTime::UNIX_EPOCH), None] {
        check_lock_of(left).await;
    }
}

/// Leaves a lock of that time, or of just now, on the branch, and expects the build to end all the same.
async fn check_lock_of(left: Option<SystemTime>) {
    let project = project();
    let lock = project.repo().join(".git/refs/heads/build/habits.lock");
    std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
    let file = std::fs::File::create(&lock).unwrap();
    if let Some(left) = left {
        file.set_modified(left).unwrap();
    }
    let open = project.open().await;
    let spec = open.approve(json!([plan("T-1", &[])])).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(build.published, build.head);
    open.close().await;
}
