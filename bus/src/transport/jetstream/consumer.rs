//! Receives the messages of one subscriber through its durable consumer.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::{AckKind, Message};
use futures::StreamExt;
use ropewalk_schemas::advice::Words;
use ropewalk_store::{DeliveryFilter, DeliveryState, ReadError, Store, Subscription};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::held::{KeepOutcome, PendingMessages, acknowledge};
use super::link::Link;
use super::notices::{Notice, NoticeKind};
use super::publisher::Signals;
use super::wire::{self, Announcement};
use super::words::chain;
use crate::error::BusError;
use crate::hub::{Hub, SubscriberQueue};
use crate::inbox::queue::ReadScope;

/// How many messages may be unacknowledged: those of everything that waits behind a delivery that is retried.
const MAX_ACK_PENDING: u16 = 10_000;
/// How long one request for messages stands; a silent server is noticed after two heartbeats of it.
const PULL_EXPIRES: Duration = Duration::from_secs(30);
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Keeps the consumer of one subscriber going.
#[derive(Debug)]
pub(super) struct ConsumerLoop {
    pub(super) link: Arc<Link>,
    pub(super) store: Store,
    pub(super) hub: Arc<Hub>,
    pub(super) signals: Arc<Signals>,
    pub(super) subscription: Subscription,
    pub(super) held: Arc<PendingMessages>,
    pub(super) stop: CancellationToken,
}

impl ConsumerLoop {
    /// Receives until the inbox is dropped or the process is asked to stop.
    pub(super) async fn run(self, opened: Option<pull::Stream>) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = self.receive_for_ever(opened) => {}
        }
    }

    async fn receive_for_ever(&self, mut opened: Option<pull::Stream>) {
        let mut failed = 0;
        loop {
            let messages = if let Some(messages) = opened.take() {
                Ok(messages)
            } else {
                // What the broker cannot hand out now is open in the store, and need not wait for it.
                self.want(ReadScope::All);
                self.open().await
            };
            match messages {
                Ok(messages) => {
                    failed = 0;
                    self.receive(messages).await;
                }
                Err(error) => {
                    failed += 1;
                    self.link.health().down(&Words::of(&error).to_string());
                }
            }
            tokio::time::sleep(self.link.pause(failed)).await;
        }
    }

    /// Makes the stream and the consumer if they are not there, and begins to ask for messages.
    pub(super) async fn open(&self) -> Result<pull::Stream, BusError> {
        let (stream, new) = self.link.stream().await?;
        if new {
            self.signals.rebuild();
        }
        let asked = self.config();
        let name = self.name();
        let failed = |reason: String| {
            self.link.explain(BusError::Broker {
                action: format!("open the consumer `{name}`"),
                reason,
            })
        };
        let consumer = stream
            .create_consumer(asked.clone())
            .await
            .map_err(|error| failed(chain(&error)))?;
        if let Some((field, asked, kept)) = difference(&asked, &consumer.cached_info().config) {
            return Err(BusError::Configuration {
                name,
                field,
                asked,
                kept,
            });
        }
        consumer
            .stream()
            .expires(PULL_EXPIRES)
            .heartbeat(HEARTBEAT)
            .messages()
            .await
            .map_err(|error| failed(chain(&error)))
    }

    /// Receives until something is wrong with the consumer or the connection is a new one.
    async fn receive(&self, mut messages: pull::Stream) {
        let mut connections = self.link.health().connections();
        connections.mark_unchanged();
        let mut progress = tokio::time::interval(self.link.options().ack_wait / 3);
        // What came while nobody listened is open in the store.
        self.want(ReadScope::All);
        let mut silence = Silence::default();
        loop {
            tokio::select! {
                message = messages.next() => match message {
                    Some(Ok(message)) => {
                        silence = Silence::default();
                        self.received(message).await;
                    }
                    Some(Err(error)) => {
                        warn!("the consumer `{}` failed, opening it anew: {error}", self.name());
                        return;
                    }
                    None => return,
                },
                changed = connections.changed() => {
                    if changed.is_ok() {
                        debug!("connected again, opening the consumer `{}` anew", self.name());
                    }
                    return;
                }
                _ = progress.tick() => self.held.in_progress().await,
                () = self.held.doubt.notified() => {
                    if silence.lasts(self.waiting().await) {
                        self.remove().await;
                        return;
                    }
                }
            }
        }
    }

    /// Counts the messages that the consumer could hand out right now; 0 when that cannot be told.
    async fn waiting(&self) -> u64 {
        let stream = wire::stream_name(&self.link.options().project);
        let found = self
            .link
            .context()
            .get_consumer_from_stream::<pull::Config, _, _>(self.name(), stream)
            .await;
        match found {
            Ok(consumer) => {
                let info = consumer.cached_info();
                let full = info.num_ack_pending >= MAX_ACK_PENDING.into();
                if full { 0 } else { info.num_pending }
            }
            Err(error) => {
                debug!("cannot look at the consumer `{}`: {error}", self.name());
                0
            }
        }
    }

    /// Removes a consumer that hands nothing out; the next opening makes it anew.
    async fn remove(&self) {
        let name = self.name();
        self.link.notices().add(Notice {
            at: self.link.now(),
            kind: NoticeKind::SilentConsumer,
            text: format!("the consumer `{name}` has messages and is silent, making it anew"),
        });
        let stream = wire::stream_name(&self.link.options().project);
        let removed = self
            .link
            .context()
            .delete_consumer_from_stream(&name, stream)
            .await;
        if let Err(error) = removed {
            warn!("cannot remove the consumer `{name}`: {error}");
        }
    }

    /// Wakes the inbox if the delivery of the message is open, else acknowledges it.
    async fn received(&self, message: Message) {
        let (message, acker) = message.split();
        let announced = wire::announced(message.headers.as_ref(), &message.payload);
        let Some((announced, sequence)) = self.placed(announced).await else {
            warn!(
                "dropped a message on `{}` that is no event of ours",
                message.subject
            );
            acknowledge(&acker, AckKind::Ack).await;
            return;
        };
        let Some(shared) = self.hub.get(&self.subscription.name) else {
            return;
        };
        let takes =
            |event: &Announcement| self.subscription.takes(&event.event_type, &event.source);
        if !takes(&announced) {
            acknowledge(&acker, AckKind::Ack).await;
            return;
        }
        match self.held.keep(sequence, acker) {
            KeepOutcome::Settled(acker) => return acknowledge(&acker, AckKind::Ack).await,
            KeepOutcome::Instead(replaced) => acknowledge(&replaced, AckKind::Ack).await,
            KeepOutcome::Alone => {}
        }
        match self.is_open(&shared, sequence).await {
            Ok(true) => {}
            Ok(false) => self.held.settle(sequence).await,
            Err(error) => warn!(
                "cannot look up delivery `{sequence}`: {}",
                Words::of(&error)
            ),
        }
    }

    /// Finds where in the store an event lies that was announced; `None` where it is none of ours. A message that cannot be
    /// looked up counts as none: its delivery is open in the store, and the next sweep finds it there.
    async fn placed(&self, announced: Option<Announcement>) -> Option<(Announcement, i64)> {
        let announced = announced?;
        let sequence = match announced.sequence {
            Some(sequence) => sequence,
            // Whoever passed it on as one document left our headers out.
            None => self.store.event(announced.id).await.ok()??.sequence,
        };
        Some((announced, sequence))
    }

    /// Returns whether the delivery is open, and asks for a read of the store when the inbox does not know it.
    async fn is_open(&self, shared: &SubscriberQueue, sequence: i64) -> Result<bool, ReadError> {
        let (known, newer) = {
            let queue = shared.queue();
            (queue.knows(sequence), sequence > queue.highest())
        };
        if known {
            return Ok(true);
        }
        if newer {
            shared.want(ReadScope::Newer);
            return Ok(true);
        }
        // Handled already, or opened again behind the inbox's back.
        let filter = DeliveryFilter {
            subscriber: Some(self.subscription.name.clone()),
            states: vec![DeliveryState::Open],
            after_sequence: Some(sequence - 1),
            limit: Some(1),
            ..DeliveryFilter::default()
        };
        let rows = self.store.deliveries(&filter).await?;
        let open = rows.iter().any(|row| row.key.sequence == sequence);
        if open && !shared.queue().knows(sequence) {
            shared.want(ReadScope::All);
        }
        Ok(open)
    }

    fn want(&self, wanted: ReadScope) {
        if let Some(shared) = self.hub.get(&self.subscription.name) {
            shared.want(wanted);
        }
    }

    fn name(&self) -> String {
        wire::consumer_name(&self.subscription.name)
    }

    fn config(&self) -> pull::Config {
        pull::Config {
            durable_name: Some(self.name()),
            // What is older is read from the store.
            deliver_policy: DeliverPolicy::New,
            ack_policy: AckPolicy::Explicit,
            ack_wait: self.link.options().ack_wait,
            max_deliver: -1,
            max_ack_pending: MAX_ACK_PENDING.into(),
            filter_subjects: wire::filters(
                &self.link.options().project,
                &self.subscription.patterns,
            ),
            ..pull::Config::default()
        }
    }
}

/// How long a consumer has handed nothing out although it could.
#[derive(Debug, Default)]
struct Silence {
    looks: u32,
}

impl Silence {
    /// Notes one look; two in a row with messages waiting and none received are no accident.
    fn lasts(&mut self, waiting: u64) -> bool {
        self.looks = if waiting == 0 { 0 } else { self.looks + 1 };
        self.looks >= 2
    }
}

/// Names the first field that the server keeps otherwise.
fn difference(
    asked: &pull::Config,
    kept: &async_nats::jetstream::consumer::Config,
) -> Option<(&'static str, String, String)> {
    let filters = |single: &str, many: &[String]| {
        let mut filters = many.to_vec();
        if !single.is_empty() {
            filters.push(single.to_owned());
        }
        filters.sort_unstable();
        format!("{filters:?}")
    };
    let fields = [
        (
            "filter_subjects",
            filters(&asked.filter_subject, &asked.filter_subjects),
            filters(&kept.filter_subject, &kept.filter_subjects),
        ),
        (
            "ack_wait",
            format!("{:?}", asked.ack_wait),
            format!("{:?}", kept.ack_wait),
        ),
        (
            "max_deliver",
            asked.max_deliver.to_string(),
            kept.max_deliver.to_string(),
        ),
        (
            "max_ack_pending",
            asked.max_ack_pending.to_string(),
            kept.max_ack_pending.to_string(),
        ),
    ];
    fields.into_iter().find(|(_, asked, kept)| asked != kept)
}
