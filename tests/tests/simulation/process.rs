//! One life of the simulated process, on a store that outlives it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ropewalk_bus::{Bus, BusOptions, TransportOptions};
use ropewalk_orchestrator::{Context, Frame, Registry, Services};
use ropewalk_runtime::{Clock, Ids, Shutdown, Supervisor};
use ropewalk_schemas::ComponentName;
use ropewalk_store::{Location, Store};

use crate::actors::{Actor, Stage};

pub(crate) struct Process {
    pub(crate) services: Services,
    pub(crate) stage: Arc<Stage>,
    supervisor: Supervisor,
}

impl Process {
    pub(crate) async fn start(directory: &Path, clock: &Clock, ids: &Ids) -> anyhow::Result<Self> {
        let location = Location::Sqlite(directory.join("ropewalk.db"));
        let store = Store::open(&location, clock.clone()).await?;
        let supervisor = Supervisor::new(Shutdown::new());
        let bus_services = ropewalk_bus::Services {
            clock: clock.clone(),
            ids: ids.clone(),
            supervisor: supervisor.clone(),
        };
        let options = BusOptions::default();
        let transport = TransportOptions::Embedded;
        let bus = Bus::start(store.clone(), transport, bus_services, options).await?;
        let services = Services {
            store,
            bus,
            clock: clock.clone(),
            ids: ids.clone(),
            registry: Registry::new(clock.clone(), "simulation"),
        };
        let stage = Arc::new(Stage::default());
        Frame::start(&services, Actor::all(&stage)?, &supervisor).await?;
        Ok(Self {
            services,
            stage,
            supervisor,
        })
    }

    pub(crate) fn context(&self) -> anyhow::Result<Context> {
        Ok(Context::new(
            &self.services,
            ComponentName::parse("people")?,
        ))
    }

    /// Ends it where it stands: what is not committed is gone.
    pub(crate) async fn crash(self) -> anyhow::Result<()> {
        self.supervisor.shutdown().abort();
        self.supervisor.drain(Duration::from_mins(1)).await?;
        Ok(())
    }
}
