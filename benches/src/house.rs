//! Opens a store and a bus in a directory of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use ropewalk_bus::{Bus, TransportOptions};
use ropewalk_orchestrator::{Registry, Services};
use ropewalk_runtime::{Clock, Ids, Supervisor};
use ropewalk_store::{Location, Store};
use ropewalk_world::{Plan, World};
use tempfile::TempDir;

/// How long the tasks of a bus may take to end.
const DRAIN: Duration = Duration::from_secs(10);

/// A store and a bus that runs on it.
pub(crate) struct House {
    pub(crate) store: Store,
    pub(crate) bus: Bus,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
    pub(crate) supervisor: Supervisor,
}

impl House {
    /// Opens the database in `directory` and starts a bus.
    pub(crate) async fn open(directory: &Path, transport: TransportOptions) -> Result<Self> {
        let plan = Plan::unlike_any_other(&Clock::system()).over(transport);
        let World {
            services,
            supervisor,
        } = plan.open(directory).await?;
        Ok(Self {
            store: services.store,
            bus: services.bus,
            clock: services.clock,
            ids: services.ids,
            supervisor,
        })
    }

    /// Returns what agents work with.
    pub(crate) fn services(&self) -> Services {
        Services {
            store: self.store.clone(),
            bus: self.bus.clone(),
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            registry: Registry::new(self.clock.clone(), "bench"),
        }
    }

    /// Stops in order.
    pub(crate) async fn close(self) -> Result<()> {
        self.supervisor.shutdown().begin();
        self.supervisor.drain(DRAIN).await?;
        self.store.close().await?;
        Ok(())
    }
}

/// Makes a directory on the disk of the current directory: what lies in memory is never written through.
pub(crate) fn directory() -> Result<TempDir> {
    Ok(tempfile::Builder::new()
        .prefix("ropewalk-bench-")
        .tempdir()?)
}

/// Names the database in `directory`.
pub(crate) fn database(directory: &Path) -> PathBuf {
    directory.join("ropewalk.db")
}

/// Opens the database in `directory`; makes it when it is not there.
pub(crate) async fn store(directory: &Path) -> Result<Store> {
    let location = Location::Sqlite(database(directory));
    Ok(Store::open(&location, Clock::system()).await?)
}

/// Makes the tables in `directory` and leaves them to somebody else.
pub(crate) async fn tables(directory: &Path) -> Result<()> {
    store(directory).await?.close().await?;
    Ok(())
}
