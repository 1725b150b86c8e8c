//! A task that runs too long, with build, monitor and PM at work together.
//!
//! How fast this machine is changes nothing: minutes count from the time at which the task last moved, by a clock that
//! waits for whoever has something to do, and a model that holds its answer back does so until the test has it speak.

use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, TimeZone, Utc};
use ropewalk_runtime::Clock;
use ropewalk_schemas::SpecId;
use ropewalk_schemas::agent::Component;
use ropewalk_schemas::attempt::AttemptState;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::timer::Timer;
use ropewalk_store::Query;
use serde_json::{Value, json};

use crate::world::project::{LOOK_EVERY, OpenProject, PATIENCE, Project, task, writes};
use crate::world::script::holds_back;

/// How far the clock goes at once.
const QUARTER: Duration = Duration::from_secs(15);
/// Whoever gave no sign of life for so long has not come to it yet; the monitor takes twice as long for a death.
const SILENCE: TimeDelta = TimeDelta::seconds(45);

fn plan(id: &str) -> Value {
    json!({
        "id": id, "phase": "api", "action": "CREATE", "file": format!("{id}.txt"),
        "validation": { "command": format!("grep -q good {id}.txt"), "expected": "exit 0" },
    })
}

/// A task that writes its file at once and says that it is done when the file `go` is there, and one behind it.
fn project(clock: &Clock, go: &Path) -> Project {
    let slow = writes("T-005", "T-005.txt", "good\n", None);
    let slow = holds_back(&slow, 2, &format!("until: {}", go.display()));
    let rules = [slow, writes("T-006", "T-006.txt", "good\n", None)];
    watched(clock, &rules.concat(), Duration::from_hours(9))
}

/// A task that writes its file at once and then, minute by minute, only talks and looks, each time to the same end.
fn chattering(clock: &Clock) -> Project {
    let rule = |turn: u32, delay: u32, command: &str| {
        let input = json!({ "command": command });
        format!(
            "- agent: build\n  task: T-005\n  turn: {turn}\n  reply:\n    text: I am on it.\n    delay_ms: {delay}\n    \
             tools:\n      - name: bash\n        input: {input}\n"
        )
    };
    let looks = (2..40).map(|turn| rule(turn, 60_000, &format!("echo {turn} ways to go")));
    let rules: String = std::iter::once(rule(1, 0, "echo good > T-005.txt"))
        .chain(looks)
        .collect();
    watched(clock, &rules, Duration::from_mins(3))
}

fn watched(clock: &Clock, rules: &str, lease: Duration) -> Project {
    Project::new(rules)
        .at_the_time_of(clock)
        .watched()
        .with(|options| {
            options.loops = 1;
            options.lease = lease;
        })
}

/// One case under way: a task that works since the clock stood at `12:00:30`, or a little later.
struct Case {
    clock: Clock,
    project: Project,
    open: OpenProject,
    spec: SpecId,
    signals: tempfile::TempDir,
    /// When the task last moved.
    moved_at: DateTime<Utc>,
}

impl Case {
    async fn begin() -> Self {
        Self::of(project).await
    }

    async fn of(project: impl FnOnce(&Clock, &Path) -> Project) -> Self {
        let start = Utc.with_ymd_and_hms(2026, 11, 21, 12, 0, 30).unwrap();
        let clock = Clock::manual(start);
        let signals = tempfile::tempdir().unwrap();
        let project = project(&clock, &signals.path().join("go"));
        let open = project.open().await;
        let spec = open.approve(json!([plan("T-005"), plan("T-006")])).await;
        let mut case = Self {
            clock,
            project,
            open,
            spec,
            signals,
            moved_at: start,
        };
        let file = case.project.state().join("slots/1/tree/T-005.txt");
        let (_, tasks) = case
            .until(|_, tasks| task(tasks, "T-005").state == TaskState::Working && file.exists())
            .await;
        case.moved_at = task(&tasks, "T-005").progress_at.unwrap();
        case
    }

    /// Lets the model say that it is done.
    fn speak(&self) {
        std::fs::write(self.signals.path().join("go"), "").unwrap();
    }

    /// Waits until build and tasks are as wanted; meanwhile the clock goes no faster than that of the machine.
    async fn until(&self, wanted: impl Fn(&Build, &[Task]) -> bool) -> (Build, Vec<Task>) {
        let waiting = self.open.until_in_steps(self.spec, LOOK_EVERY, wanted);
        waiting.await
    }

    /// Lets the clock come to so many minutes after the task last moved, in quarters of them, so that nobody misses a timer
    /// on the way.
    async fn pass_until(&self, minutes: i64) {
        let end = self.moved_at + TimeDelta::minutes(minutes);
        loop {
            let left = (end - self.clock.now()).to_std().unwrap_or_default();
            if left.is_zero() {
                return;
            }
            self.clock.advance(left.min(QUARTER));
            // The schedule wakes, then whoever takes what it says.
            self.rung().await;
            self.open.settled().await;
        }
    }

    /// Lets so many minutes pass in which the task does not move.
    async fn stand_still_for(&mut self, minutes: i64) {
        loop {
            self.pass_until(minutes).await;
            let moved_at = task(&self.tasks().await, "T-005").progress_at;
            if moved_at == Some(self.moved_at) {
                return;
            }
            self.moved_at = moved_at.unwrap();
        }
    }

    /// Waits until every timer that is due has fired and every component has given a sign of life; who began to rest after
    /// the clock was advanced looks again a second later. What that adds to the time, [`Case::pass_until`] counts.
    async fn rung(&self) {
        let began = std::time::Instant::now();
        let due = self.clock.now();
        loop {
            for _ in 0..100 {
                if self.is_quiet(due).await {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert!(began.elapsed() < PATIENCE, "a timer does not fire");
            self.clock.advance(Duration::from_secs(1));
        }
    }

    async fn is_quiet(&self, due: DateTime<Utc>) -> bool {
        let store = &self.open.services.store;
        let timers = store.list::<Timer>(Query::new()).await.unwrap();
        let components = store.list::<Component>(Query::new()).await.unwrap();
        let heard_since = self.clock.now() - SILENCE;
        timers.iter().all(|timer| timer.due > due)
            && components.iter().all(|row| row.last_seen >= heard_since)
    }

    async fn count(&self, kind: &str) -> usize {
        let events = self.open.events().await;
        events.iter().filter(|(found, _)| found == kind).count()
    }

    async fn tasks(&self) -> Vec<Task> {
        let build = self.open.build(self.spec).await.unwrap();
        self.open.tasks(build.id).await
    }

    /// The attempt was ended, its work lies under a ref, and the next task has run.
    async fn is_ended(&self, state: TaskState, by: &str) {
        let (build, tasks) = self
            .until(|_, tasks| task(tasks, "T-006").state == TaskState::Complete)
            .await;
        let stuck = task(&tasks, "T-005");
        assert_eq!(stuck.state, state);
        let told = stuck.skipped_by.as_ref().or(stuck.reason.as_ref()).unwrap();
        assert!(told.contains(by), "{told}");
        let attempts = self.open.attempts(build.id, "T-005").await;
        assert_eq!(attempts.len(), 1);
        assert_eq!(attempts[0].state, AttemptState::Interrupted);
        let kept = attempts[0].preserve_ref.clone().expect("a preserve ref");
        let clone = self.project.state().join("repository.git");
        let content = crate::world::project::git(&clone, &["show", &format!("{kept}:T-005.txt")]);
        assert_eq!(content, "good");
        let file = self.project.state().join("slots/1/tree/T-005.txt");
        assert!(!file.exists(), "the slot is restored");
        let events = self.open.events().await;
        let skipped = events.iter().find(|(kind, _)| kind == "task.skipped");
        let skipped = skipped.map(|(_, told)| told["task_id"].clone());
        let expected = (state == TaskState::Skipped).then(|| json!("T-005"));
        assert_eq!(skipped, expected, "only a person leaves a task out");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_task_is_watched_and_its_alert_clears_when_it_ends() {
    let case = Case::begin().await;
    case.pass_until(9).await;
    assert_eq!(case.count("alert.stuck_task").await, 0);
    case.pass_until(13).await;
    assert_eq!(case.count("alert.stuck_task").await, 1);
    let events = case.open.events().await;
    let told = events.iter().find(|(kind, _)| kind == "decision.made");
    let told = &told.unwrap().1;
    assert_eq!(told["verdict"], json!("watch"));
    let reason = told["reason"].as_str().unwrap();
    assert!(
        reason.contains("retry") && reason.contains("skipped"),
        "{reason}"
    );
    case.pass_until(18).await;
    case.speak();
    let (build, _) = case
        .until(|_, tasks| task(tasks, "T-006").state == TaskState::Complete)
        .await;
    case.pass_until(22).await;
    assert_eq!(case.count("alert.stuck_task").await, 1);
    let events = case.open.events().await;
    let cleared = events
        .iter()
        .find(|(kind, _)| kind == "alert.stuck_task.cleared");
    let message = cleared.unwrap().1["message"].as_str().unwrap().to_owned();
    let [attempt] = case
        .open
        .attempts(build.id, "T-005")
        .await
        .try_into()
        .unwrap();
    let took = (attempt.ended_at.unwrap() - attempt.started_at).num_minutes();
    assert!(took >= 18, "{took}");
    assert!(message.contains(&format!("{took} minutes")), "{message}");
    assert_eq!(case.open.open_question("T-005").await, None);
    assert_eq!(
        task(&case.tasks().await, "T-005").state,
        TaskState::Complete
    );
    let down = case.count("alert.component_down").await;
    assert_eq!(down, 0, "a slow task is no dead loop");
    case.open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_talks_and_looks_and_changes_nothing_is_noticed() {
    let mut case = Case::of(|clock, _| chattering(clock)).await;
    // That it wrote its file, and what its first look came to, is seen a minute later each.
    case.stand_still_for(14).await;
    assert_eq!(case.count("alert.stuck_task").await, 1);
    assert_eq!(task(&case.tasks().await, "T-005").state, TaskState::Working);
    // It would talk on.
    case.open.crash().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_is_asked_at_twenty_minutes_and_may_leave_it_out() {
    let case = Case::begin().await;
    case.pass_until(19).await;
    assert_eq!(case.open.open_question("T-005").await, None);
    case.pass_until(22).await;
    let question = case.open.open_question("T-005").await.unwrap();
    let choices = question.choices.iter();
    let ids: Vec<&str> = choices.map(|choice| choice.id.as_str()).collect();
    assert_eq!(ids, ["wait", "skip", "retry"]);
    case.open.answer("T-005", "skip").await;
    case.is_ended(TaskState::Skipped, "ada").await;
    let events = case.open.events().await;
    let skipped = events.iter().find(|(kind, _)| kind == "task.skipped");
    assert_eq!(skipped.unwrap().1["skipped_by"], json!("ada"));
    case.open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_tries_again_is_shown_the_work_of_an_attempt_that_was_ended() {
    let case = Case::begin().await;
    case.pass_until(22).await;
    case.open.answer("T-005", "retry").await;
    let again = |_: &Build, tasks: &[Task]| task(tasks, "T-005").attempts == 2;
    case.until(|build, tasks| again(build, tasks) && case.project.prompts("T-005").len() == 2)
        .await;
    let prompts = case.project.prompts("T-005");
    assert!(
        !prompts[0].contains("What Was Tried Before"),
        "{}",
        prompts[0]
    );
    let told = &prompts[1];
    assert!(told.contains("## What Was Tried Before"), "{told}");
    assert!(
        told.contains("T-005.txt") && told.contains("+good"),
        "{told}"
    );
    // It would wait on.
    case.open.crash().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_thirty_minutes_it_is_ended_a_person_is_asked_and_the_next_task_starts() {
    let case = Case::begin().await;
    case.pass_until(29).await;
    assert_eq!(task(&case.tasks().await, "T-005").state, TaskState::Working);
    case.pass_until(31).await;
    let why = "no progress for 30 minutes";
    case.is_ended(TaskState::Waiting, why).await;
    let question = case.open.open_question("T-005").await.unwrap();
    assert_eq!(question.trigger, "task_interrupted");
    assert!(question.text.contains(why), "{}", question.text);
    let paused = |build: &Build, _: &[Task]| build.state == BuildState::Paused;
    case.until(paused).await;
    case.open.answer("T-005", "skip").await;
    let (build, _) = case.open.ended(case.spec).await;
    assert_eq!(build.state, BuildState::Succeeded);
    assert_eq!(build.reason.as_deref(), Some("1 skipped: `T-005`"));
    case.open.close().await;
}
