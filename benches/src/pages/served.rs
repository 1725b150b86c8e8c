//! A store as large as one ever gets, and a server over it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use ropewalk_bus::TransportOptions;
use ropewalk_config::settings::{BudgetSettings, PersonRecord};
use ropewalk_desk::builds::landing::LandingView;
use ropewalk_desk::people::{People, Person};
use ropewalk_desk::views::lines::FileLines;
use ropewalk_runtime::http::{self, ClientOptions};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::idea::{Idea, Session};
use ropewalk_schemas::person::Right;
use ropewalk_schemas::task::{Action, Task, TaskBlock, Validation};
use ropewalk_schemas::{BuildId, CommitId, ContentHash, RepoPath, UserSlug};
use ropewalk_server::{Address, Door, Options, Server};
use ropewalk_store::{ChangeSet, Store};
use serde_json::json;

use crate::house::House;
use crate::words::{Words, task_id};

/// How many ideas there are.
const IDEAS: usize = 1_000;
/// How many builds there are.
const BUILDS: usize = 20;
/// How many tasks each build has.
pub(super) const TASKS: usize = 500;
/// What whoever asks is known by.
const TOKEN: &str = "token-of-ada";

/// A server and whoever asks it.
pub(super) struct ServerFixture {
    house: House,
    client: reqwest::Client,
    base: String,
    /// A link to log in by.
    pub(super) link: String,
}

impl ServerFixture {
    /// Fills the store in `directory` and serves it; returns the builds as well.
    pub(super) async fn open(directory: &Path) -> Result<(Self, Vec<BuildId>)> {
        let house = House::open(directory, TransportOptions::Embedded).await?;
        let words = Words::new();
        ideas(&house.store, &words).await?;
        let builds = builds(&house.store, &words).await?;
        let options = options(directory)?;
        let socket = "127.0.0.1:0".parse()?;
        let chosen = true;
        let door = Door::open(Address { socket, chosen }, &options.people).await?;
        let server = Server::new(door, options, house.services(), &house.supervisor)?;
        let open = Self {
            client: http::client(ClientOptions::default())?,
            base: format!("http://{}", server.address()),
            link: server.link(&Person::alone(UserSlug::parse("ada")?)),
            house,
        };
        server.serve();
        Ok((open, builds))
    }

    /// Returns the store that is served.
    pub(super) fn store(&self) -> &Store {
        &self.house.store
    }

    /// Begins a request to a path.
    pub(super) fn request(&self, path: &str) -> reqwest::RequestBuilder {
        self.client
            .get(format!("{}{path}", self.base))
            .bearer_auth(TOKEN)
    }

    /// Begins to listen to everything that happens.
    pub(super) async fn listen(&self) -> Result<reqwest::Response> {
        let asked = self
            .request("/api/events")
            .header("Accept", "text/event-stream");
        Ok(asked.send().await?.error_for_status()?)
    }

    /// Reads a page whole.
    pub(super) async fn read(&self, path: &str) -> Result<()> {
        let asked = self.request(path).header("Accept", "text/html");
        let answer = asked.send().await?;
        let status = answer.status();
        let text = answer.text().await?;
        ensure!(
            status.is_success(),
            "`{path}` was answered {status}: {text}"
        );
        Ok(())
    }

    /// Stops in order.
    pub(super) async fn close(self) -> Result<()> {
        self.house.close().await
    }
}

fn options(directory: &Path) -> Result<Options> {
    let ada = UserSlug::parse("ada")?;
    let record = PersonRecord {
        token_sha256: Some(ContentHash::of(TOKEN.as_bytes())),
        rights: Right::ALL.into(),
        ..PersonRecord::default()
    };
    Ok(Options {
        people: People::new([(ada.clone(), record)].into(), ada),
        hosts: Vec::new(),
        proxies: Vec::new(),
        state: directory.to_owned(),
        builds_with: vec!["scripted".to_owned()],
        silent_after: Duration::from_secs(90),
        hook: None,
        changes: Arc::new(|_| Box::pin(async { Ok(FileLines::of_difference("")) })),
        landings: Arc::new(|build| Box::pin(async move { Ok(landing(&build)) })),
        checkup: Arc::new(|| Box::pin(async { Vec::new() })),
        budget: BudgetSettings::default(),
        folder: Arc::new(|idea: &Idea| PathBuf::from("/ideas").join(idea.slug.as_str())),
    })
}

/// Stores ideas, each with its session.
async fn ideas(store: &Store, words: &Words) -> Result<()> {
    let mut changes = ChangeSet::new();
    for number in 0..IDEAS {
        let (session, chain) = (words.ids.next(), words.ids.next());
        let slug = format!("idea-{number}");
        let now = words.clock.now();
        let idea: Idea = serde_json::from_value(json!({
            "slug": slug, "user": "ada", "title": format!("Idea number {number}"), "state": "captured",
            "session": session, "correlation_id": chain, "created_at": now,
        }))
        .context("an idea")?;
        let session: Session = serde_json::from_value(json!({
            "id": session, "idea": slug, "user": "ada", "phase": "exploring", "signals": { "confidence": 0.5 },
            "correlation_id": chain, "created_at": now, "updated_at": now,
        }))
        .context("a session")?;
        changes.insert(&idea).insert(&session);
    }
    store.commit(changes).await?;
    Ok(())
}

/// Stores builds, each with its tasks: a hundred that need nothing, and others that need two of those before them.
async fn builds(store: &Store, words: &Words) -> Result<Vec<BuildId>> {
    let mut ids = Vec::new();
    for number in 0..BUILDS {
        let build: Build = serde_json::from_value(json!({
            "id": words.ids.next(), "spec": words.ids.next(), "revision": 1, "hash": ContentHash::of(b"new"),
            "idea": format!("idea-{number}"), "user": "ada", "state": "running", "pause_requested": false,
            "branch": format!("build/idea-{number}"), "target": "main", "priority": 5, "working_ms": 0,
            "correlation_id": words.ids.next(), "created_at": words.clock.now(),
        }))
        .context("a build")?;
        let mut changes = ChangeSet::new();
        changes.insert(&build);
        for lane in 1..=TASKS {
            changes.insert(&task(build.id, lane)?);
        }
        store.commit(changes).await?;
        ids.push(build.id);
    }
    Ok(ids)
}

fn task(build: BuildId, lane: usize) -> Result<Task> {
    let file = RepoPath::parse(&format!("src/part_{lane}.rs"))?;
    let check = Validation::passes("cargo test");
    let mut block = TaskBlock::new(task_id(lane)?, "core", Action::Create, file, check);
    if lane > 100 {
        block.depends_on = vec![task_id(lane % 100 + 1)?, task_id(lane - 100)?];
    }
    Ok(Task::planned(build, u32::try_from(lane)?, block))
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
        refusal: None,
        conflicts: None,
    }
}
