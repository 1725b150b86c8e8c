//! A task that runs too long, with build, monitor and PM at work together.

use std::time::Duration;

use chrono::{TimeZone, Utc};
use ropewalk_runtime::Clock;
use ropewalk_schemas::SpecId;
use ropewalk_schemas::attempt::AttemptState;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::timer::Timer;
use ropewalk_store::Query;
use serde_json::{Value, json};

use crate::world::house::{House, OpenHouse, PATIENCE, task, writes};

fn plan(id: &str) -> Value {
    json!({
        "id": id, "phase": "api", "action": "CREATE", "file": format!("{id}.txt"),
        "validation": { "command": format!("grep -q good {id}.txt"), "expected": "exit 0" },
    })
}

/// A task that writes its file at once and says that it is done `minutes` later, and one behind it.
fn house(clock: &Clock, minutes: u64) -> House {
    let delay = format!("turn: 2\n  reply:\n    delay_ms: {}", minutes * 60_000);
    let slow = writes("T-005", "T-005.txt", "good\n", None).replace("turn: 2\n  reply:", &delay);
    let rules = [slow, writes("T-006", "T-006.txt", "good\n", None)];
    watched(clock, &rules.concat(), Duration::from_hours(9))
}

/// A task that writes its file at once and then, minute by minute, only talks and looks, each time to the same end.
fn chattering(clock: &Clock) -> House {
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

fn watched(clock: &Clock, rules: &str, lease: Duration) -> House {
    House::new(rules)
        .at_the_time_of(clock)
        .watched()
        .with(|options| {
            options.loops = 1;
            options.lease = lease;
        })
}

/// One case under way: a task that works since the clock stood at `12:00:30`.
struct Case {
    clock: Clock,
    house: House,
    open: OpenHouse,
    spec: SpecId,
    minutes: u32,
}

impl Case {
    async fn begin(takes_minutes: u64) -> Self {
        Self::of(|clock| house(clock, takes_minutes)).await
    }

    async fn of(house: impl FnOnce(&Clock) -> House) -> Self {
        let start = Utc.with_ymd_and_hms(2026, 11, 21, 12, 0, 30).unwrap();
        let clock = Clock::manual(start);
        let house = house(&clock);
        let open = house.open().await;
        let spec = open.approve(json!([plan("T-005"), plan("T-006")])).await;
        let file = house.state().join("slots/1/tree/T-005.txt");
        open.until(spec, |_, tasks| {
            task(tasks, "T-005").state == TaskState::Working && file.exists()
        })
        .await;
        Self {
            clock,
            house,
            open,
            spec,
            minutes: 0,
        }
    }

    /// Lets the minutes pass, each in quarters, so that nobody misses a timer on the way.
    async fn pass_until(&mut self, minutes: u32) {
        while self.minutes < minutes {
            for _ in 0..4 {
                self.clock.advance(Duration::from_secs(15));
                // The schedule wakes, then whoever takes what it says.
                self.rung().await;
                self.open.settled().await;
            }
            self.minutes += 1;
        }
    }

    /// Waits until every timer that is due has fired; a schedule that began to rest after the clock was advanced looks
    /// again a second later.
    async fn rung(&self) {
        let began = std::time::Instant::now();
        let due = self.clock.now();
        loop {
            for _ in 0..50 {
                let timers = self.open.services.store.list::<Timer>(Query::new());
                let timers = timers.await.unwrap();
                if timers.iter().all(|timer| timer.due > due) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert!(began.elapsed() < PATIENCE, "a timer does not fire");
            self.clock.advance(Duration::from_secs(1));
        }
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
            .open
            .until(self.spec, |_, tasks| {
                task(tasks, "T-006").state == TaskState::Complete
            })
            .await;
        let stuck = task(&tasks, "T-005");
        assert_eq!(stuck.state, state);
        let reason = stuck.reason.clone().unwrap();
        assert!(reason.contains(by), "{reason}");
        let attempts = self.open.attempts(build.id, "T-005").await;
        assert_eq!(attempts.len(), 1);
        assert_eq!(attempts[0].state, AttemptState::Interrupted);
        let kept = attempts[0].preserve_ref.clone().expect("a preserve ref");
        let clone = self.house.state().join("repository.git");
        let content = crate::world::house::git(&clone, &["show", &format!("{kept}:T-005.txt")]);
        assert_eq!(content, "good");
        let file = self.house.state().join("slots/1/tree/T-005.txt");
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
    let mut case = Case::begin(18).await;
    case.pass_until(10).await;
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
    case.open
        .until(case.spec, |_, tasks| {
            task(tasks, "T-006").state == TaskState::Complete
        })
        .await;
    case.pass_until(21).await;
    assert_eq!(case.count("alert.stuck_task").await, 1);
    let events = case.open.events().await;
    let cleared = events
        .iter()
        .find(|(kind, _)| kind == "alert.stuck_task.cleared");
    let message = cleared.unwrap().1["message"].as_str().unwrap().to_owned();
    assert!(message.contains("18 minutes"), "{message}");
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
    let mut case = Case::of(chattering).await;
    case.pass_until(14).await;
    assert_eq!(case.count("alert.stuck_task").await, 1);
    assert_eq!(task(&case.tasks().await, "T-005").state, TaskState::Working);
    // It would talk on.
    case.open.crash().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_is_asked_at_twenty_minutes_and_may_leave_it_out() {
    let mut case = Case::begin(120).await;
    case.pass_until(19).await;
    assert_eq!(case.open.open_question("T-005").await, None);
    case.pass_until(22).await;
    let question = case.open.open_question("T-005").await.unwrap();
    let choices = question.choices.iter();
    let ids: Vec<&str> = choices.map(|choice| choice.id.as_str()).collect();
    assert_eq!(ids, ["wait", "skip", "retry"]);
    case.open.answer("T-005", "skip").await;
    case.is_ended(TaskState::Skipped, "ada").await;
    case.open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_tries_again_is_shown_the_work_of_an_attempt_that_was_ended() {
    let mut case = Case::begin(120).await;
    case.pass_until(22).await;
    case.open.answer("T-005", "retry").await;
    let again = |_: &Build, tasks: &[Task]| task(tasks, "T-005").attempts == 2;
    case.open.until(case.spec, again).await;
    let deadline = std::time::Instant::now() + Duration::from_mins(1);
    while case.house.prompts("T-005").len() < 2 {
        assert!(std::time::Instant::now() < deadline, "nobody was asked");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let prompts = case.house.prompts("T-005");
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
    let mut case = Case::begin(120).await;
    case.pass_until(29).await;
    assert_eq!(task(&case.tasks().await, "T-005").state, TaskState::Working);
    case.pass_until(31).await;
    let why = "no progress for 30 minutes";
    case.is_ended(TaskState::Waiting, why).await;
    let question = case.open.open_question("T-005").await.unwrap();
    assert_eq!(question.trigger, "task_interrupted");
    assert!(question.text.contains(why), "{}", question.text);
    let paused = |build: &Build, _: &[Task]| build.state == BuildState::Paused;
    case.open.until(case.spec, paused).await;
    case.open.answer("T-005", "skip").await;
    let (build, _) = case.open.ended(case.spec).await;
    assert_eq!(build.state, BuildState::Succeeded);
    assert_eq!(build.reason.as_deref(), Some("1 skipped: `T-005`"));
    case.open.close().await;
}
