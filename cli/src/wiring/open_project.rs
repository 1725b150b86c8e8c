//! Lets a verb read and commit beside whatever process runs the agents.

use std::path::Path;
use std::time::Duration;

use ropewalk_bus::{Poker, Services as BusServices};
use ropewalk_desk::halt::{self, HaltError};
use ropewalk_desk::people::Person;
use ropewalk_orchestrator::{Context, Registry, Services};
use ropewalk_runtime::{Brake, Clock, Ids, Shutdown, Supervisor};
use ropewalk_schemas::ComponentName;
use ropewalk_store::{Location, Store};

use super::{enter_state, processes, transport};
use crate::error::CliError;
use crate::project::{self, Project};

/// How often a verb looks whether what it asked for has happened.
pub(super) const LOOK: Duration = Duration::from_millis(200);

/// Who the events of verbs come from.
pub(super) const SOURCE: &str = "cli";

/// The project that a verb works on, with its store open, and the means to wake who consumes.
pub struct OpenProject {
    /// The project.
    pub project: Project,
    /// The truth.
    pub store: Store,
    /// The time.
    pub clock: Clock,
    services: Services,
    supervisor: Supervisor,
    source: ComponentName,
}

impl OpenProject {
    /// Opens the store of a project; starts nothing that consumes.
    pub async fn open(project: Project) -> Result<Self, CliError> {
        let clock = Clock::system();
        let ids = Ids::system(clock.clone());
        let store = open_store(&project, &clock).await?;
        let supervisor = Supervisor::new(Shutdown::new());
        let bus_services = BusServices {
            clock: clock.clone(),
            ids: ids.clone(),
            supervisor: supervisor.clone(),
        };
        let bus = transport::quiet_bus(&store, bus_services).await?;
        let registry = Registry::new(clock.clone(), SOURCE);
        let services = Services {
            store: store.clone(),
            bus,
            clock: clock.clone(),
            ids,
            registry,
        };
        Ok(Self {
            project,
            store,
            clock,
            services,
            supervisor,
            source: ComponentName::parse(SOURCE)?,
        })
    }

    /// Returns a context in which a person begins a chain of events.
    pub fn context(&self) -> Context {
        Context::new(&self.services, self.source.clone())
    }

    /// Returns what holds the commands of this verb while everything is stopped; refused where that is so already.
    pub async fn brake(&self) -> Result<Brake, CliError> {
        if let Some(standing) = halt::standing(&self.store).await? {
            return Err(HaltError::Already(Box::new(standing)).into());
        }
        Ok(super::halt::brake(&self.store, &self.clock, &self.supervisor).await?)
    }

    /// Returns who sits at the keyboard.
    pub fn person(&self) -> Result<&Person, CliError> {
        self.project.person()
    }

    /// Wakes the process that consumes; answers whether there is one.
    pub fn poke(&self) -> Result<bool, CliError> {
        awake(self.project.state())
    }

    /// Wakes the process that consumes, or says that none runs.
    pub fn poke_or_say(&self, output: &crate::output::Output) -> Result<bool, CliError> {
        let running = self.poke()?;
        if !running {
            output.note("recorded; nothing runs yet: start `ropewalk up`")?;
        }
        Ok(running)
    }

    /// Closes the store.
    pub async fn close(self) -> Result<(), CliError> {
        self.supervisor.shutdown().begin();
        self.supervisor.drain(LOOK).await?;
        Ok(self.store.close().await?)
    }

    /// Waits a moment before the next look at the store.
    pub async fn pause(&self) {
        self.clock.sleep(LOOK).await;
    }

    /// Looks again and again until `look` finds something, at most `limit`; `None` when the time is over.
    pub async fn wait_for<T, F>(
        &self,
        limit: Duration,
        mut look: impl FnMut() -> F,
    ) -> Result<Option<T>, CliError>
    where
        F: Future<Output = Result<Option<T>, CliError>>,
    {
        let deadline = self.clock.now() + limit;
        loop {
            if let Some(found) = look().await? {
                return Ok(Some(found));
            }
            if self.clock.now() >= deadline {
                return Ok(None);
            }
            self.pause().await;
        }
    }
}

/// Wakes the process that consumes from `state`; answers whether any does. Processes that share the deliveries hear of
/// a commit from the database.
pub(crate) fn awake(state: &Path) -> Result<bool, CliError> {
    Ok(Poker::poke(state)? || processes::any(state)?)
}

/// Opens the store of a project beside whoever consumes.
async fn open_store(project: &Project, clock: &Clock) -> Result<Store, CliError> {
    let location = location(project)?;
    enter_state(&project.locations)?;
    let store = Store::open(&location, clock.clone()).await?;
    project::claim(&project.locations)?;
    Ok(store)
}

/// Returns where the database of a project lies.
pub(crate) fn location(project: &Project) -> Result<Location, CliError> {
    let location = String::from(project.config().store.location.clone());
    Ok(Location::parse(&location, project.state())?)
}
