//! Carries events over NATS JetStream: a stream per project, a durable consumer per subscriber.
//!
//! A message carries the whole event and wakes its subscriber; the delivery row decides what is handed out, and the
//! message is acknowledged once the row is closed or stored to be tried again. When the broker loses messages, the
//! stream is rebuilt from the store and the inboxes read what is open, so that nothing is lost, only later. While the
//! broker is away they read it whenever it is tried again, so that work goes on.

mod consumer;
mod held;
mod link;
mod live;
mod notices;
mod publisher;
mod stream;
mod sweep;
mod watch;
mod wire;
mod words;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use ropewalk_runtime::{Clock, Ids, Supervisor};
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::{ComponentName, ProjectName};
use ropewalk_store::{Store, Subscription};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::{Transport, TransportStatus};
use crate::error::BusError;
use crate::hub::Hub;
use crate::live::LiveChannel;
use consumer::ConsumerLoop;
use held::PendingMessages;
use link::Link;
pub use notices::{Notice, NoticeKind};
use publisher::{Publisher, Signals};
use sweep::Sweep;
use watch::Watch;

/// Sets how to reach the broker and what the stream keeps.
#[derive(Debug, Clone)]
pub struct JetStreamOptions {
    /// The address, for example `nats://127.0.0.1:4222`; several are separated by commas.
    pub url: String,
    /// The project, which names stream and subjects.
    pub project: ProjectName,
    /// How to log in.
    pub auth: Auth,
    /// A file with further root certificates; given, TLS is demanded.
    pub root_certificates: Option<PathBuf>,
    /// How the subjects of answers begin, where the server lets this user hear only its own.
    pub inbox_prefix: Option<String>,
    /// What to do when the broker is not there at the start.
    pub first_connection: FirstConnection,
    /// What the stream keeps.
    pub stream: StreamOptions,
    /// How long the broker waits for an acknowledgement or a sign of progress.
    pub ack_wait: Duration,
}

impl JetStreamOptions {
    /// Returns the options of a local broker without a login, which must be there.
    pub fn new(url: impl Into<String>, project: ProjectName) -> Self {
        Self {
            url: url.into(),
            project,
            auth: Auth::None,
            root_certificates: None,
            inbox_prefix: None,
            first_connection: FirstConnection::Required,
            stream: StreamOptions::default(),
            ack_wait: Duration::from_secs(30),
        }
    }
}

/// Says how to log in to the broker.
#[derive(Debug, Clone)]
pub enum Auth {
    /// Not at all, or as the address says.
    None,
    /// With an nkey, whose seed lies in a file.
    NkeyFile(PathBuf),
    /// With a credentials file.
    CredentialsFile(PathBuf),
    /// With a token.
    Token(SecretString),
}

/// Says what to do when the broker is not there at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstConnection {
    /// Fail: somebody is there to read it.
    Required,
    /// Go on and try again; the store hands out its events meanwhile.
    Retried,
}

/// Sets what the stream keeps; the oldest messages go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamOptions {
    /// For how long.
    pub max_age: Duration,
    /// How much.
    pub max_bytes: Option<u64>,
    /// On how many servers.
    pub replicas: usize,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self {
            max_age: Duration::from_hours(7 * 24),
            max_bytes: None,
            replicas: 1,
        }
    }
}

/// The broker's side of the bus.
#[derive(Debug)]
pub(crate) struct JetStream {
    link: Arc<Link>,
    store: Store,
    hub: Arc<Hub>,
    supervisor: Supervisor,
    signals: Arc<Signals>,
    sweep: tokio::sync::Mutex<Sweep>,
    watch: Arc<tokio::sync::Mutex<Watch>>,
    live: LiveChannel,
    consumers: Mutex<HashMap<ComponentName, ConsumerHandle>>,
}

#[derive(Debug)]
struct ConsumerHandle {
    held: Arc<PendingMessages>,
    stop: CancellationToken,
}

impl JetStream {
    /// Connects, prepares the stream, and begins to publish what is committed.
    pub(crate) async fn start(
        options: JetStreamOptions,
        store: &Store,
        hub: &Arc<Hub>,
        clock: &Clock,
        ids: &Ids,
        supervisor: &Supervisor,
    ) -> Result<Self, BusError> {
        let link = Arc::new(Link::connect(options, clock.clone(), ids.clone()).await?);
        // A broker that is there and refuses is not waited for.
        if link.is_connected()
            && let Err(error) = link.stream().await
            && (link.options().first_connection == FirstConnection::Required || error.is_lasting())
        {
            return Err(error);
        }
        let signals = Arc::new(Signals::default());
        let publisher = Publisher::new(
            Arc::clone(&link),
            store.clone(),
            Arc::clone(hub),
            Arc::clone(&signals),
        );
        let stop = supervisor.shutdown().soft().clone();
        supervisor.spawn("bus.publish", publisher.run(stop.clone()));
        let (live, outgoing) = LiveChannel::with_remote();
        live::start(&link, &live, outgoing, ids.next(), supervisor);
        let watch = Arc::new(tokio::sync::Mutex::new(Watch::default()));
        supervisor.spawn(
            "bus.watch",
            first_look(Arc::clone(&watch), Arc::clone(&link)),
        );
        Ok(Self {
            sweep: tokio::sync::Mutex::new(Sweep::default()),
            watch,
            link,
            store: store.clone(),
            hub: Arc::clone(hub),
            supervisor: supervisor.clone(),
            signals,
            live,
            consumers: Mutex::default(),
        })
    }

    pub(crate) fn live(&self) -> &LiveChannel {
        &self.live
    }

    fn attached(&self, subscriber: &ComponentName) -> Option<Arc<PendingMessages>> {
        self.lock()
            .get(subscriber)
            .map(|attached| Arc::clone(&attached.held))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ComponentName, ConsumerHandle>> {
        self.consumers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks at once, so that the broker keeps its advisories from the beginning.
async fn first_look(watch: Arc<tokio::sync::Mutex<Watch>>, link: Arc<Link>) {
    watch.lock().await.look(&link).await;
}

#[async_trait]
impl Transport for JetStream {
    async fn attach(&self, subscription: &Subscription) -> Result<(), BusError> {
        let stop = self.supervisor.shutdown().soft().child_token();
        let held = Arc::new(PendingMessages::default());
        let consumer = ConsumerLoop {
            link: Arc::clone(&self.link),
            store: self.store.clone(),
            hub: Arc::clone(&self.hub),
            signals: Arc::clone(&self.signals),
            subscription: subscription.clone(),
            held: Arc::clone(&held),
            stop: stop.clone(),
        };
        // Refused filters or permissions are the caller's to hear of, while somebody is there to read it.
        let opened = match self.link.options().first_connection {
            FirstConnection::Required => Some(consumer.open().await?),
            FirstConnection::Retried => None,
        };
        self.lock()
            .insert(subscription.name.clone(), ConsumerHandle { held, stop });
        self.supervisor.spawn("bus.consume", consumer.run(opened));
        Ok(())
    }

    fn detach(&self, subscriber: &ComponentName) {
        let attached = self.lock().remove(subscriber);
        if let Some(attached) = attached {
            attached.stop.cancel();
        }
    }

    async fn settled(&self, subscriber: &ComponentName, sequence: i64) {
        if let Some(held) = self.attached(subscriber) {
            held.settle(sequence).await;
        }
    }

    fn held(&self, subscriber: &ComponentName) -> Vec<i64> {
        self.attached(subscriber)
            .map(|held| held.sequences())
            .unwrap_or_default()
    }

    async fn sweep(&self) {
        let mut sweep = self.sweep.lock().await;
        if let Err(error) = sweep
            .run(&self.link, &self.store, &self.hub, self.signals.position())
            .await
        {
            warn!("cannot sweep the open deliveries: {}", Words::of(&error));
        }
        drop(sweep);
        self.watch.lock().await.look(&self.link).await;
        for attached in self.lock().values() {
            attached.held.doubt.notify_one();
        }
    }

    fn notices(&self) -> Vec<Notice> {
        self.link.notices().list()
    }

    fn poke(&self) {
        self.signals.look.notify_one();
    }

    async fn flush(&self) {
        publisher::flush(&self.store, &self.signals).await;
    }

    fn status(&self) -> TransportStatus {
        self.link.health().status()
    }
}
