//! A store in a temporary directory, on a clock that the test moves, with a build in it.

use std::time::Duration;

use chrono::{DateTime, TimeZone, Utc};
use ropewalk_config::QuestionTemplates;
use ropewalk_orchestrator::{Agent, Context, Services, questions, timers};
use ropewalk_runtime::Clock;
use ropewalk_schemas::agent::{AgentState, Component};
use ropewalk_schemas::attempt::{Attempt, AttemptState, Failure, FailureClass};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::payload::{ScheduleDue, SpecApproved};
use ropewalk_schemas::question::Question;
use ropewalk_schemas::task::{Action, Task, TaskBlock, TaskState, Validation};
use ropewalk_schemas::timer::Timer;
use ropewalk_schemas::{
    AttemptId, BuildId, CommitId, ComponentName, ContentHash, CorrelationId, Event, Payload,
    Priority, RepoPath, Slug, SpecId, Subject, TaskId, TimerId, UserSlug,
};
use ropewalk_store::{ChangeSet, Query, Record, Store, task_key};
use ropewalk_world::Plan;
use uuid::Uuid;

/// Returns the templates of questions, in the words of this run.
pub(crate) fn templates() -> QuestionTemplates {
    ropewalk_world::templates().unwrap()
}

/// A world with builds in it, whose agents are handed one event at a time.
pub(crate) struct WatchWorld {
    pub(crate) services: Services,
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) directory: tempfile::TempDir,
}

pub(crate) fn noon() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 11, 21, 12, 0, 0).unwrap()
}

pub(crate) fn name(text: &str) -> ComponentName {
    ComponentName::parse(text).unwrap()
}

pub(crate) fn id(text: &str) -> TaskId {
    TaskId::parse(text).unwrap()
}

pub(crate) fn build_id(number: u128) -> BuildId {
    BuildId(Uuid::from_u128(number))
}

pub(crate) fn attempt_id(number: u128) -> AttemptId {
    AttemptId(Uuid::from_u128(number))
}

pub(crate) fn path(text: &str) -> RepoPath {
    RepoPath::parse(text).unwrap()
}

impl WatchWorld {
    pub(crate) async fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Clock::manual(noon());
        let world = Plan::at(&clock).open(directory.path()).await.unwrap();
        let services = world.services;
        let store = services.store.clone();
        Self {
            services,
            store,
            clock,
            directory,
        }
    }

    pub(crate) fn context(&self, role: &str) -> Context {
        Context::new(&self.services, name(role))
    }

    pub(crate) fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    pub(crate) async fn commit(&self, changes: ChangeSet) {
        self.store.commit(changes).await.unwrap();
    }

    pub(crate) async fn put<R: Record>(&self, record: &R) {
        let mut changes = ChangeSet::new();
        changes.put(record);
        self.commit(changes).await;
    }

    pub(crate) async fn list<R: Record>(&self) -> Vec<R> {
        let rows = self.store.list::<R>(Query::new()).await.unwrap();
        rows.into_iter().map(|row| row.record).collect()
    }

    /// Gives an event to an agent, commits what changes as the frame does, and returns what was emitted.
    pub(crate) async fn give(&self, agent: &dyn Agent, payload: Payload) -> Vec<Payload> {
        self.hand(agent, self.event(payload)).await
    }

    fn event(&self, payload: Payload) -> Event {
        let subject = Subject::parse("test/1").unwrap();
        self.context("test").event(subject, payload)
    }

    async fn hand(&self, agent: &dyn Agent, event: Event) -> Vec<Payload> {
        let role = agent.profile().role;
        assert!(
            agent
                .profile()
                .patterns
                .iter()
                .any(|pattern| pattern.matches(event.event_type(), &event.source)),
            "{role} does not take {}",
            event.event_type()
        );
        let context = self.context(role.as_str()).caused_by(&event);
        let changes = agent.handle(&event, &context).await.unwrap();
        let emitted = changes
            .emitted()
            .map(|event| event.payload.clone())
            .collect();
        self.commit(changes).await;
        emitted
    }

    /// Fires a timer or a schedule by name.
    pub(crate) async fn due(&self, agent: &dyn Agent, name: &str, target: &str) -> Vec<Payload> {
        let due = ScheduleDue {
            timer_id: TimerId(Uuid::nil()),
            name: name.to_owned(),
            target: target.to_owned(),
        };
        let mut event = self.event(Payload::ScheduleDue(due));
        event.source = timers::source(name).unwrap();
        self.hand(agent, event).await
    }

    /// Answers the only open question and gives the answer to an agent.
    pub(crate) async fn answer(&self, agent: &dyn Agent, text: &str) -> Vec<Payload> {
        let question = self.open_question().await.expect("an open question");
        let person = self.context("cli");
        questions::answer(&person, question.id, text, "ada", "cli")
            .await
            .unwrap();
        let key = question.id.to_string();
        let stored = self.store.get::<Question>(&key).await.unwrap();
        let given = stored.unwrap().record.answer.unwrap();
        let answered = ropewalk_schemas::payload::QuestionAnswered {
            question_id: question.id,
            trigger: question.trigger,
            choice: given.choice,
            answer: given.text,
            says_why: given.says_why,
            answered_by: "ada".to_owned(),
            channel: "cli".to_owned(),
            about: question.about,
            idea_slug: question.idea,
        };
        self.give(agent, Payload::QuestionAnswered(answered)).await
    }

    pub(crate) async fn open_question(&self) -> Option<Question> {
        let query = Query::new().equal("state", "pending");
        let mut open = self.store.list::<Question>(query).await.unwrap();
        assert!(open.len() <= 1, "{open:#?}");
        open.pop().map(|row| row.record)
    }

    /// Returns the minutes after noon at which the timers of this name are due.
    pub(crate) async fn timers(&self, name: &str) -> Vec<i64> {
        let timers = self.list::<Timer>().await;
        timers
            .iter()
            .filter(|timer| timer.name == name)
            .map(|timer| (timer.due - noon()).num_minutes())
            .collect()
    }

    /// Puts a build with tasks into the store.
    pub(crate) async fn lay(&self, build: &Build, tasks: &[Task]) {
        self.put(build).await;
        for task in tasks {
            self.put(task).await;
        }
    }

    /// Lets an attempt at a task run on a loop, begun now.
    pub(crate) async fn run(&self, task: &Task, attempt: u128, on: &str) -> Attempt {
        let attempt = Attempt {
            state: AttemptState::Working,
            started_at: self.clock.now(),
            ended_at: None,
            ..attempt_at(task, attempt, on)
        };
        self.put(&attempt).await;
        self.put(&Task {
            state: TaskState::Working,
            attempt: Some(attempt.id),
            attempts: attempt.number,
            claimed_at: Some(attempt.started_at),
            progress_at: Some(attempt.started_at),
            ..task.clone()
        })
        .await;
        attempt
    }

    pub(crate) async fn task(&self, task: &Task) -> Task {
        let key = task_key(task.build, &task.id);
        self.store.get::<Task>(&key).await.unwrap().unwrap().record
    }
}

pub(crate) fn build(number: u128) -> Build {
    let approval = SpecApproved {
        spec_id: SpecId(Uuid::from_u128(number)),
        idea_slug: Slug::parse("habits").unwrap(),
        user_slug: UserSlug::parse("ada").unwrap(),
        revision: 1,
        hash: ContentHash::of(b"spec"),
        approved_by: UserSlug::parse("ada").unwrap(),
        priority: Priority::DEFAULT,
        price: None,
    };
    Build {
        state: BuildState::Running,
        started_at: Some(noon()),
        ..Build::queued(
            build_id(number),
            &approval,
            CorrelationId(Uuid::from_u128(number)),
            noon(),
        )
    }
}

pub(crate) fn task(build: u128, name: &str, file: &str, action: Action) -> Task {
    let number = name.trim_start_matches("T-").parse().unwrap();
    let block = TaskBlock::new(
        id(name),
        "api",
        action,
        path(file),
        Validation::passes("true"),
    );
    Task::planned(build_id(build), number, block)
}

/// Makes an attempt that failed.
pub(crate) fn attempt_at(task: &Task, number: u128, on: &str) -> Attempt {
    Attempt {
        id: attempt_id(number),
        build: task.build,
        task: task.id.clone(),
        number: task.attempts + 1,
        round: 1,
        tries: Vec::new(),
        loop_name: name(on),
        state: AttemptState::Failed,
        token: 1,
        base: CommitId::parse(&"0".repeat(40)).unwrap(),
        candidate: None,
        preserve_ref: None,
        granted: Vec::new(),
        gotchas: Vec::new(),
        failure: Some(Failure {
            class: FailureClass::ValidationFailed,
            error: "error: column type JSONB does not exist in SQLite".to_owned(),
            attempt: task.attempts + 1,
            fingerprint: format!("fingerprint-{number}"),
        }),
        summary: None,
        tokens: 0,
        started_at: noon(),
        ended_at: Some(noon()),
    }
}

pub(crate) fn component(component: &str, last_seen: DateTime<Utc>) -> Component {
    Component {
        name: name(component),
        role: "build".to_owned(),
        process: "test-1".to_owned(),
        state: AgentState::Active,
        working_on: None,
        since: noon(),
        last_seen,
        stopped: false,
    }
}

/// Names the events, for a first look.
pub(crate) fn types(payloads: &[Payload]) -> Vec<&'static str> {
    payloads.iter().map(Payload::event_type).collect()
}
