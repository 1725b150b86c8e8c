//! What the contract suite and the tests of the broker share.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use async_nats::ToServerAddrs;
use async_nats::jetstream::{self, stream::Stream};
use ropewalk_bus::{
    Bus, BusOptions, Consumer, Delivery, Inbox, JetStreamOptions, Services, TransportOptions,
    TransportStatus,
};
use ropewalk_runtime::{Backoff, Clock, Ids, Shutdown, Supervisor};
use ropewalk_schemas::payload::{AlertCleared, BuildRequest, ComponentDown, TaskRetry};
use ropewalk_schemas::{
    BuildId, ComponentName, Event, Payload, Priority, ProjectName, Subject, TaskId,
};
use ropewalk_store::{ChangeSet, CommitOutcome, Location, Store, Subscription};
use ropewalk_tests::servers::NatsServer;
use tempfile::TempDir;

/// How long a test waits for something that must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(45);

/// How long a broker may take to be found gone or back, and a cluster to choose its leaders, on a busy machine.
pub(crate) const ELECTION: Duration = Duration::from_mins(1);

/// A state directory, and a broker if the transport under test has one.
pub(crate) struct World {
    pub(crate) directory: TempDir,
    pub(crate) nats: Option<NatsServer>,
    pub(crate) options: BusOptions,
    ids: Ids,
}

impl World {
    pub(crate) fn embedded() -> Result<Self> {
        Ok(Self {
            directory: tempfile::tempdir()?,
            nats: None,
            options: BusOptions {
                // No test lasts so long: what was lost is not found by a sweep, unless the test is about that.
                sweep_every: Duration::from_hours(1),
                backoff: Backoff {
                    base: Duration::from_millis(20),
                    cap: Duration::from_millis(100),
                },
                tries: 5,
                sharing: None,
                only: None,
            },
            ids: Ids::system(Clock::system()),
        })
    }

    pub(crate) fn jetstream() -> Result<Self> {
        Ok(Self {
            nats: Some(NatsServer::start()?),
            ..Self::embedded()?
        })
    }

    pub(crate) fn database(&self) -> std::path::PathBuf {
        self.directory.path().join("ropewalk.db")
    }

    /// Opens the database as another process would.
    pub(crate) async fn store(&self) -> Result<Store> {
        let location = Location::Sqlite(self.database());
        Ok(Store::open(&location, Clock::system()).await?)
    }

    pub(crate) fn transport(&self) -> Result<TransportOptions> {
        Ok(match &self.nats {
            None => TransportOptions::Embedded,
            Some(nats) => TransportOptions::JetStream(jetstream_options(nats)?),
        })
    }

    /// Starts a bus as a process would.
    pub(crate) async fn start(&self) -> Result<RunningBus> {
        let store = self.store().await?;
        RunningBus::start(store, self.transport()?, self.options.clone()).await
    }

    /// Starts the bus where time stands still, so that nobody looks by themselves.
    pub(crate) async fn start_without_time(&self) -> Result<RunningBus> {
        let (store, clock) = (self.store().await?, Clock::manual(Clock::system().now()));
        RunningBus::start_at(store, self.transport()?, self.options.clone(), clock).await
    }

    /// Returns an event about `subject`.
    pub(crate) fn event(&self, subject: &str, payload: Payload) -> Result<Event> {
        Ok(Event {
            id: self.ids.next().into(),
            source: name("loop-1")?,
            subject: Subject::parse(subject)?,
            time: Clock::system().now(),
            correlation_id: self.ids.next().into(),
            causation_id: None,
            hop: 0,
            traceparent: None,
            priority: Priority::DEFAULT,
            payload,
        })
    }

    /// Commits one `task.retry` about `subject`.
    pub(crate) async fn emit(&self, store: &Store, subject: &str, guidance: &str) -> Result<i64> {
        let event = self.event(subject, retry(guidance)?)?;
        let committed = commit(store, [event]).await?;
        sequence(&committed)
    }
}

pub(crate) fn jetstream_options(nats: &NatsServer) -> Result<JetStreamOptions> {
    Ok(JetStreamOptions::new(
        nats.url(),
        ProjectName::parse("contract")?,
    ))
}

/// A bus with what it runs on.
pub(crate) struct RunningBus {
    pub(crate) bus: Bus,
    pub(crate) store: Store,
    pub(crate) supervisor: Supervisor,
}

impl RunningBus {
    pub(crate) async fn start(
        store: Store,
        transport: TransportOptions,
        options: BusOptions,
    ) -> Result<Self> {
        Self::start_at(store, transport, options, Clock::system()).await
    }

    /// Starts one whose time is that of `clock`.
    pub(crate) async fn start_at(
        store: Store,
        transport: TransportOptions,
        options: BusOptions,
        clock: Clock,
    ) -> Result<Self> {
        let supervisor = Supervisor::new(Shutdown::new());
        let services = Services {
            clock,
            ids: Ids::system(Clock::system()),
            supervisor: supervisor.clone(),
        };
        let bus = Bus::start(store.clone(), transport, services, options).await?;
        Ok(Self {
            bus,
            store,
            supervisor,
        })
    }

    pub(crate) async fn consume(&self, name: &str, types: &[&str]) -> Result<Inbox> {
        self.consume_at_most(name, types, 64).await
    }

    pub(crate) async fn consume_at_most(
        &self,
        name: &str,
        types: &[&str],
        in_flight: usize,
    ) -> Result<Inbox> {
        let subscription = subscription(name, types)?;
        Ok(self
            .bus
            .consume(Consumer {
                subscription,
                in_flight,
                yields: false,
            })
            .await?)
    }

    /// Stops as a process does that is asked to.
    pub(crate) async fn stop(self) -> Result<()> {
        self.supervisor.shutdown().begin();
        let late = self.supervisor.drain(PATIENCE).await?;
        ensure!(late.is_empty(), "{late:?} ran on");
        drop(self.bus);
        self.store.close().await?;
        Ok(())
    }
}

pub(crate) fn name(text: &str) -> Result<ComponentName> {
    Ok(ComponentName::parse(text)?)
}

pub(crate) fn subscription(subscriber: &str, types: &[&str]) -> Result<Subscription> {
    Ok(Subscription::new(name(subscriber)?, types.iter().copied()))
}

/// Waits for the next delivery, or fails the test.
pub(crate) async fn next(inbox: &mut Inbox) -> Result<Delivery> {
    let subscriber = inbox.subscriber().clone();
    tokio::time::timeout(PATIENCE, inbox.next())
        .await
        .with_context(|| format!("`{subscriber}` got no delivery in time"))?
        .with_context(|| format!("the inbox of `{subscriber}` ended"))
}

/// Fails the test if something is handed out; called when everything that could come has come.
pub(crate) async fn nothing_more(inbox: &mut Inbox) -> Result<()> {
    match tokio::time::timeout(Duration::from_millis(300), inbox.next()).await {
        Err(_elapsed) => Ok(()),
        Ok(None) => bail!("the inbox ended"),
        Ok(Some(delivery)) => bail!("unexpected delivery {delivery:?}"),
    }
}

/// Handles deliveries until `count` are done; answers their sequences in the order handed out.
pub(crate) async fn finish_all(inbox: &mut Inbox, count: usize) -> Result<Vec<i64>> {
    let mut done = Vec::new();
    while done.len() < count {
        let mut delivery = next(inbox).await?;
        done.push(delivery.key().sequence);
        delivery.finish(ChangeSet::new()).await?;
    }
    Ok(done)
}

/// Finishes deliveries until all of `wanted` are done; a second delivery of one fails the test.
pub(crate) async fn finish_each_once(inbox: &mut Inbox, wanted: &BTreeSet<i64>) -> Result<()> {
    let done = finish_all(inbox, wanted.len()).await?;
    let different: BTreeSet<i64> = done.into_iter().collect();
    assert_eq!(different, *wanted, "one was delivered twice");
    Ok(())
}

/// Waits until the status of the bus is as wanted.
pub(crate) async fn status(
    running: &RunningBus,
    wanted: impl Fn(&TransportStatus) -> bool,
) -> Result<()> {
    let reached = async {
        while !wanted(&running.bus.status()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(ELECTION, reached)
        .await
        .with_context(|| format!("the status stayed {:?}", running.bus.status()))
}

/// Opens the stream of the contract on one of these servers.
pub(crate) async fn stream(servers: impl ToServerAddrs) -> Result<Stream> {
    let client = async_nats::connect(servers).await?;
    Ok(jetstream::new(client)
        .get_stream("ropewalk-contract")
        .await?)
}

pub(crate) async fn commit(
    store: &Store,
    events: impl IntoIterator<Item = Event>,
) -> Result<CommitOutcome> {
    let mut changes = ChangeSet::new();
    for event in events {
        changes.emit(event);
    }
    Ok(store.commit(changes).await?)
}

pub(crate) fn sequence(committed: &CommitOutcome) -> Result<i64> {
    let first = committed.events.first().context("no event was committed")?;
    Ok(first.sequence)
}

pub(crate) fn build() -> BuildId {
    uuid::Uuid::from_u128(1).into()
}

pub(crate) fn retry(guidance: &str) -> Result<Payload> {
    Ok(Payload::TaskRetry(TaskRetry {
        build_id: build(),
        task_id: TaskId::parse("T-001")?,
        requested_by: "test".to_owned(),
        may_resume: false,
        guidance: Some(guidance.to_owned()),
    }))
}

pub(crate) fn stop_request() -> Payload {
    Payload::BuildStop(BuildRequest {
        build_id: build(),
        requested_by: "test".to_owned(),
        reason: None,
    })
}

pub(crate) fn component_down() -> Result<Payload> {
    Ok(Payload::ComponentDown(ComponentDown {
        component: name("build")?,
        silent_seconds: 91,
        severity: None,
    }))
}

pub(crate) fn component_back() -> Payload {
    Payload::ComponentDownCleared(AlertCleared {
        cause: "component/build".to_owned(),
        message: "build is back".to_owned(),
    })
}
