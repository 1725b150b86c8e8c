//! What people are told on the way: half of a long plan is done, a task takes far longer than planned.

use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Utc};
use ropewalk_runtime::Clock;
use ropewalk_schemas::SpecId;
use ropewalk_schemas::build::{BuildState, PauseReason, TaskCounts};
use ropewalk_schemas::question::QuestionState;
use ropewalk_schemas::task::TaskState;
use ropewalk_schemas::{Payload, Subject};
use serde_json::{Value, json};

use crate::world::listener::Hold;
use crate::world::project::{OpenProject, Project, request, task, writes, writes_after};

fn create(id: &str, needs: &[&str]) -> Value {
    json!({
        "id": id, "phase": "api", "action": "CREATE", "file": format!("{id}.txt"),
        "validation": { "command": format!("grep -q good {id}.txt"), "expected": "exit 0" },
        "depends_on": needs,
    })
}

/// Ten tasks, of which the last one comes after all others and waits until `go` is there.
fn ten(go: &Path) -> (String, Value) {
    let ids: Vec<String> = (1..=9).map(|number| format!("T-{number}")).collect();
    let names: Vec<&str> = ids.iter().map(String::as_str).collect();
    let mut rules: Vec<String> = ids
        .iter()
        .map(|id| writes(id, &format!("{id}.txt"), "good\n", None))
        .collect();
    rules.push(writes_after("T-10", "T-10.txt", "good\n", go));
    let mut plan: Vec<Value> = ids.iter().map(|id| create(id, &[])).collect();
    plan.push(create("T-10", &names));
    (rules.concat(), json!(plan))
}

async fn last_one_works(open: &OpenProject, spec: SpecId) {
    open.until(spec, |_, tasks| {
        task(tasks, "T-10").state == TaskState::Working
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_of_a_long_plan_is_told_once_and_a_break_is_taken_on_request() {
    let signals = tempfile::tempdir().unwrap();
    let go = signals.path().join("go");
    let (rules, plan) = ten(&go);
    let project = Project::new(&rules);
    let open = project.open().await;
    let spec = open.approve(plan).await;
    last_one_works(&open, spec).await;
    let told = open.questions("milestone_reached").await;
    assert_eq!(told.len(), 1);
    assert!(told[0].text.contains("5 / 10"), "{}", told[0].text);
    // `grep` counts no tests, and none is said to pass.
    let tests = "not counted in the last check";
    assert!(told[0].text.contains(tests), "{}", told[0].text);
    assert_eq!(told[0].state, QuestionState::Pending);
    open.answer_question(told[0].id, "pause").await;
    open.until(spec, |build, _| build.pause_requested).await;
    std::fs::write(&go, "").unwrap();
    let (build, tasks) = open
        .until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    assert_eq!(build.pause_reason, Some(PauseReason::Person));
    assert_eq!(task(&tasks, "T-10").state, TaskState::Complete);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_told_on_the_way_is_closed_by_every_end() {
    let signals = tempfile::tempdir().unwrap();
    let go = signals.path().join("go");
    let (rules, plan) = ten(&go);
    let project = Project::new(&rules);
    let open = project.open().await;
    let spec = open.approve(plan).await;
    last_one_works(&open, spec).await;
    let build = open.build(spec).await.unwrap();
    let stop = Payload::BuildStop(request(build.id));
    open.emit(Subject::build(build.id), stop).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Stopped);
    let told = open.questions("milestone_reached").await;
    assert_eq!(told[0].state, QuestionState::Superseded);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_landing_says_how_far_the_build_is_with_it() {
    let looks = |id: &str| {
        json!({
            "id": id, "phase": "api", "action": "VERIFY", "file": "T-1.txt", "depends_on": ["T-1"],
            "validation": { "command": "grep -q good T-1.txt", "expected": "exit 0" },
        })
    };
    let mut rules = String::new();
    for id in ["T-1", "T-2", "T-3"] {
        rules.push_str(&writes(id, &format!("{id}.txt"), "good\n", None));
    }
    let project = Project::new(&rules).with(|options| options.loops = 3);
    let open = project.open().await;
    let makes = ["T-1", "T-2", "T-3"].map(|id| create(id, &[]));
    let plan: Vec<Value> = makes.into_iter().chain(["T-4", "T-5"].map(looks)).collect();
    let spec = open.approve(json!(plan)).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let landings = open.events().await.into_iter();
    let landings = landings.filter(|(name, _)| name == "task.completed");
    let counts: Vec<Value> = landings.map(|(_, data)| data["counts"].clone()).collect();
    let expected = (1..=5).map(|complete| {
        json!(TaskCounts {
            total: 5,
            complete,
            ..TaskCounts::default()
        })
    });
    assert_eq!(counts, expected.collect::<Vec<_>>());
    open.close().await;
}

/// A task that fails its check again and again, and takes four minutes each time where one was planned.
struct SlowTask {
    project: Project,
    hold: Hold,
    clock: Clock,
}

impl SlowTask {
    fn new() -> Self {
        let start: DateTime<Utc> = "2026-03-01T08:00:00Z".parse().unwrap();
        let (clock, hold) = (Clock::manual(start), Hold::new());
        let at_try = |number: u32, rules: String| {
            rules.replace("  turn:", &format!("  attempt: {number}\n  turn:"))
        };
        let rules: String = (1..=6)
            .map(|number| {
                let content = format!("bad {number}\n");
                at_try(number, writes("T-1", "T-1.txt", &content, None))
            })
            .collect();
        let project = Project::new(&rules)
            .at_the_time_of(&clock)
            .held_by(&hold)
            .with(|options| {
                options.lease = Duration::from_hours(9);
                options.tries.tries = 6;
            });
        Self {
            project,
            hold,
            clock,
        }
    }

    async fn approve(&self, open: &OpenProject) -> SpecId {
        let mut slow = create("T-1", &[]);
        slow["estimate_minutes"] = json!(1);
        slow["validation"]["command"] = json!("cat T-1.txt; grep -q good T-1.txt");
        open.approve(json!([slow])).await
    }

    /// Lets an attempt take four minutes.
    async fn attempt(&self) {
        self.hold.called().await;
        self.clock.advance(Duration::from_mins(4));
        self.hold.let_go();
        self.hold.called().await;
        self.hold.let_go();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_takes_far_longer_than_planned_is_asked_about_once() {
    let slow = SlowTask::new();
    let open = slow.project.open().await;
    let spec = slow.approve(&open).await;
    for failures in 1..=2 {
        slow.attempt().await;
        open.until(spec, |_, tasks| tasks[0].failures.len() == failures)
            .await;
    }
    slow.hold.called().await;
    let asked = open.questions("task_complexity_exceeded").await;
    assert_eq!(asked.len(), 1, "{asked:#?}");
    for told in ["T-1", "1 minutes", "4 minutes"] {
        assert!(asked[0].text.contains(told), "{}", asked[0].text);
    }
    open.answer_question(asked[0].id, "skip").await;
    let (_, tasks) = open
        .until(spec, |_, tasks| tasks[0].state == TaskState::Skipped)
        .await;
    assert_eq!(tasks[0].skipped_by.as_deref(), Some("ada"));
    slow.hold.let_go();
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_wants_a_long_task_simpler_is_heard_by_its_next_attempt() {
    let slow = SlowTask::new();
    let open = slow.project.open().await;
    let spec = slow.approve(&open).await;
    slow.attempt().await;
    slow.hold.called().await;
    let asked = open.questions("task_complexity_exceeded").await;
    open.answer_question(asked[0].id, "simplify").await;
    let (_, tasks) = open
        .until(spec, |_, tasks| !tasks[0].guidance.is_empty())
        .await;
    assert_eq!(tasks[0].state, TaskState::Working, "nothing is interrupted");
    slow.hold.let_go();
    slow.hold.called().await;
    slow.hold.let_go();
    slow.hold.called().await;
    let prompts = slow.project.prompts("T-1");
    let last = prompts.last().unwrap();
    assert!(last.contains(&tasks[0].guidance[0]), "{last}");
    // Its model is held.
    open.crash().await;
}
