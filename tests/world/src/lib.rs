//! The worlds that tests of the frame and of all that stands on it live in: a store, a bus and what agents share, a
//! provider of models that is asked over HTTP, and waits that end.
//!
//! What it is not: it starts no agent and knows none, so that the frame's own tests can use it as well. What needs
//! neither store nor bus, such as servers and git repositories, is in `ropewalk-tests`.
//!
//! To add what one more test wants otherwise: a method of [`Plan`], with what all others keep as its default. What the tests of
//! one crate add to a [`World`] is a type of their own, named by that: `BotWorld`, `FrameWorld`, `ServerWorld`.

pub mod likeness;
pub mod patience;
pub mod provider;
pub mod questions;

use std::path::Path;
use std::time::Duration;

use ropewalk_bus::{Bus, BusError, BusOptions, TransportOptions};
use ropewalk_config::questions::FILES;
use ropewalk_config::{ConfigError, QuestionTemplates};
use ropewalk_orchestrator::{Context, Registry, Services, Suspects};
use ropewalk_runtime::{Clock, Ids, Shutdown, Supervisor, TaskFailure};
use ropewalk_schemas::{ComponentName, InvalidId};
use ropewalk_store::{CommitError, Location, OpenError, Store};
use ropewalk_tests::labels::reworded;

/// How long the parts of a world may take to end.
const DRAIN: Duration = Duration::from_mins(1);

/// A store with a bus on it, and what agents share.
pub struct World {
    /// What agents share.
    pub services: Services,
    /// Keeps whatever runs beside the test.
    pub supervisor: Supervisor,
}

/// What a world is to be like.
#[derive(Debug)]
pub struct Plan {
    clock: Clock,
    ids: Ids,
    transport: TransportOptions,
    suspects: Suspects,
}

/// Says why there is no world.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// The directory of the database cannot be made.
    #[error("cannot make a directory: {0}")]
    Directory(#[from] std::io::Error),
    /// The database cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The bus cannot be started.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// A part crashed.
    #[error(transparent)]
    Task(#[from] TaskFailure),
    /// These parts did not end in time and were cut off.
    #[error("{0:?} ran on")]
    Late(Vec<&'static str>),
    /// The store cannot be closed.
    #[error(transparent)]
    Close(#[from] CommitError),
}

impl Plan {
    /// A world at the time of `clock`, in which the same test makes the same ids.
    pub fn at(clock: &Clock) -> Self {
        Self::with_ids(clock, Ids::seeded(1, clock.clone()))
    }

    /// A world at the time of `clock`, with ids like those of no other.
    pub fn unlike_any_other(clock: &Clock) -> Self {
        Self::with_ids(clock, Ids::system(clock.clone()))
    }

    /// A world at the time of `clock` that goes on with `ids`.
    pub fn with_ids(clock: &Clock, ids: Ids) -> Self {
        Self {
            clock: clock.clone(),
            ids,
            transport: TransportOptions::Embedded,
            suspects: Suspects::default(),
        }
    }

    /// Brings events by another transport than the embedded one.
    #[must_use]
    pub fn over(self, transport: TransportOptions) -> Self {
        Self { transport, ..self }
    }

    /// Counts what the process before died of.
    #[must_use]
    pub fn counting(self, suspects: Suspects) -> Self {
        Self { suspects, ..self }
    }

    /// Opens it on the database in `directory`; makes both where they are not there.
    pub async fn open(self, directory: &Path) -> Result<World, WorldError> {
        std::fs::create_dir_all(directory)?;
        let location = Location::Sqlite(directory.join("ropewalk.db"));
        let clock = self.clock;
        let store = Store::open(&location, clock.clone()).await?;
        let supervisor = Supervisor::new(Shutdown::new());
        let of_bus = ropewalk_bus::Services {
            clock: clock.clone(),
            ids: self.ids.clone(),
            supervisor: supervisor.clone(),
        };
        let options = BusOptions::default();
        let bus = Bus::start(store.clone(), self.transport, of_bus, options).await?;
        let services = Services {
            store,
            bus,
            registry: Registry::new(clock.clone(), "test").counting(self.suspects),
            clock,
            ids: self.ids,
        };
        Ok(World {
            services,
            supervisor,
        })
    }
}

impl World {
    /// Returns a context in which `name` speaks.
    pub fn context(&self, name: &str) -> Result<Context, InvalidId> {
        Ok(Context::new(&self.services, ComponentName::parse(name)?))
    }

    /// Stops in order and closes the store.
    pub async fn close(&self) -> Result<(), WorldError> {
        self.supervisor.shutdown().begin();
        self.end().await
    }

    /// Drops what is in hand, as a crash would, and closes the store.
    pub async fn crash(&self) -> Result<(), WorldError> {
        self.supervisor.shutdown().abort();
        self.end().await
    }

    async fn end(&self) -> Result<(), WorldError> {
        let late = self.supervisor.drain(DRAIN).await?;
        if !late.is_empty() {
            return Err(WorldError::Late(late));
        }
        Ok(self.services.store.clone().close().await?)
    }
}

/// Returns the shipped templates of questions, with labels that mean nothing.
pub fn templates() -> Result<QuestionTemplates, ConfigError> {
    let files = FILES.map(|(name, text)| (name, reworded(text)));
    let files = files.iter().map(|(name, text)| (*name, text.as_str()));
    QuestionTemplates::read(files)
}
