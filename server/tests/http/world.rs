//! A served store, and whoever asks it.

mod rows;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ropewalk_config::settings::{BudgetSettings, Network, PersonRecord};
use ropewalk_desk::builds::landing::LandingView;
use ropewalk_desk::health::{Finding, Fitness};
use ropewalk_desk::people::{People, Person};
use ropewalk_desk::views::lines::FileLines;
use ropewalk_orchestrator::Services;
use ropewalk_runtime::http::{self, ClientOptions};
use ropewalk_runtime::{Clock, Supervisor};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::idea::Idea;
use ropewalk_schemas::payload::IdeationMessage;
use ropewalk_schemas::person::{Right, Role};
use ropewalk_schemas::question::{About, Question, QuestionKind, QuestionState};
use ropewalk_schemas::specification::{Complexity, SpecState, Specification};
use ropewalk_schemas::task::{Action, Task, TaskBlock, TaskState, Validation};
use ropewalk_schemas::{
    BuildId, CommitId, ComponentName, ContentHash, Event, Payload, Priority, QuestionId, RepoPath,
    Slug, SpecId, Subject, TaskId, UserSlug,
};
use ropewalk_server::{Address, Capacity, Door, Options, Server};
use ropewalk_store::{ChangeSet, Location, Store};
use ropewalk_world::{Plan, World};
use serde_json::Value;
use tempfile::TempDir;

use self::rows::Rows;

/// The tokens of two people: ada may everything, bob nothing beside what everybody may.
pub(crate) const ADA: &str = "token-of-ada";
pub(crate) const BOB: &str = "token-of-bob";

/// What every build changed.
const DIFFERENCE: &str = "diff --git a/walks.txt b/walks.txt\n--- a/walks.txt\n+++ b/walks.txt\n@@ -3,2 +3,2 @@\n same\n-<b>old</b>\n+<b>new</b>\n";

/// An answer: its status, its headers and its body, `null` where that is no JSON.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Value,
    pub(crate) text: String,
}

/// A served store.
pub(crate) struct ServerWorld {
    directory: TempDir,
    pub(crate) services: Services,
    pub(crate) supervisor: Supervisor,
    pub(crate) address: SocketAddr,
    /// Where whoever comes is told how it does.
    pub(crate) admin: SocketAddr,
    pub(crate) client: reqwest::Client,
    /// A link by which ada logs in.
    pub(crate) link: String,
    /// How often everything was looked at.
    pub(crate) looks: Arc<AtomicUsize>,
    /// Whether a look never ends.
    pub(crate) stalls: Arc<AtomicBool>,
}

/// Returns the name of a person.
pub(crate) fn name(text: &str) -> UserSlug {
    UserSlug::parse(text).unwrap()
}

/// Returns ada, who is asked about what is built, and bob, who is asked about how.
pub(crate) fn people() -> People {
    let record = |token: &str, rights: &[Right], role: Role| PersonRecord {
        token_sha256: Some(ContentHash::of(token.as_bytes())),
        roles: [role].into(),
        rights: rights.iter().copied().collect(),
        ..PersonRecord::default()
    };
    let known: BTreeMap<UserSlug, PersonRecord> = [
        (name("ada"), record(ADA, &Right::ALL, Role::Product)),
        (name("bob"), record(BOB, &[], Role::Technical)),
    ]
    .into();
    People::new(known, name("ada"))
}

/// Returns an address at which nobody listens yet.
pub(crate) fn anywhere() -> Address {
    Address {
        socket: "127.0.0.1:0".parse().unwrap(),
        chosen: true,
    }
}

impl ServerWorld {
    /// Serves an empty store.
    pub(crate) async fn new() -> Self {
        Self::behind(Vec::new()).await
    }

    /// Serves an empty store to whom these proxies ask for.
    pub(crate) async fn behind(proxies: Vec<Network>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let capacity = Capacity::default();
        Self::open(directory, &Clock::system(), proxies, capacity).await
    }

    /// Serves an empty store to no more than so many at once.
    pub(crate) async fn holding(capacity: Capacity) -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self::open(directory, &Clock::system(), Vec::new(), capacity).await
    }

    /// Serves an empty store at the time of `clock`.
    pub(crate) async fn at(clock: &Clock) -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self::open(directory, clock, Vec::new(), Capacity::default()).await
    }

    /// Stops, and serves the same store anew, as the program does that is started again.
    pub(crate) async fn again(self) -> Self {
        let (clock, store) = (self.services.clock.clone(), self.services.store.clone());
        let directory = self.ended().await;
        store.close().await.unwrap();
        Self::open(directory, &clock, Vec::new(), Capacity::default()).await
    }

    async fn open(
        directory: TempDir,
        clock: &Clock,
        proxies: Vec<Network>,
        capacity: Capacity,
    ) -> Self {
        let plan = Plan::unlike_any_other(clock);
        let World {
            services,
            supervisor,
        } = plan.open(directory.path()).await.unwrap();
        let looks: Arc<AtomicUsize> = Arc::default();
        let looked = Arc::clone(&looks);
        let stalls: Arc<AtomicBool> = Arc::default();
        let stalled = Arc::clone(&stalls);
        let ideas = directory.path().join("ideas");
        let options = Options {
            capacity,
            people: people(),
            hosts: Vec::new(),
            proxies,
            state: directory.path().to_owned(),
            builds_with: vec!["scripted".to_owned()],
            silent_after: Duration::from_secs(90),
            hook: None,
            changes: Arc::new(|_| Box::pin(async { Ok(FileLines::of_difference(DIFFERENCE)) })),
            landings: Arc::new(|build| Box::pin(async move { Ok(landing(&build)) })),
            checkup: Arc::new(move || {
                looked.fetch_add(1, Ordering::Relaxed);
                let stalled = Arc::clone(&stalled);
                Box::pin(async move {
                    if stalled.load(Ordering::Relaxed) {
                        std::future::pending::<()>().await;
                    }
                    findings()
                })
            }),
            budget: BudgetSettings {
                day_tokens: Some(50_000),
                ..BudgetSettings::default()
            },
            folder: Arc::new(move |idea: &Idea| ideas.join(idea.slug.as_str())),
        };
        let door = Door::open(anywhere(), &options.people).await.unwrap();
        let admin = Door::open_to_all(anywhere()).await.unwrap();
        let told = admin.address();
        let server = Server::new(door, options, services.clone(), &supervisor).unwrap();
        let server = server.telling_at(Some(admin));
        let link = server.link(&Person::alone(name("ada")));
        let address = server.address();
        server.serve();
        Self {
            directory,
            services,
            supervisor,
            address,
            admin: told,
            client: http::client(ClientOptions::default()).unwrap(),
            link,
            looks,
            stalls,
        }
    }

    /// Returns the state directory.
    pub(crate) fn state(&self) -> &Path {
        self.directory.path()
    }

    /// Begins a request to a path, as whoever has `token`.
    pub(crate) fn ask(&self, method: &str, path: &str, token: &str) -> reqwest::RequestBuilder {
        self.bare(method, path).bearer_auth(token)
    }

    /// Begins a request of nobody.
    pub(crate) fn bare(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let url = format!("http://{}{path}", self.address);
        self.client.request(method, url)
    }

    /// Returns what ada reads at a path.
    pub(crate) async fn read(&self, path: &str) -> Value {
        let answer = answered(self.ask("GET", path, ADA)).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        answer.body
    }

    /// Returns what ada is answered who sends `body` to a path.
    pub(crate) async fn send(&self, path: &str, body: &Value) -> Answer {
        answered(self.ask("POST", path, ADA).json(body)).await
    }

    /// Returns everything that a request could have changed.
    pub(crate) async fn rows(&self) -> Rows {
        rows::read(&self.database()).await.unwrap()
    }

    /// Stores an idea with a specification to approve, whose hash is that of `b"new"`, and a question about merging.
    pub(crate) async fn specified(&self) -> (SpecId, QuestionId) {
        let begun = self
            .send(
                "/api/ideation/sessions",
                &serde_json::json!({ "text": "Walks" }),
            )
            .await;
        assert_eq!(begun.status, 201, "{}", begun.text);
        let spec = self.specification().await;
        (spec, self.asked("build_finished", ["merge", "leave"]).await)
    }

    /// Stores a specification of `walks` to approve, whose hash is that of `b"new"`.
    pub(crate) async fn specification(&self) -> SpecId {
        let ids = &self.services.ids;
        let now = self.services.clock.now();
        let specification = Specification {
            id: SpecId(ids.next()),
            idea: Slug::parse("walks").unwrap(),
            user: name("ada"),
            state: SpecState::Generated,
            revision: 2,
            hash: Some(ContentHash::of(b"new")),
            complexity: Complexity::Simple,
            put_away: None,
            approval: None,
            price: None,
            feedback: Vec::new(),
            fulfilled: 0,
            reason: None,
            requested_by: name("ada"),
            correlation_id: ids.next().into(),
            created_at: now,
            updated_at: now,
        };
        let mut changes = ChangeSet::new();
        changes.insert(&specification);
        self.services.store.commit(changes).await.unwrap();
        specification.id
    }

    /// Stores an open question about `walks` which lets one choose between `choices`.
    pub(crate) async fn asked(&self, trigger: &str, choices: [&str; 2]) -> QuestionId {
        let ids = &self.services.ids;
        let choices = choices.map(|id| {
            serde_json::json!({ "id": id, "label": id, "recommended": false, "with_words": false })
        });
        let question: Question = serde_json::from_value(serde_json::json!({
            "id": ids.next(), "kind": QuestionKind::Blocking, "trigger": trigger, "agent": "build",
            "text": "What now?", "context": "", "choices": choices,
            "free_text": false, "consequential": true, "about": About::Nothing, "idea": "walks",
            "state": QuestionState::Pending, "correlation_id": ids.next(), "asked_at": self.services.clock.now(),
        }))
        .unwrap();
        let mut changes = ChangeSet::new();
        changes.insert(&question);
        self.services.store.commit(changes).await.unwrap();
        question.id
    }

    /// Stores a running build of `walks`.
    pub(crate) async fn built(&self) -> BuildId {
        let ids = &self.services.ids;
        let build: Build = serde_json::from_value(serde_json::json!({
            "id": ids.next(), "spec": ids.next(), "revision": 1, "hash": ContentHash::of(b"new"),
            "idea": "walks", "user": "ada", "state": "running", "pause_requested": false,
            "branch": "build/walks", "target": "main", "priority": 5, "working_ms": 0,
            "correlation_id": ids.next(), "created_at": self.services.clock.now(),
        }))
        .unwrap();
        let mut changes = ChangeSet::new();
        changes.insert(&build);
        self.services.store.commit(changes).await.unwrap();
        build.id
    }

    /// Stores a task of a build, as it stands.
    pub(crate) async fn task(&self, build: BuildId, id: &str, state: TaskState) {
        let file = RepoPath::parse("src/walks.rs").unwrap();
        let check = Validation::passes("true");
        let number = id.trim_start_matches("T-").parse().unwrap_or(1);
        let id = TaskId::parse(id).unwrap();
        let block = TaskBlock::new(id, "api", Action::Create, file, check);
        let task = Task {
            state,
            ..Task::planned(build, number, block)
        };
        let mut changes = ChangeSet::new();
        changes.put(&task);
        self.services.store.commit(changes).await.unwrap();
    }

    /// Changes a build.
    pub(crate) async fn change(&self, build: BuildId, change: impl FnOnce(&mut Build)) {
        let store = &self.services.store;
        let found = store.get::<Build>(&build.to_string()).await.unwrap();
        let found = found.unwrap();
        let mut after = found.record.clone();
        change(&mut after);
        let mut changes = ChangeSet::new();
        changes.update(&found, &after);
        store.commit(changes).await.unwrap();
    }

    /// Ends a build.
    pub(crate) async fn end(&self, build: BuildId) {
        self.change(build, |build| build.state = BuildState::Stopped)
            .await;
    }

    /// Begins an idea as another process does, of whose commits nobody tells.
    pub(crate) async fn elsewhere(&self, slug: &str) {
        let clock = self.services.clock.clone();
        let store = Store::open(&Location::Sqlite(self.database()), clock)
            .await
            .unwrap();
        let mut changes = ChangeSet::new();
        changes.emit(self.message(slug, 0));
        store.commit(changes).await.unwrap();
        store.close().await.unwrap();
    }

    /// Stores so many events with `text`; returns the position of the last.
    pub(crate) async fn many(&self, count: u32, text: &str) -> i64 {
        let mut last = 0;
        for chunk in 0..count / 500 {
            let mut changes = ChangeSet::new();
            for number in 0..500 {
                let mut event = self.message("walks", chunk * 500 + number);
                event.traceparent = Some(text.to_owned());
                changes.emit(event);
            }
            let committed = self.services.store.commit(changes).await.unwrap();
            last = committed.events.last().unwrap().sequence;
        }
        last
    }

    fn message(&self, slug: &str, number: u32) -> Event {
        let ids = &self.services.ids;
        let idea = Slug::parse(slug).unwrap();
        Event {
            id: ids.next().into(),
            source: ComponentName::parse("elsewhere").unwrap(),
            subject: Subject::idea(&idea),
            time: self.services.clock.now(),
            correlation_id: ids.next().into(),
            causation_id: None,
            hop: number % 2,
            traceparent: None,
            priority: Priority::DEFAULT,
            payload: Payload::IdeationMessage(IdeationMessage {
                session_id: ids.next().into(),
                idea_slug: idea,
                message_id: ids.next().into(),
                user_slug: name("ada"),
                ends: false,
            }),
        }
    }

    fn database(&self) -> PathBuf {
        self.directory.path().join("ropewalk.db")
    }

    /// Stops what is served, as the program does.
    pub(crate) async fn stop(self) {
        self.ended().await;
    }

    async fn ended(self) -> TempDir {
        self.supervisor.shutdown().begin();
        let late = self.supervisor.drain(Duration::from_mins(1)).await.unwrap();
        assert!(late.is_empty(), "{late:?} ran on");
        self.directory
    }

    /// Returns who speaks in an event of this type.
    pub(crate) async fn events(&self, event_type: &str) -> Vec<Value> {
        let page = self.read(&format!("/api/events?type={event_type}")).await;
        page["items"].as_array().unwrap().clone()
    }
}

/// Sends a request and reads the answer.
pub(crate) async fn answered(request: reqwest::RequestBuilder) -> Answer {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let text = response.text().await.unwrap();
    Answer {
        status,
        headers,
        body: serde_json::from_str(&text).unwrap_or_default(),
        text,
    }
}

/// What a look at everything finds.
pub(crate) fn findings() -> Vec<Finding> {
    vec![
        Finding::new("git", Fitness::Ok, "found"),
        Finding::new("bus", Fitness::Fail, "start `nats-server`"),
        Finding::new("disk", Fitness::Warn, "13 of 233 GiB are free"),
    ]
}

/// What landing a build would come to, without any repository.
fn landing(build: &Build) -> LandingView {
    LandingView {
        build: build.id,
        into: build.target.clone(),
        from: build.head.clone(),
        onto: CommitId::parse(&"5".repeat(40)).ok(),
        comes_to: Some("would move on to it".to_owned()),
        gate: false,
        documents: None,
        refusal: None,
        conflicts: None,
        objections: Vec::new(),
    }
}
