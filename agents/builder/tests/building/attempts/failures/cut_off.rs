//! Attempts that crash in a program that lives on.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use ropewalk_engine::llm::{ModelError, ScriptKey};
use ropewalk_runtime::Clock;
use ropewalk_schemas::attempt::{Attempt, AttemptState, FailureClass};
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::task::TaskState;
use serde_json::json;

use super::{paused, plan, script};
use crate::world::listener::Pace;
use crate::world::project::{Project, task, writes};

const WORDS: &str = "a fault of the program";

/// Crashes whoever asks the model about `T-1`, at some of the calls, until it is mended.
struct Crash {
    at: fn(u32) -> bool,
    calls: AtomicU32,
    is_mended: AtomicBool,
}

impl Crash {
    fn at(calls: fn(u32) -> bool) -> Arc<Self> {
        Arc::new(Self {
            at: calls,
            calls: AtomicU32::new(0),
            is_mended: AtomicBool::new(false),
        })
    }

    fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Pace for Crash {
    async fn before(&self, key: &ScriptKey) -> Result<(), ModelError> {
        if key.task == "T-1" && !self.is_mended.load(Ordering::SeqCst) {
            let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
            assert!(!(self.at)(call), "{WORDS}");
        }
        Ok(())
    }
}

/// A project of two tasks, in which nobody rests after a crash.
fn project(rules: &[String], crash: &Arc<Crash>) -> Project {
    Project::new(&script(rules))
        .paced_by(crash.clone())
        .with(|options| options.tries.backoff = Duration::ZERO)
}

/// Says of attempts how they ended.
fn states(attempts: &[Attempt]) -> Vec<AttemptState> {
    attempts.iter().map(|attempt| attempt.state).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_that_crashes_is_begun_five_times_and_then_a_person_is_asked() {
    let crash = Crash::at(|_| true);
    let rules = [
        writes("T-1", "T-1.txt", "good\n", None),
        writes("T-2", "T-2.txt", "good\n", None),
    ];
    let project = project(&rules, &crash);
    let open = project.open().await;
    let spec = open
        .approve(json!([plan("T-1", &[]), plan("T-2", &[])]))
        .await;
    let build = paused(&open, spec).await;
    assert_eq!(crash.calls(), 5);
    let tasks = open.tasks(build.id).await;
    let parked = task(&tasks, "T-1");
    assert_eq!((parked.state, parked.tries), (TaskState::Failed, 0));
    assert_eq!(task(&tasks, "T-2").state, TaskState::Complete);
    let attempts = open.attempts(build.id, "T-1").await;
    let cut = AttemptState::Interrupted;
    assert_eq!(
        states(&attempts),
        [cut, cut, cut, cut, AttemptState::Failed]
    );
    let (last, earlier) = attempts.split_last().unwrap();
    assert!(earlier.iter().all(|attempt| attempt.failure.is_none()));
    let failure = last.failure.as_ref().unwrap();
    assert_eq!(failure.class, FailureClass::Interrupted);
    for part in ["5 attempts in a row could not go on", WORDS] {
        assert!(failure.error.contains(part), "{part}: {}", failure.error);
    }
    let asked = open.open_question("T-1").await.unwrap();
    assert!(asked.text.contains(WORDS), "{}", asked.text);
    assert!(open.held_locks().await.is_empty());

    // Once it is mended the same work lands.
    crash.is_mended.store(true, Ordering::SeqCst);
    open.answer("T-1", "guide: It is mended.").await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(task(&tasks, "T-1").state, TaskState::Complete);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crashes_before_and_after_the_gate_was_met_are_no_five_in_a_row() {
    // The fifth attempt comes to the gate, which refuses its work, and crashes when it is to mend that.
    let crash = Crash::at(|call| matches!(call, 1..=4 | 7..=10));
    let rules = [
        writes("T-1", "T-1.txt", "good\n", Some("exit code 1")),
        writes("T-1", "T-1.txt", "bad\n", None),
    ];
    let project = project(&rules, &crash);
    let open = project.open().await;
    let spec = open.approve(json!([plan("T-1", &[])])).await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(crash.calls(), 12);
    let attempts = open.attempts(build.id, "T-1").await;
    let mut ends = states(&attempts);
    ends.retain(|state| *state != AttemptState::Interrupted);
    assert_eq!((attempts.len(), ends), (9, vec![AttemptState::Landed]));
    let done = task(&tasks, "T-1");
    assert_eq!((done.tries, done.failures.len()), (1, 1), "of the gate");
    assert_eq!(open.questions("task_failed_repeatedly").await, []);
    open.close().await;
}

/// Lets git put no work onto another head while `broken` is there.
fn broken_git(place: &Path) {
    let script = format!(
        "#!/bin/sh\n\
         case \" $* \" in *' show '*) if [ -e {place}/broken ]; then exit 1; fi;; esac\n\
         PATH=${{PATH#*:}} exec git \"$@\"\n",
        place = place.display()
    );
    let git = place.join("programs/git");
    std::fs::create_dir(place.join("programs")).unwrap();
    std::fs::write(&git, script).unwrap();
    std::fs::set_permissions(&git, PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(place.join("broken"), "").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_cannot_be_shown_to_the_gate_again_rests_longer_each_time() {
    let place = tempfile::tempdir().unwrap();
    broken_git(place.path());
    let rules = [
        writes("T-1", "T-1.txt", "good\n", None),
        writes("T-2", "T-2.txt", "good\n", None),
    ];
    let clock = Clock::manual(Clock::system().now());
    let project = Project::new(&script(&rules))
        .with_programs(place.path().join("programs"))
        .at_the_time_of(&clock)
        .with(|options| {
            options.loops = 1;
            options.tries.backoff = Duration::from_secs(10);
        });
    let open = project.open().await;
    let mut held = plan("T-1", &[]);
    held["validation"]["command"] = json!("no-such-tool --check");
    let spec = open.approve(json!([held, plan("T-2", &[])])).await;
    let (build, _) = open
        .until(spec, |build, tasks| {
            let is_held = task(tasks, "T-1").state == TaskState::Waiting;
            // What landed beside it is what it has to be put onto.
            is_held
                && task(tasks, "T-2").state == TaskState::Complete
                && build.state == BuildState::Paused
        })
        .await;
    open.answer("T-1", "again").await;
    let mut rests = Vec::new();
    for times in 1..=3 {
        let (_, tasks) = open
            .until(spec, |_, tasks| {
                let resting = task(tasks, "T-1");
                resting.not_before.is_some() && resting.cut_off == times
            })
            .await;
        let attempts = open.attempts(build.id, "T-1").await;
        let last = attempts.iter().filter_map(|attempt| attempt.ended_at).max();
        rests.push(task(&tasks, "T-1").not_before.unwrap() - last.unwrap());
    }
    assert!(
        rests.is_sorted_by(|one, next| *one * 3 < *next * 2),
        "{rests:?}"
    );
    open.close().await;
}
