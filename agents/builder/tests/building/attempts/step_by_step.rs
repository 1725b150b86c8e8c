//! One task, stopped at every step: what is stored, locked, written and published by then, and what is not yet.

use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_engine::llm::ModelError;
use ropewalk_runtime::Clock;
use ropewalk_schemas::SpecId;
use ropewalk_schemas::attempt::{Attempt, AttemptState, FailureClass, Verdict};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::lease::{Lease, Ownership};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_store::{Query, Versioned};
use serde_json::json;

use crate::world::listener::{Fault, Hold};
use crate::world::project::{OpenProject, PATIENCE, Project, git, task, writes};

const SCRIPT: &str = r#"
- agent: build
  task: T-1
  turn: 1
  reply:
    tools:
      - name: write
        input: { path: utils/helper, content: "help\n" }
- agent: build
  task: T-1
  turn: 2
  reply:
    tools:
      - name: finish
        input: { summary: "Wrote the helper." }
"#;

/// A project whose gate waits for the test, and whose model does.
struct Stage {
    project: Project,
    hold: Hold,
    clock: Clock,
    /// Where the gate says what it saw, and looks whether it may go on.
    gate: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let start: DateTime<Utc> = "2026-03-01T08:00:00Z".parse().unwrap();
        let (clock, hold) = (Clock::manual(start), Hold::new());
        let project = Project::new(SCRIPT)
            .at_the_time_of(&clock)
            .held_by(&hold)
            .with(|options| {
                options.lease = Duration::from_mins(1);
                options.loops = 1;
            });
        Self {
            project,
            hold,
            clock,
            gate: tempfile::tempdir().unwrap(),
        }
    }

    async fn approve(&self, open: &OpenProject) -> SpecId {
        let at = self.gate.path().display();
        let command = format!(
            "pwd > {at}/where; find . -type f ! -path './.git/*' > {at}/saw; touch {at}/arrived; \
             while [ ! -e {at}/go ]; do sleep 0.02; done; grep -q help utils/helper"
        );
        let plan = json!([{
            "id": "T-1", "phase": "api", "action": "CREATE", "file": "utils/helper",
            "requirements": [{ "id": "FR-1", "text": "help" }],
            "validation": { "command": command, "expected": "exit 0" },
        }]);
        open.approve(plan).await
    }

    /// Waits until the gate runs the validation, and returns where, and which files lie there.
    async fn gate_runs(&self) -> (PathBuf, Vec<String>) {
        let arrived = self.gate.path().join("arrived");
        let reached = async {
            while !arrived.exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, reached).await.unwrap();
        let read = |name: &str| std::fs::read_to_string(self.gate.path().join(name)).unwrap();
        (PathBuf::from(read("where").trim()), sorted(&read("saw")))
    }

    fn slot(&self) -> PathBuf {
        self.project.state().join("slots/1/tree")
    }

    fn repository(&self) -> PathBuf {
        self.project.state().join("repository.git")
    }

    fn preserved(&self) -> String {
        let names = [
            "for-each-ref",
            "--format=%(objectname)",
            "refs/ropewalk/preserve",
        ];
        git(&self.repository(), &names)
    }
}

/// What is stored of the only build, its only task, the attempt at it and the lock that it holds.
struct Rows {
    build: Build,
    task: Task,
    attempt: Attempt,
    lease: Lease,
}

async fn rows(open: &OpenProject, spec: SpecId) -> Rows {
    let build = open.build(spec).await.unwrap();
    let task = task(&open.tasks(build.id).await, "T-1").clone();
    let [attempt] = open.attempts(build.id, "T-1").await.try_into().unwrap();
    let [lease] = open.held_locks().await.try_into().unwrap();
    Rows {
        build,
        task,
        attempt,
        lease,
    }
}

async fn types(open: &OpenProject) -> Vec<String> {
    let events = open.events().await.into_iter();
    events.map(|(event_type, _)| event_type).collect()
}

/// Asserts that the task is claimed, with its lock and its file, and that nothing is written yet.
async fn claimed_before_anything_is_written(stage: &Stage, open: &OpenProject, rows: &Rows) {
    assert_eq!(rows.task.state, TaskState::Working);
    assert_eq!(
        types(open).await,
        ["spec.approved", "build.started", "task.started"]
    );
    let head = rows.build.head.as_ref().unwrap();
    assert_eq!(&rows.attempt.base, head, "the checkpoint is the head");
    assert_eq!(open.git(&["rev-parse", "build/habits"]), head.as_str());
    let base = std::fs::read_to_string(stage.project.state().join("slots/1/base")).unwrap();
    assert_eq!(base.trim(), head.as_str(), "the slot stands at the head");
    let holder = &rows.lease.holder;
    assert_eq!(rows.lease.path.as_str(), "utils/helper");
    assert_eq!((holder.build, &holder.task), (rows.build.id, &rows.task.id));
    assert_eq!(
        (holder.attempt, holder.loop_name.as_str()),
        (rows.attempt.id, "loop-1")
    );
    assert_eq!(rows.lease.ttl_ms, 60_000);
    assert!(rows.lease.token > 0 && rows.lease.token == rows.attempt.token);
    assert!(rows.lease.reason.contains("T-1"), "{}", rows.lease.reason);
    let owned = open.services.store.list::<Ownership>(Query::new()).await;
    let [owned] = owned.unwrap().try_into().unwrap();
    let owned: Versioned<Ownership> = owned;
    assert_eq!(
        (owned.build, &owned.path),
        (rows.build.id, &rows.lease.path)
    );
    assert!(
        !stage.slot().join("utils").exists(),
        "nothing is written yet"
    );
    assert_eq!(stage.preserved(), "");
}

/// Lets three minutes pass, and asserts that the lock is renewed each time a third of its life is over.
async fn the_lock_is_renewed_for_three_minutes(stage: &Stage, open: &OpenProject, spec: SpecId) {
    let before = rows(open, spec).await;
    let mut thirds = 0;
    for renewals in before.lease.renewals + 1..=before.lease.renewals + 9 {
        let renewed = async {
            while rows(open, spec).await.lease.renewals < renewals {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::pin!(renewed);
        let passing = async {
            loop {
                stage.clock.advance(Duration::from_secs(20));
                thirds += 1;
                // Who was not asleep yet when it moved sleeps on until it moves again.
                let moment = Duration::from_secs(3);
                if tokio::time::timeout(moment, &mut renewed).await.is_ok() {
                    return;
                }
            }
        };
        tokio::time::timeout(PATIENCE, passing).await.unwrap();
    }
    let after = rows(open, spec).await;
    let renewals = after.lease.renewals;
    assert!(
        renewals <= before.lease.renewals + thirds,
        "once in a third of its life"
    );
    let lease = Lease {
        renewals,
        ..before.lease
    };
    assert_eq!(after.lease, lease, "nothing else of it has changed");
    assert_eq!(
        (after.task.state, after.task.attempts),
        (TaskState::Working, 1)
    );
}

/// Asserts that the gate judges a clean checkout of the candidate, and that nothing of it has landed.
async fn validated_before_anything_lands(stage: &Stage, open: &OpenProject, rows: &Rows) {
    let (place, files) = stage.gate_runs().await;
    assert_eq!(
        (rows.task.state, rows.attempt.state),
        (TaskState::Validating, AttemptState::Validating)
    );
    let candidate = rows.attempt.candidate.as_ref().unwrap().as_str();
    assert_eq!(stage.preserved(), candidate, "the candidate is kept");
    let repository = stage.repository();
    let parent = git(&repository, &["rev-parse", &format!("{candidate}^")]);
    assert_eq!(parent, rows.attempt.base.as_str());
    assert!(
        place.starts_with(stage.project.state().join("gates")),
        "{}",
        place.display()
    );
    let tree = git(&repository, &["ls-tree", "-r", "--name-only", candidate]);
    assert_eq!(files, tree.lines().collect::<Vec<_>>(), "a clean checkout");
    assert!(files.iter().any(|file| file == "utils/helper"));
    assert_eq!(rows.build.head.as_ref(), Some(&rows.attempt.base));
    assert_eq!(
        open.git(&["rev-parse", "build/habits"]),
        rows.attempt.base.as_str()
    );
    assert!(open.evidence(rows.build.id).await.is_empty());
    assert_eq!(types(open).await.last().unwrap(), "task.started");
}

/// Asserts that whoever hears of the landing finds all of it stored, and the lock given back.
async fn landed_in_one_piece(open: &OpenProject, before: &Rows) {
    let build = open
        .services
        .store
        .get::<Build>(&before.build.id.to_string())
        .await;
    let build = build.unwrap().unwrap();
    let candidate = before.attempt.candidate.as_ref();
    assert_eq!(build.head.as_ref(), candidate);
    let tasks = open.tasks(build.id).await;
    let done = task(&tasks, "T-1");
    assert_eq!(
        (done.state, done.commit.as_ref()),
        (TaskState::Complete, candidate)
    );
    let evidence = open.evidence(build.id).await;
    assert!(evidence.iter().any(|evidence| {
        Some(&evidence.commit) == candidate && evidence.verdict == Verdict::Passed
    }));
    assert!(open.held_locks().await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_task_goes_through_every_step_in_order_and_keeps_its_lock_until_it_has_landed() {
    let stage = Stage::new();
    let open = stage.project.open().await;
    let spec = stage.approve(&open).await;

    stage.hold.called().await;
    open.until(spec, |build, _| {
        build.published.is_some() && build.published == build.head
    })
    .await;
    let first = rows(&open, spec).await;
    claimed_before_anything_is_written(&stage, &open, &first).await;
    the_lock_is_renewed_for_three_minutes(&stage, &open, spec).await;
    stage.hold.let_go();

    stage.hold.called().await;
    let written = std::fs::read_to_string(stage.slot().join("utils/helper")).unwrap();
    assert_eq!(written, "help\n");
    assert_eq!(stage.preserved(), "");
    assert_eq!(rows(&open, spec).await.task.state, TaskState::Working);
    stage.hold.let_go();

    stage.gate_runs().await;
    let judged = rows(&open, spec).await;
    validated_before_anything_lands(&stage, &open, &judged).await;
    assert_eq!(judged.lease.token, first.lease.token);
    let mut feed = open.services.store.feed();
    std::fs::write(stage.gate.path().join("go"), "").unwrap();
    let landing = tokio::time::timeout(PATIENCE, feed.next()).await.unwrap();
    let landing = landing.unwrap().unwrap();
    let told: Vec<&str> = landing
        .events
        .iter()
        .map(|stored| stored.event.event_type.as_str())
        .collect();
    assert_eq!(told, ["task.completed", "lock.released"], "one transaction");
    landed_in_one_piece(&open, &judged).await;

    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(task(&tasks, "T-1").attempts, 1);
    let head = build.head.unwrap();
    assert_eq!(open.git(&["rev-parse", "build/habits"]), head.as_str());
    let events = open.events().await;
    let names: Vec<&str> = events.iter().map(|event| event.0.as_str()).collect();
    assert_eq!(
        names,
        [
            "spec.approved",
            "build.started",
            "task.started",
            "task.completed",
            "lock.released",
            "build.completed",
            "question.asked",
        ]
    );
    let took = events[3].1["duration_seconds"].as_i64().unwrap();
    assert!(TimeDelta::seconds(took) >= TimeDelta::minutes(3), "{took}");
    open.close().await;
}

/// Lists the files of a slot.
fn files_of(tree: &Path) -> Vec<String> {
    let listed = std::process::Command::new("find")
        .args([".", "-type", "f", "!", "-path", "./.git/*"])
        .current_dir(tree)
        .output()
        .unwrap();
    sorted(&String::from_utf8(listed.stdout).unwrap())
}

/// Sorts what `find` lists as git does.
fn sorted(found: &str) -> Vec<String> {
    let mut files: Vec<String> = found
        .lines()
        .map(|line| line.trim_start_matches("./").to_owned())
        .collect();
    files.sort();
    files
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_self_correction_goes_on_in_its_tree_and_at_once() {
    let start: DateTime<Utc> = "2026-03-01T08:00:00Z".parse().unwrap();
    let (clock, hold) = (Clock::manual(start), Hold::new());
    let file = "database/migrations/001_habits.sql";
    let rules = [
        writes(
            "T-1",
            file,
            "CREATE TABLE habits (done TEXT);\n",
            Some("DATEE is no type"),
        ),
        writes(
            "T-1",
            file,
            "CREATE TABLE habits (done DATEE); -- DATEE is no type\n",
            None,
        ),
    ];
    let project = Project::new(&rules.concat())
        .at_the_time_of(&clock)
        .held_by(&hold)
        .with(|options| options.loops = 1);
    let open = project.open().await;
    let command = format!("cat {file}; grep -q TEXT {file}");
    let spec = open
        .approve(json!([{
            "id": "T-1", "phase": "api", "action": "CREATE", "file": file,
            "validation": { "command": command, "expected": "exit 0" },
        }]))
        .await;
    for _ in 0..2 {
        hold.called().await;
        hold.let_go();
    }

    // The third call is the first of the second try; nobody has moved the clock.
    hold.called().await;
    let build = open.build(spec).await.unwrap();
    let attempts = open.attempts(build.id, "T-1").await;
    let [attempt] = &attempts[..] else {
        panic!("one conversation: {attempts:?}");
    };
    assert_eq!(attempt.state, AttemptState::Working);
    let refused = &attempt.tries[0];
    assert_eq!(refused.failure.class, FailureClass::ValidationFailed);
    let repository = project.state().join("repository.git");
    let kept = refused.preserve_ref.as_ref().unwrap();
    let names = git(&repository, &["ls-tree", "-r", "--name-only", kept]);
    assert!(
        names.lines().any(|name| name == file),
        "the failed work is kept"
    );
    assert_eq!(
        files_of(&project.state().join("slots/1/tree")),
        names.lines().collect::<Vec<_>>(),
        "the tree is as it was left"
    );
    hold.let_go();
    hold.called().await;
    hold.let_go();

    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(task(&tasks, "T-1").attempts, 2);
    assert_eq!(
        open.git(&["rev-list", "--count", "main..build/habits"]),
        "2"
    );
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_passing_failure_is_tried_again_only_after_its_pause() {
    let start: DateTime<Utc> = "2026-03-01T08:00:00Z".parse().unwrap();
    let cut = Fault::of(|call| (call == 1).then_some(ModelError::Truncated));
    let project = Project::new(&writes("T-1", "T-1.txt", "good\n", None))
        .at_the_time_of(&Clock::manual(start))
        .paced_by(cut)
        .with(|options| options.loops = 1);
    let open = project.open().await;
    let spec = open
        .approve(json!([{
            "id": "T-1", "phase": "api", "action": "CREATE", "file": "T-1.txt",
            "validation": { "command": "grep -q good T-1.txt", "expected": "exit 0" },
        }]))
        .await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(
        task(&tasks, "T-1").tries,
        0,
        "no try of the task is used up"
    );
    let attempts = open.attempts(build.id, "T-1").await;
    let failed = attempts.iter().position(|one| one.failure.is_some());
    let failed = failed.unwrap();
    let failure = attempts[failed].failure.as_ref().unwrap();
    assert_eq!(failure.class, FailureClass::ProviderDown);
    let pause = attempts[failed + 1].started_at - attempts[failed].ended_at.unwrap();
    assert!(pause >= TimeDelta::milliseconds(2_500), "{pause}");
    // It was not the fault of the work, so nobody is told to find the cause.
    let last = project.requests("T-1").pop().unwrap().text();
    assert!(!last.contains("What Went Wrong Before"), "{last}");
    open.close().await;
}
