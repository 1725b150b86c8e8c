//! What becomes of builds while the provider of their model is away (V41): each call goes over HTTP to an emulator.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta};
use ropewalk_engine::llm::{
    Message, Model, ModelError, ModelRequest, ProviderConfig, ScriptKey, build,
};
use ropewalk_runtime::{Clock, Shutdown, Supervisor};
use ropewalk_schemas::alert::Alert;
use ropewalk_schemas::attempt::{Attempt, AttemptState, FailureClass};
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::model_call::{ModelCall, UsageBy};
use ropewalk_schemas::outage::Outage;
use ropewalk_schemas::question::Question;
use ropewalk_schemas::task::{Task, TaskState, WaitReason};
use ropewalk_schemas::{BuildId, Payload, QuestionId, Subject};
use ropewalk_store::{EventFilter, Query};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::world::listener::Fault;
use crate::world::project::{OpenProject, PATIENCE, Project, request, task, writes};

/// The emulator does not answer at all.
const SILENT: u16 = 0;

/// A provider over HTTP that answers with a status, and counts who asks.
struct Emulator {
    model: Arc<dyn Model>,
    status: Arc<AtomicU16>,
    calls: Arc<AtomicU32>,
    probes: Arc<AtomicU32>,
    /// What came over the wire, tries of one call among it.
    requests: Arc<AtomicU32>,
    /// After so many calls it is away.
    lasts: u32,
    /// Asks once for each call; else as often as the program does.
    once: bool,
}

impl Emulator {
    async fn start(status: u16) -> Arc<Self> {
        Self::lasting(status, u32::MAX).await
    }

    async fn lasting(status: u16, lasts: u32) -> Arc<Self> {
        Arc::new(Self {
            lasts,
            ..Self::at(status, "", &Clock::system()).await
        })
    }

    /// Storms: each answer asks to come again after `retry_after`, if that says anything, and who is asked again waits by `clock`.
    async fn storming(status: u16, retry_after: &'static str, clock: &Clock) -> Arc<Self> {
        Arc::new(Self {
            once: false,
            ..Self::at(status, retry_after, clock).await
        })
    }

    async fn at(status: u16, retry_after: &'static str, clock: &Clock) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut config = ProviderConfig::shipped("anthropic").unwrap();
        config.base_url = format!("http://{}", listener.local_addr().unwrap());
        // Only where nothing is answered is it waited for; elsewhere a busy machine would look like that.
        config.timeouts.idle_seconds = if status == SILENT { 1 } else { 60 };
        let status = Arc::new(AtomicU16::new(status));
        let shown = Arc::clone(&status);
        let requests = Arc::<AtomicU32>::default();
        let counted = Arc::clone(&requests);
        let supervisor = Supervisor::new(Shutdown::new());
        let each = supervisor.clone();
        supervisor.spawn("emulator", async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                each.spawn("reply", answer(stream, Arc::clone(&shown), retry_after));
            }
        });
        let key = Some("k-123".into());
        Self {
            model: build(&config, key, None, clock).unwrap(),
            status,
            calls: Arc::default(),
            probes: Arc::default(),
            requests,
            lasts: u32::MAX,
            once: true,
        }
    }

    fn answers_with(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }

    fn probes(&self) -> u32 {
        self.probes.load(Ordering::SeqCst)
    }

    fn requests(&self) -> u32 {
        self.requests.load(Ordering::SeqCst)
    }
}

/// Answers one request and closes.
async fn answer(mut stream: TcpStream, status: Arc<AtomicU16>, retry_after: &str) {
    let mut read = vec![0; 64 * 1024];
    let heard = stream.read(&mut read).await.unwrap_or(0);
    let status = status.load(Ordering::SeqCst);
    if heard == 0 || status == SILENT {
        tokio::time::sleep(Duration::from_secs(20)).await;
        return;
    }
    let asks = match retry_after {
        "" => String::new(),
        after => format!("retry-after: {after}\r\n"),
    };
    let text =
        format!("HTTP/1.1 {status} X\r\n{asks}content-length: 2\r\nconnection: close\r\n\r\n{{}}");
    drop(stream.write_all(text.as_bytes()).await);
}

/// Every call of the model is a request first; what the emulator answers with 418 the script answers.
#[async_trait]
impl crate::world::listener::Pace for Emulator {
    async fn before(&self, key: &ScriptKey) -> Result<(), ModelError> {
        let counter = if key.agent.is_empty() {
            &self.probes
        } else {
            &self.calls
        };
        counter.fetch_add(1, Ordering::SeqCst);
        if self.calls() > self.lasts {
            self.answers_with(503);
        }
        let request = ModelRequest {
            once: self.once || key.agent.is_empty(),
            ..ModelRequest::new("m", "", vec![Message::user("x")])
        };
        match self.model.ask(&request, &CancellationToken::new()).await {
            Err(ModelError::Refused { status: 418, .. }) | Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

const SERVES: u16 = 418;

/// Twelve tasks that need nothing of each other.
fn twelve() -> (String, Value) {
    let names = (1..=12).map(|number| format!("T-{number}"));
    let rules: String = names
        .clone()
        .map(|name| writes(&name, &format!("{name}.txt"), "good", None))
        .collect();
    let tasks = names.map(|name| {
        json!({
            "id": name, "phase": "api", "action": "CREATE", "file": format!("{name}.txt"),
            "validation": { "command": format!("grep -q good {name}.txt"), "expected": "exit 0" },
        })
    });
    (rules, tasks.collect())
}

async fn outage(open: &OpenProject) -> Option<Outage> {
    let rows = open.services.store.list::<Outage>(Query::new()).await;
    let found = rows.unwrap().into_iter().next();
    found.map(|row| row.record).filter(Outage::stands)
}

async fn alerts(open: &OpenProject) -> Vec<Alert> {
    let rows = open.services.store.list::<Alert>(Query::new()).await;
    rows.unwrap().into_iter().map(|row| row.record).collect()
}

async fn questions(open: &OpenProject) -> Vec<Question> {
    let rows = open.services.store.list::<Question>(Query::new()).await;
    rows.unwrap().into_iter().map(|row| row.record).collect()
}

fn none_is_charged(tasks: &[Task]) {
    for task in tasks {
        assert_eq!(
            (task.tries, task.cut_off, task.failures.len()),
            (0, 0, 0),
            "{}",
            task.id
        );
        assert_eq!(task.question, None, "{}", task.id);
        assert!(
            !matches!(task.state, TaskState::Failed | TaskState::Blocked),
            "{} is {}",
            task.id,
            task.state
        );
    }
}

/// Waits until the emulator was probed so often.
async fn probed(emulator: &Emulator, times: u32) {
    let deadline = tokio::time::Instant::now() + Duration::from_mins(1);
    while emulator.probes() < times {
        assert!(tokio::time::Instant::now() < deadline, "nobody looks again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn ends_by_itself(away: u16) {
    let emulator = Emulator::start(away).await;
    let (rules, plan) = twelve();
    let project = Project::new(&rules).paced_by(emulator.clone());
    let open = project.open().await;
    let spec = open.approve(plan).await;
    probed(&emulator, 3).await;
    let build = open.build(spec).await.unwrap();
    let row = outage(&open).await.unwrap();
    assert!(row.to_string().contains("is away since"), "{row}");
    assert!(row.probe_at.is_some(), "{row:?}");
    assert!(
        emulator.calls() <= 2,
        "{} calls by two loops",
        emulator.calls()
    );
    none_is_charged(&open.tasks(build.id).await);
    assert_eq!(alerts(&open).await.len(), 1);
    assert_eq!(questions(&open).await, []);
    // A restart in the middle changes nothing: the row stands, and nobody but the probe asks.
    open.close().await;
    let calls = emulator.calls();
    let open = project.open().await;
    probed(&emulator, emulator.probes() + 2).await;
    assert_eq!(emulator.calls(), calls);
    assert_eq!(
        outage(&open).await.map(|outage| outage.since),
        Some(row.since)
    );
    // A person can pause it and let it go on meanwhile.
    let paused = Payload::BuildPause(request(build.id));
    open.emit(Subject::build(build.id), paused).await;
    open.until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    let resumed = Payload::BuildResume(request(build.id));
    open.emit(Subject::build(build.id), resumed).await;
    open.until(spec, |build, _| !build.pause_requested).await;
    assert_eq!(emulator.calls(), calls);

    emulator.answers_with(SERVES);
    let back = tokio::time::Instant::now();
    while emulator.calls() == calls {
        assert!(back.elapsed() < PATIENCE, "nothing begins");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(outage(&open).await, None);
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    none_is_charged(&tasks);
    let alerts = alerts(&open).await;
    assert!(
        alerts.len() == 1 && alerts[0].cleared_at.is_some(),
        "{alerts:?}"
    );
    for attempt in open.attempts(build.id, "T-1").await {
        assert_ne!(attempt.state, AttemptState::Failed);
    }
    open.close().await;
}

#[tokio::test]
async fn a_provider_that_refuses_stops_dispatch_and_charges_nobody_until_it_is_back() {
    ends_by_itself(503).await;
}

#[tokio::test]
async fn a_provider_that_hangs_stops_dispatch_and_charges_nobody_until_it_is_back() {
    ends_by_itself(SILENT).await;
}

/// What is written down about a provider and those who wait for it.
#[derive(Debug)]
struct Rows {
    events: usize,
    attempts: usize,
    calls: u64,
    outages: u64,
    alerts: usize,
    questions: usize,
}

async fn rows(open: &OpenProject, build: BuildId) -> Rows {
    let store = &open.services.store;
    let of_build = || Query::new().equal("build", build.to_string());
    let filter = EventFilter {
        limit: Some(1_000_000),
        ..EventFilter::default()
    };
    Rows {
        events: store.events(&filter).await.unwrap().len(),
        attempts: store.list::<Attempt>(of_build()).await.unwrap().len(),
        calls: store.count::<ModelCall>(Query::new()).await.unwrap(),
        outages: store.count::<Outage>(Query::new()).await.unwrap(),
        alerts: alerts(open).await.len(),
        questions: questions(open).await.len(),
    }
}

/// Lets so many minutes pass by the clock of the program, in steps in which it can do what is due.
async fn minutes_pass(clock: &Clock, minutes: i64) {
    let until = clock.now() + TimeDelta::minutes(minutes);
    while clock.now() < until {
        clock.advance(Duration::from_secs(1));
        tokio::time::sleep(Duration::from_millis(8)).await;
    }
}

/// What a provider answers for ten minutes.
struct Storm {
    status: u16,
    retry_after: &'static str,
    /// So many requests that is; two loops ask.
    requests: RangeInclusive<u32>,
    /// How often a call is sent before it is given up.
    tries: usize,
    /// What all wait for in the end.
    wait: WaitReason,
}

/// A provider that does nothing but refuse for ten minutes of the program's time, and then serves.
async fn outlasts(storm: Storm) {
    let clock = Clock::manual(DateTime::from_timestamp(1_700_000_000, 0).unwrap());
    let emulator = Emulator::storming(storm.status, storm.retry_after, &clock).await;
    let (rules, plan) = twelve();
    let project = Project::new(&rules)
        .paced_by(emulator.clone())
        .at_the_time_of(&clock)
        // Nobody loses a lock because the test moves the clock faster than the machine follows.
        .with(|options| options.lease = Duration::from_hours(2));
    let open = project.open().await;
    let spec = open.approve(plan).await;
    open.until(spec, |_, _| emulator.requests() > 0).await;
    minutes_pass(&clock, 10).await;
    let build = open.build(spec).await.unwrap();
    let (least, most) = storm.requests.into_inner();
    assert!(
        emulator.requests() <= most,
        "{} requests",
        emulator.requests()
    );
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let is_waiting = |task: &Task| task.waiting_for == Some(storm.wait);
    while emulator.requests() < least || !open.tasks(build.id).await.iter().any(is_waiting) {
        let late = tokio::time::Instant::now() > deadline;
        assert!(!late, "{} requests", emulator.requests());
        minutes_pass(&clock, 1).await;
    }
    none_is_charged(&open.tasks(build.id).await);
    let written = rows(&open, build.id).await;
    let away = u64::from(storm.wait == WaitReason::Outage);
    assert_eq!(
        (written.calls, written.outages, written.alerts as u64),
        (0, away, away)
    );
    assert_eq!(written.questions, 0);
    // Nothing is written down for a refusal, but for a call that was given up after its tries.
    let ended = emulator.requests() as usize / storm.tries;
    assert!(written.attempts <= ended + 2, "{written:?}");
    assert!(
        written.events <= 5 + 2 * written.attempts,
        "{written:?} after {} requests",
        emulator.requests()
    );

    emulator.answers_with(SERVES);
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while open.build(spec).await.unwrap().completed_at.is_none() {
        assert!(tokio::time::Instant::now() < deadline, "it never goes on");
        minutes_pass(&clock, 1).await;
    }
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    none_is_charged(&tasks);
    assert_eq!(outage(&open).await, None);
    for question in questions(&open).await {
        let of_success = ["milestone_reached", "build_finished"];
        assert!(
            of_success.contains(&question.trigger.as_str()),
            "{question:?}"
        );
    }
    open.close().await;
}

#[tokio::test]
async fn ten_minutes_of_limits_without_a_time_fail_and_charge_nobody() {
    outlasts(Storm {
        status: 429,
        retry_after: "",
        requests: 12..=72,
        tries: 6,
        wait: WaitReason::Quota,
    })
    .await;
}

#[tokio::test]
async fn ten_minutes_of_limits_that_ask_to_come_again_at_once_fail_and_charge_nobody() {
    outlasts(Storm {
        status: 429,
        retry_after: "0",
        requests: 12..=72,
        tries: 6,
        wait: WaitReason::Quota,
    })
    .await;
}

#[tokio::test]
async fn ten_minutes_of_limits_with_a_time_fail_and_charge_nobody() {
    outlasts(Storm {
        status: 429,
        retry_after: "60",
        requests: 12..=24,
        tries: 6,
        wait: WaitReason::Quota,
    })
    .await;
}

#[tokio::test]
async fn ten_minutes_without_credit_fail_and_charge_nobody() {
    outlasts(Storm {
        status: 402,
        retry_after: "",
        // Each of twelve tasks asks once, and then rests for a quarter of an hour.
        requests: 2..=12,
        tries: 1,
        wait: WaitReason::Quota,
    })
    .await;
}

#[tokio::test]
async fn ten_minutes_of_overload_fail_and_charge_nobody() {
    outlasts(Storm {
        status: 529,
        retry_after: "soon",
        // Beside two calls the probes: more and more seldom, at last each quarter of a minute.
        requests: 20..=60,
        tries: 6,
        wait: WaitReason::Outage,
    })
    .await;
}

#[tokio::test]
async fn who_takes_over_ends_the_work_of_a_provider_that_went_away() {
    let emulator = Emulator::lasting(SERVES, 3).await;
    let (rules, plan) = twelve();
    let project = Project::new(&rules)
        .paced_by(emulator.clone())
        .falling_back();
    let open = project.open().await;
    let spec = open.approve(plan).await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    none_is_charged(&tasks);
    assert!(
        emulator.calls() <= 3 + 2,
        "{} calls by two loops",
        emulator.calls()
    );
    // It is away to the end, and that is told.
    assert!(outage(&open).await.is_some());
    assert_eq!(alerts(&open).await.len(), 1);
    let used = Query::new().equal("build", build.id.to_string());
    let used = open.services.store.usage(UsageBy::Model, used).await;
    let named: Vec<String> = used
        .unwrap()
        .into_iter()
        .filter_map(|row| row.key)
        .collect();
    assert_eq!(named, ["scripted/scripted", "second/scripted"]);
    open.close().await;
}

#[tokio::test]
async fn a_refused_key_is_asked_about_once_and_tried_again_on_a_word() {
    let emulator = Emulator::start(401).await;
    let (rules, plan) = twelve();
    let project = Project::new(&rules).paced_by(emulator.clone()).watched();
    let open = project.open().await;
    let spec = open.approve(plan).await;
    open.settled().await;
    let asked = until_asked(&open, 1).await;
    assert!(asked.text.contains("`ANTHROPIC_API_KEY`"), "{}", asked.text);
    assert!(
        emulator.calls() <= 2,
        "{} calls by two loops",
        emulator.calls()
    );
    assert_eq!(emulator.probes(), 0);
    assert_eq!(outage(&open).await.unwrap().probe_at, None);

    // It is no better: the same is asked again, once.
    answer_again(&open, asked.id).await;
    let again = until_asked(&open, 2).await;
    assert_eq!(emulator.probes(), 1);
    emulator.answers_with(SERVES);
    answer_again(&open, again.id).await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    none_is_charged(&tasks);
    assert_eq!(outage(&open).await, None);
    open.close().await;
}

/// Waits for question number `number` about the key, which is open and the only one.
async fn until_asked(open: &OpenProject, number: usize) -> Question {
    let deadline = tokio::time::Instant::now() + Duration::from_mins(1);
    loop {
        let of_key = |question: &Question| question.trigger == "provider_key_refused";
        let asked: Vec<Question> = questions(open).await.into_iter().filter(of_key).collect();
        assert!(asked.len() <= number, "{asked:?}");
        let newest = asked.iter().max_by_key(|question| question.id);
        if let Some(question) = newest.filter(|_| asked.len() == number) {
            return question.clone();
        }
        assert!(tokio::time::Instant::now() < deadline, "nobody is asked");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn answer_again(open: &OpenProject, question: QuestionId) {
    let context = &open.context;
    let answered =
        ropewalk_orchestrator::questions::answer(context, question, "again", "ada", "cli");
    answered.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_finds_no_network_again_and_again_is_made_in_the_same_conversation() {
    // Three outages in which others are answered, and then a failure of the call itself.
    let fault = Fault::of(|call| {
        let message = "no route".to_owned();
        (2..=5)
            .contains(&call)
            .then_some(ModelError::Network { message })
    });
    let project = Project::new(&writes("T-1", "T-1.txt", "good\n", None))
        .paced_by(fault)
        .with(|options| options.tries.backoff = Duration::from_millis(20));
    let open = project.open().await;
    let plan = json!([{
        "id": "T-1", "phase": "api", "action": "CREATE", "file": "T-1.txt",
        "validation": { "command": "grep -q good T-1.txt", "expected": "exit 0" },
    }]);
    let spec = open.approve(plan).await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let attempts = open.attempts(build.id, "T-1").await;
    let ended: Vec<_> = attempts
        .iter()
        .map(|one| {
            let class = one.failure.as_ref().map(|failure| failure.class);
            (one.round, one.state, class)
        })
        .collect();
    let away = (1, AttemptState::Interrupted, None);
    let failed = (1, AttemptState::Failed, Some(FailureClass::Network));
    let landed = (1, AttemptState::Landed, None);
    assert_eq!(ended, [away, away, away, failed, landed]);
    let requests = project.requests("T-1");
    assert_eq!(requests.len(), 6);
    let second = &requests[1].messages;
    assert!(requests[1..].iter().all(|one| one.messages == *second));
    let of_build = Query::new().equal("role", "build");
    let paid = open.services.store.count::<ModelCall>(of_build).await;
    assert_eq!(paid.unwrap(), 2);
    let done = task(&tasks, "T-1");
    assert_eq!((done.tries, done.failures.len()), (0, 1));
    open.close().await;
}
