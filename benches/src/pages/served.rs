//! A store as large as one ever gets, and a server over it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use ropewalk_bus::TransportOptions;
use ropewalk_config::settings::{BudgetSettings, PersonRecord};
use ropewalk_desk::builds::landing::LandingView;
use ropewalk_desk::health::{Finding, Fitness};
use ropewalk_desk::people::{People, Person};
use ropewalk_desk::views::lines::FileLines;
use ropewalk_runtime::http::{self, ClientOptions};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::idea::Idea;
use ropewalk_schemas::person::Right;
use ropewalk_schemas::{CommitId, ContentHash, UserSlug};
use ropewalk_server::{Address, Capacity, Door, Options, Server};
use ropewalk_store::Store;
use ropewalk_world::World;

use super::fill::{PageKeys, fill};
use crate::disk;
use crate::words::Words;

/// What whoever asks is known by.
const TOKEN: &str = "token-of-ada";

/// How many files a large build changed, by fifty lines each.
const FILES: usize = 40;
/// How many things a check of everything looks at.
const FINDINGS: usize = 20;

/// A server and whoever asks it.
pub(super) struct ServerFixture {
    world: World,
    client: reqwest::Client,
    base: String,
    port: u16,
    /// A link to log in by.
    pub(super) link: String,
}

impl ServerFixture {
    /// Fills the store in `directory` and serves it; returns what there is a page of as well.
    pub(super) async fn open(directory: &Path) -> Result<(Self, PageKeys)> {
        let world = disk::world(directory, TransportOptions::Embedded).await?;
        let filled = fill(&world.services.store, directory, &Words::new()).await?;
        let options = options(directory)?;
        let socket = "127.0.0.1:0".parse()?;
        let chosen = true;
        let door = Door::open(Address { socket, chosen }, &options.people).await?;
        let server = Server::new(door, options, world.services.clone(), &world.supervisor)?;
        let open = Self {
            client: http::client(ClientOptions::default())?,
            base: format!("http://{}", server.address()),
            port: server.address().port(),
            link: server.link(&Person::alone(UserSlug::parse("ada")?)),
            world,
        };
        server.serve();
        Ok((open, filled))
    }

    /// Returns the store that is served.
    pub(super) fn store(&self) -> &Store {
        &self.world.services.store
    }

    /// Begins a request to a path.
    pub(super) fn request(&self, path: &str) -> reqwest::RequestBuilder {
        self.client
            .get(format!("{}{path}", self.base))
            .bearer_auth(TOKEN)
    }

    /// Returns the port that is served.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Begins to listen to everything that happens, after a position or from now on.
    pub(super) async fn listen(&self, after: Option<i64>) -> Result<reqwest::Response> {
        let mut asked = self
            .request("/api/events")
            .header("Accept", "text/event-stream");
        if let Some(after) = after {
            asked = asked.header("Last-Event-ID", after);
        }
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
        Ok(self.world.close().await?)
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
        capacity: Capacity::default(),
        silent_after: Duration::from_secs(90),
        hook: None,
        changes: Arc::new(|_| Box::pin(async { Ok(FileLines::of_difference(&difference())) })),
        landings: Arc::new(|build| Box::pin(async move { Ok(landing(&build)) })),
        checkup: Arc::new(|| Box::pin(async { findings() })),
        budget: BudgetSettings::default(),
        folder: Arc::new(|idea: &Idea| PathBuf::from("/ideas").join(idea.slug.as_str())),
    })
}

/// What a large build changed, as git shows it, without any repository.
fn difference() -> String {
    let file = |number: usize| {
        let path = format!("src/part_{number}.rs");
        let head = format!(
            "diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,25 +1,50 @@\n"
        );
        let lines =
            (0..25).map(|line| format!(" let kept_{line} = {line};\n+let new_{line} = {line};\n"));
        head + &lines.collect::<String>()
    };
    (0..FILES).map(file).collect()
}

/// What `doctor` finds, without looking.
fn findings() -> Vec<Finding> {
    let found =
        |number: usize| Finding::new(&format!("check {number}"), Fitness::Ok, "as it has to be");
    (0..FINDINGS).map(found).collect()
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
