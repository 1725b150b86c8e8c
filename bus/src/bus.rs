//! Starts the bus and attaches subscribers.

use std::sync::Arc;
use std::time::Duration;

use ropewalk_runtime::{Backoff, Clock, Ids, Supervisor};
use ropewalk_schemas::Slug;
use ropewalk_store::{Store, Subscription};
use tokio::sync::Notify;
use tracing::debug;

use crate::error::BusError;
use crate::hub::{Hub, SubscriberQueue};
use crate::inbox::queue::{Bounds, Queue, ReadScope};
use crate::inbox::{Context, Inbox};
use crate::live::LiveChannel;
use crate::sharing::{self, Shares, SharingOptions};
use crate::tail::Tail;
use crate::transport::embedded::EmbeddedTransport;
use crate::transport::jetstream::{JetStream, Notice};
use crate::transport::{Transport, TransportOptions, TransportStatus};

/// How many deliveries of one subscriber are known at once; the rest waits in the store.
const KNOWN_DELIVERIES: usize = 50_000;
/// How many bytes of events one subscriber's queue keeps at once.
const KEPT_BODY_BYTES: usize = 4 * 1024 * 1024;

/// The services that the bus runs on.
#[derive(Debug, Clone)]
pub struct Services {
    /// Tells the time.
    pub clock: Clock,
    /// Gives jitter.
    pub ids: Ids,
    /// Runs the tasks of the bus.
    pub supervisor: Supervisor,
}

/// Sets how the bus delivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusOptions {
    /// How often the store is searched for deliveries that no signal announced.
    pub sweep_every: Duration,
    /// How long a failed delivery waits.
    pub backoff: Backoff,
    /// How often a delivery is tried before it goes to the dead letters.
    pub tries: u32,
    /// Whether other processes may take the same subscribers at the same time; on a server only.
    pub sharing: Option<SharingOptions>,
    /// The idea whose deliveries are handed out until another process pokes; those of others stay open for the next start.
    /// None for all.
    pub only: Option<Slug>,
}

impl Default for BusOptions {
    fn default() -> Self {
        Self {
            sweep_every: Duration::from_mins(1),
            backoff: Backoff {
                base: Duration::from_secs(1),
                cap: Duration::from_mins(1),
            },
            tries: 5,
            sharing: None,
            only: None,
        }
    }
}

/// Asks for the deliveries of a subscription.
#[derive(Debug, Clone)]
pub struct Consumer {
    /// Who takes what, and from where a new subscriber begins.
    pub subscription: Subscription,
    /// How many deliveries may be unfinished at once.
    pub in_flight: usize,
    /// Whether its deliveries wait while subscribers that do not yield have too much to do.
    pub yields: bool,
}

/// Delivers what is committed to the store; cheap to clone.
#[derive(Debug, Clone)]
pub struct Bus {
    context: Arc<Context>,
    live: LiveChannel,
    tail: Tail,
    /// Tells the tail that another process has committed something.
    poked: Arc<Notify>,
}

impl Bus {
    /// Starts to deliver what `store` holds.
    pub async fn start(
        store: Store,
        transport: TransportOptions,
        services: Services,
        options: BusOptions,
    ) -> Result<Self, BusError> {
        let hub = Arc::new(Hub::default());
        let Services {
            clock,
            ids,
            supervisor,
        } = services;
        let (transport, live): (Arc<dyn Transport>, LiveChannel) = match transport {
            TransportOptions::Embedded => (
                Arc::new(EmbeddedTransport::start(&store, &hub, &supervisor).await?),
                LiveChannel::local(),
            ),
            TransportOptions::JetStream(options) => {
                let jetstream =
                    JetStream::start(options, &store, &hub, &clock, &ids, &supervisor).await?;
                let live = jetstream.live().clone();
                (Arc::new(jetstream), live)
            }
        };
        let stop = supervisor.shutdown().soft().clone();
        let shares = options
            .sharing
            .map(|sharing| share(&sharing, &store, &hub, &clock, &supervisor));
        let poked = Arc::default();
        let tail = Tail::start(
            store.clone(),
            Arc::clone(&poked),
            clock.clone(),
            &supervisor,
        );
        let context = Arc::new(Context {
            store,
            hub,
            transport,
            clock,
            ids,
            stop,
            backoff: options.backoff,
            tries: options.tries.max(1),
            only: options.only,
            shares,
        });
        let bus = Self {
            context,
            live,
            tail,
            poked,
        };
        bus.sweep_every(options.sweep_every, &supervisor);
        Ok(bus)
    }

    /// Registers a subscription and returns its inbox, which begins with what is open already.
    pub async fn consume(&self, consumer: Consumer) -> Result<Inbox, BusError> {
        let Consumer {
            subscription,
            in_flight,
            yields,
        } = consumer;
        let bounds = Bounds {
            in_flight: in_flight.max(1),
            entries: KNOWN_DELIVERIES,
            body_bytes: KEPT_BODY_BYTES,
        };
        let queue = Queue::new(bounds, self.context.only.clone());
        let subscriber = subscription.name.clone();
        let shared = Arc::new(SubscriberQueue::new(subscriber, queue, yields));
        if !self.context.hub.add(Arc::clone(&shared)) {
            return Err(BusError::AlreadyConsumed(subscription.name));
        }
        // From here on the drop of the inbox cleans up.
        let inbox = Inbox::new(shared, Arc::clone(&self.context));
        self.context
            .store
            .subscribe(&subscription)
            .await
            .map_err(|source| BusError::Subscribe {
                subscriber: subscription.name.clone(),
                source,
            })?;
        self.context.transport.attach(&subscription).await?;
        Ok(inbox)
    }

    /// Looks at the store now: another process has committed something.
    pub fn poke(&self) {
        self.context.hub.attend_to_all();
        self.context.transport.poke();
        self.poked.notify_one();
    }

    /// Waits until the broker, if there is one, has everything that is committed by now.
    pub async fn flush(&self) {
        self.context.transport.flush().await;
    }

    /// Returns the store whose deliveries it hands out.
    pub(crate) fn store(&self) -> &Store {
        &self.context.store
    }

    /// Returns every event by its position, whoever committed it.
    pub fn tail(&self) -> &Tail {
        &self.tail
    }

    /// Returns the ephemeral events.
    pub fn live(&self) -> &LiveChannel {
        &self.live
    }

    /// Says how the transport is doing.
    pub fn status(&self) -> TransportStatus {
        self.context.transport.status()
    }

    /// Lists what happened to the broker that somebody should know, the oldest first.
    pub fn notices(&self) -> Vec<Notice> {
        self.context.transport.notices()
    }

    fn sweep_every(&self, period: Duration, supervisor: &Supervisor) {
        let context = Arc::clone(&self.context);
        supervisor.spawn("bus.sweep", async move {
            loop {
                tokio::select! {
                    () = context.stop.cancelled() => return,
                    () = context.clock.sleep(period) => {}
                }
                debug!("sweeping the open deliveries");
                context.hub.want(ReadScope::All);
                context.transport.sweep().await;
            }
        });
    }
}

/// Begins to share the subscribers of this process with others.
fn share(
    sharing: &SharingOptions,
    store: &Store,
    hub: &Arc<Hub>,
    clock: &Clock,
    supervisor: &Supervisor,
) -> Arc<Shares> {
    let shares = Arc::new(Shares::new(store, sharing));
    let stop = supervisor.shutdown().soft().clone();
    let keeper = Arc::clone(&shares).keep(clock.clone(), stop.clone());
    supervisor.spawn("bus.claims", keeper);
    let follower = sharing::follow(Arc::clone(hub), store.feed(), stop);
    supervisor.spawn("bus.others", follower);
    shares
}
