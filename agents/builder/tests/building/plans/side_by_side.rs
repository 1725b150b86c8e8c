//! Tasks and builds beside each other: overlap, serialisation, landing on a head that moved.

use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Utc};
use ropewalk_runtime::Clock;
use ropewalk_schemas::attempt::Attempt;
use ropewalk_schemas::build::{Build, BuildState, PauseReason};
use ropewalk_schemas::lease::{Holder, Lease, LeaseState};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{ComponentName, RepoPath, SpecId, TaskId};
use ropewalk_store::{ChangeSet, Query};
use serde_json::{Value, json};

use crate::world::project::{
    LOOK_EVERY, OpenProject, Project, git, task, writes, writes_after, writes_slowly,
};
use crate::world::script::{append_and_meet, meet, steps};

fn plan(id: &str, file: &str) -> Value {
    json!({
        "id": id, "phase": "api", "action": "CREATE", "file": file,
        "validation": { "command": format!("grep -q {id} {file}"), "expected": "exit 0" },
    })
}

async fn span(open: &OpenProject, build: &Build, id: &str) -> (DateTime<Utc>, DateTime<Utc>) {
    let attempts: Vec<Attempt> = open.attempts(build.id, id).await;
    (
        attempts[0].started_at,
        attempts.last().unwrap().ended_at.unwrap(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disjoint_files_overlap_and_one_file_is_taken_in_turn() {
    let signals = tempfile::tempdir().unwrap();
    let [a, b, go] = ["a", "b", "go"].map(|name| signals.path().join(name));
    // A and B meet each other, and end once C was seen to wait.
    let rules = [
        steps("A", &[append_and_meet("A", "a.txt", &a, &b), meet(&go)]),
        steps("B", &[append_and_meet("B", "b.txt", &b, &a), meet(&go)]),
        // Keeps what A wrote.
        writes("C", "a.txt", "A\nC\n", None),
    ];
    let project = Project::new(&rules.concat()).with(|options| options.loops = 3);
    let open = project.open().await;
    let spec = open
        .approve(json!([
            plan("A", "a.txt"),
            plan("B", "b.txt"),
            plan("C", "a.txt")
        ]))
        .await;
    let (waiting, _) = open
        .until(spec, |_, tasks| {
            tasks.iter().any(|task| task.state == TaskState::Waiting)
        })
        .await;
    let shown = open.tasks(waiting.id).await;
    let reason = shown.iter().find_map(|task| task.reason.clone());
    std::fs::write(&go, "").unwrap();
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(
        build.state,
        BuildState::Succeeded,
        "{:?} {reason:?}",
        build.reason
    );
    assert!(tasks.iter().all(|task| task.state == TaskState::Complete));
    let (a, b, c) = (
        span(&open, &build, "A").await,
        span(&open, &build, "B").await,
        span(&open, &build, "C").await,
    );
    assert!(a.0 < b.1 && b.0 < a.1, "A and B overlap");
    assert!(c.0 >= a.1, "C begins when A has ended");
    assert_eq!(open.git(&["show", "build/habits:a.txt"]), "A\nC");
    // Every commit passed the gate as it stands on the branch.
    let evidence = open.evidence(build.id).await;
    for task in &tasks {
        let commit = task.commit.as_ref().unwrap();
        let seen = evidence.iter().any(|evidence| {
            evidence.commit == *commit
                && evidence.verdict == ropewalk_schemas::attempt::Verdict::Passed
        });
        assert!(seen, "{}", task.id);
    }
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_that_lost_its_lock_cannot_land() {
    let signals = tempfile::tempdir().unwrap();
    let go = signals.path().join("go");
    let project = Project::new(&writes_after("A", "a.txt", "A\n", &go));
    let open = project.open().await;
    let spec = open.approve(json!([plan("A", "a.txt")])).await;
    open.until(spec, |_, tasks| tasks[0].state == TaskState::Working)
        .await;
    // Somebody takes the lock away behind its back.
    let leases = open
        .services
        .store
        .list::<Lease>(Query::new())
        .await
        .unwrap();
    let mut changes = ChangeSet::new();
    changes.revoke(&leases[0].path, leases[0].token);
    open.services.store.commit(changes).await.unwrap();
    std::fs::write(&go, "").unwrap();
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded);
    let attempts = open.attempts(build.id, "A").await;
    assert_eq!(
        attempts.len(),
        2,
        "the first could not land, the second did"
    );
    assert_eq!(task(&tasks, "A").tries, 0, "an interruption is not counted");
    assert!(attempts[1].token > attempts[0].token);
    let ahead = open.git(&["rev-list", "--count", "main..build/habits"]);
    assert_eq!(ahead, "2");
    open.close().await;
}

/// Opens a build whose first task has landed and whose second is at work, and goes on when the test says so.
async fn half_built(project: &Project) -> (OpenProject, SpecId) {
    let open = project.open().await;
    let spec = open
        .approve(json!([plan("A", "a.txt"), plan("B", "b.txt")]))
        .await;
    open.until(spec, |build, tasks| {
        tasks[0].state == TaskState::Complete
            && build.head == build.published
            && tasks[1].state == TaskState::Working
    })
    .await;
    (open, spec)
}

fn in_two_steps(go: &Path) -> Project {
    let rules = [
        writes("A", "a.txt", "A\n", None),
        writes_after("B", "b.txt", "B\n", go),
    ];
    Project::new(&rules.concat()).with(|options| options.loops = 1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_branch_that_somebody_moved_holds_the_build_and_asks() {
    let signals = tempfile::tempdir().unwrap();
    let go = signals.path().join("go");
    let project = in_two_steps(&go);
    let (open, spec) = half_built(&project).await;
    let theirs = open.git(&[
        "commit-tree",
        "-m",
        "mine",
        "-p",
        "build/habits",
        "main^{tree}",
    ]);
    open.git(&["update-ref", "refs/heads/build/habits", &theirs]);
    std::fs::write(&go, "").unwrap();
    let (build, _) = open
        .until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    assert_eq!(build.pause_reason, Some(PauseReason::Conflict));
    assert_eq!(open.git(&["rev-parse", "build/habits"]), theirs);
    open.answer_about_build("own-branch").await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(build.branch, "build/habits-2");
    assert_eq!(
        open.git(&["rev-parse", "build/habits"]),
        theirs,
        "theirs stays"
    );
    let head = build.head.unwrap();
    assert_eq!(open.git(&["rev-parse", "build/habits-2"]), head.as_str());
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_goes_on_upon_what_somebody_put_on_its_branch() {
    let signals = tempfile::tempdir().unwrap();
    let go = signals.path().join("go");
    let project = in_two_steps(&go);
    let (open, spec) = half_built(&project).await;
    let aside = tempfile::tempdir().unwrap();
    let aside = aside.path().join("tree");
    let tree = aside.to_str().unwrap();
    open.git(&["worktree", "add", "-q", "--detach", tree, "build/habits"]);
    std::fs::write(aside.join("theirs.txt"), "theirs\n").unwrap();
    git(&aside, &["add", "."]);
    git(&aside, &["commit", "-q", "-m", "theirs"]);
    let theirs = git(&aside, &["rev-parse", "HEAD"]);
    open.git(&["update-ref", "refs/heads/build/habits", &theirs]);
    std::fs::write(&go, "").unwrap();
    open.until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    open.answer_about_build("build-on-top").await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(build.branch, "build/habits");
    assert!(tasks.iter().all(|task| task.state == TaskState::Complete));
    let head = build.head.unwrap();
    assert_eq!(open.git(&["rev-parse", "build/habits"]), head.as_str());
    open.git(&["merge-base", "--is-ancestor", &theirs, "build/habits"]);
    for (file, content) in [("a.txt", "A"), ("theirs.txt", "theirs"), ("b.txt", "B")] {
        let shown = open.git(&["show", &format!("build/habits:{file}")]);
        assert_eq!(shown, content, "{file}");
    }
    assert_eq!(open.questions("branch_moved").await.len(), 1);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_leaves_out_landed_work_is_not_offered_to_build_on() {
    let signals = tempfile::tempdir().unwrap();
    let go = signals.path().join("go");
    let project = in_two_steps(&go);
    let (open, spec) = half_built(&project).await;
    open.git(&["update-ref", "refs/heads/build/habits", "main"]);
    std::fs::write(&go, "").unwrap();
    open.until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    let [question] = open.questions("branch_moved").await.try_into().unwrap();
    let choices = question.choices.iter().map(|choice| choice.id.as_str());
    assert_eq!(choices.collect::<Vec<_>>(), ["own-branch", "stop"]);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_build_waits_for_the_owner_of_a_file() {
    let rules = [
        writes("A", "a.txt", "A\n", None),
        writes("Z", "a.txt", "A\nZ\n", None),
        writes("Y", "y.txt", "Y\n", None),
    ];
    let project = Project::new(&rules.concat());
    let open = project.open().await;
    let first = open.approve(json!([plan("A", "a.txt")])).await;
    let (owner, _) = open.ended(first).await;
    let second = open
        .approve(json!([plan("Z", "a.txt"), plan("Y", "y.txt")]))
        .await;
    let (_, tasks) = open
        .until(second, |_, tasks| {
            tasks.iter().any(|task| task.state == TaskState::Waiting)
                && tasks.iter().any(|task| task.state == TaskState::Complete)
        })
        .await;
    let reason = task(&tasks, "Z").reason.clone().unwrap();
    assert!(reason.contains(&owner.id.to_string()), "{reason}");
    let types: Vec<String> = open
        .events()
        .await
        .into_iter()
        .map(|event| event.0)
        .collect();
    for wanted in ["change.requested", "conflict.detected"] {
        assert!(types.iter().any(|found| found == wanted), "{wanted}");
    }
    open.answer_about_build("merge").await;
    let (build, tasks) = open.ended(second).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert!(
        tasks
            .iter()
            .all(|task: &Task| task.state == TaskState::Complete)
    );
    assert_eq!(build.branch, "build/habits-2");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_living_holder_never_loses_its_lock() {
    // Twice as long as an unrenewed lock lives, which a busy machine does not stand still for.
    let rules = [writes_slowly("A", "a.txt", "A\n", 20_000)];
    let project =
        Project::new(&rules.concat()).with(|options| options.lease = Duration::from_secs(10));
    let open = project.open().await;
    let spec = open.approve(json!([plan("A", "a.txt")])).await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(task(&tasks, "A").attempts, 1);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_nobody_renews_is_taken_and_the_task_goes_on() {
    let project = Project::new(&writes("A", "a.txt", "A\n", None))
        .at_the_time_of(&Clock::manual(Clock::system().now()))
        .with(|options| options.lease = Duration::from_mins(2));
    let open = project.open().await;
    // Held by an attempt of another process that is gone.
    let mut changes = ChangeSet::new();
    changes.grant(Lease {
        path: RepoPath::parse("a.txt").unwrap(),
        holder: Holder {
            build: open.services.ids.next().into(),
            task: TaskId::parse("X").unwrap(),
            attempt: open.services.ids.next().into(),
            loop_name: ComponentName::parse("loop-9").unwrap(),
        },
        state: LeaseState::Granted,
        token: 0,
        renewals: 0,
        ttl_ms: 30_000,
        reason: "task X".to_owned(),
        granted_at: open.context.now(),
    });
    open.services.store.commit(changes).await.unwrap();
    let spec = open.approve(json!([plan("A", "a.txt")])).await;
    // At the pace of the machine, or a slow start would find the lock over.
    let waits = |_: &Build, tasks: &[Task]| tasks[0].state == TaskState::Waiting;
    let (_, tasks) = open.until_in_steps(spec, LOOK_EVERY, waits).await;
    let reason = task(&tasks, "A").reason.clone().unwrap();
    assert_eq!(
        reason,
        "waits for the lock on `a.txt`, which task `X` holds"
    );
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    open.close().await;
}
