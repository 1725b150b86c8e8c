//! Publishes every committed event to the stream, in the order of the store.
//!
//! The position up to which everything is published is read back from the stream at the start, so that what was
//! committed while no publisher ran, or by processes without one, is published too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream::context::{PublishAckFuture, PublishError, PublishErrorKind};
use async_nats::jetstream::stream::Stream;
use futures::FutureExt;
use ropewalk_runtime::failpoint;
use ropewalk_schemas::advice::Words;
use ropewalk_store::{CommitOutcome, EventFilter, Store, StoredEvent};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, warn};

use super::link::Link;
use super::wire;
use super::words::chain;
use crate::error::BusError;
use crate::hub::Hub;
use crate::inbox::queue::ReadScope;

/// How many messages are on their way to the broker at once.
const BATCH: u32 = 256;
/// How long publishing one batch is tried before the transport counts as down; trying goes on.
const TRY_FOR: Duration = Duration::from_secs(30);
/// How many past events a new stream is given; open deliveries in any case.
const REBUILD_EVENTS: i64 = 10_000;

/// What the parts of the transport tell the publisher, and what it tells them.
#[derive(Debug)]
pub(super) struct Signals {
    /// Somebody else may have committed something, or the stream is new.
    pub(super) look: Notify,
    /// The stream was made anew and lacks what was published.
    pub(super) stream_is_new: AtomicBool,
    /// The sequence up to which everything is published; `None` until the stream was read.
    position: watch::Sender<Option<i64>>,
}

impl Default for Signals {
    fn default() -> Self {
        Self {
            look: Notify::new(),
            stream_is_new: AtomicBool::new(false),
            position: watch::Sender::new(None),
        }
    }
}

impl Signals {
    /// Notes that the stream was made anew.
    pub(super) fn rebuild(&self) {
        self.stream_is_new.store(true, Ordering::SeqCst);
        self.look.notify_one();
    }

    /// Returns the sequence up to which everything is published.
    pub(super) fn position(&self) -> Option<i64> {
        *self.position.borrow()
    }
}

/// Waits until everything that is committed by now is published, or publishing was tried for long enough.
pub(super) async fn flush(store: &Store, signals: &Signals) {
    let latest = match store.last_sequence().await {
        Ok(latest) => latest,
        Err(error) => {
            warn!("cannot tell what is left to publish: {}", Words::of(&error));
            return;
        }
    };
    signals.look.notify_one();
    let mut position = signals.position.subscribe();
    let published = position.wait_for(|position| position.is_some_and(|at| at >= latest));
    if tokio::time::timeout(TRY_FOR, published).await.is_err() {
        warn!("the NATS server does not take the last events; they are safe in the store");
    }
}

/// Publishes what is committed.
pub(super) struct Publisher {
    link: Arc<Link>,
    store: Store,
    hub: Arc<Hub>,
    signals: Arc<Signals>,
}

impl Publisher {
    pub(super) fn new(link: Arc<Link>, store: Store, hub: Arc<Hub>, signals: Arc<Signals>) -> Self {
        Self {
            link,
            store,
            hub,
            signals,
        }
    }

    /// Publishes until the process is asked to stop.
    pub(super) async fn run(self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.follow() => {}
        }
    }

    async fn follow(&self) {
        let mut feed = self.store.feed();
        let mut connections = self.link.health().connections();
        let mut failed = 0;
        let mut behind = true;
        loop {
            if behind {
                if let Err(error) = self.catch_up().await {
                    failed += 1;
                    self.link.health().down(&Words::of(&error).to_string());
                    tokio::time::sleep(self.link.pause(failed)).await;
                    continue;
                }
                failed = 0;
                behind = false;
            }
            let first = tokio::select! {
                () = self.signals.look.notified() => {
                    behind = true;
                    continue;
                }
                Ok(()) = connections.changed() => {
                    self.look_at_the_stream().await;
                    behind = true;
                    continue;
                }
                first = feed.next() => first,
            };
            let mut commits = Vec::new();
            let mut next = Some(first);
            while let Some(item) = next {
                match item {
                    None => return,
                    Some(Err(_lagged)) => behind = true,
                    Some(Ok(commit)) => commits.push(commit),
                }
                let room = commits.len() < BATCH as usize;
                next = room.then(|| feed.next().now_or_never()).flatten();
            }
            if behind || self.publish_commits(&commits).await.is_err() {
                behind = true;
            }
        }
    }

    /// Makes the stream again if the broker came back without it.
    async fn look_at_the_stream(&self) {
        match self.link.stream().await {
            Ok((_, false)) => {}
            Ok((_, true)) => self.signals.rebuild(),
            Err(error) => debug!("the stream cannot be read: {}", Words::of(&error)),
        }
    }

    /// Publishes commits of this process; an error when events of others lie in between, or the broker fails.
    async fn publish_commits(&self, commits: &[Arc<CommitOutcome>]) -> Result<(), BusError> {
        let position = self.signals.position().unwrap_or(0);
        let events: Vec<&StoredEvent> = commits
            .iter()
            .flat_map(|commit| &commit.events)
            .filter(|event| event.sequence > position)
            .collect();
        let in_order = events
            .iter()
            .zip(position + 1..)
            .all(|(event, expected)| event.sequence == expected);
        if in_order {
            self.publish(&events).await
        } else {
            self.catch_up().await
        }
    }

    /// Publishes everything after the position from the store.
    async fn catch_up(&self) -> Result<(), BusError> {
        self.find_position().await?;
        loop {
            let filter = EventFilter {
                after_sequence: self.signals.position(),
                limit: Some(BATCH),
                ..EventFilter::default()
            };
            let events = self.store.events(&filter).await?;
            if events.is_empty() {
                return Ok(());
            }
            self.publish(&events.iter().collect::<Vec<_>>()).await?;
        }
    }

    /// Reads the position from the stream, unless it is known and the stream is still that one.
    async fn find_position(&self) -> Result<(), BusError> {
        let stream_is_new = self.signals.stream_is_new.swap(false, Ordering::SeqCst);
        if self.signals.position().is_some() && !stream_is_new {
            return Ok(());
        }
        let found = self.read_position(stream_is_new).await;
        match found {
            Ok(position) => {
                self.signals.position.send_replace(Some(position));
                Ok(())
            }
            Err(error) => {
                if stream_is_new {
                    self.signals.stream_is_new.store(true, Ordering::SeqCst);
                }
                Err(error)
            }
        }
    }

    async fn read_position(&self, known_new: bool) -> Result<i64, BusError> {
        let (stream, new) = self.link.stream().await?;
        if !new
            && !known_new
            && let Some(position) = self.last_position(&stream).await?
        {
            return Ok(position);
        }
        let latest = self.store.last_sequence().await?;
        let oldest_open = self.store.open_deliveries(None, 0, 1).await?;
        let oldest_open = oldest_open
            .first()
            .map_or(latest, |row| row.key.sequence - 1);
        Ok(oldest_open.min(latest - REBUILD_EVENTS).max(0))
    }

    /// Reads the position that the last message carries, if that message is an event of this store.
    async fn last_position(&self, stream: &Stream) -> Result<Option<i64>, BusError> {
        let last = stream.cached_info().state.last_sequence;
        if stream.cached_info().state.messages == 0 {
            return Ok(None);
        }
        let message = match stream.get_raw_message(last).await {
            Ok(message) => message,
            Err(error) => {
                // Deleted or unreadable: publishing some events again does no harm.
                warn!(
                    "cannot read the last message of the stream: {}",
                    chain(&error)
                );
                return Ok(None);
            }
        };
        let headers = Some(&message.headers);
        let (Some(position), Some(sequence), Some(Ok(id))) = (
            wire::number(headers, wire::POSITION),
            wire::number(headers, wire::SEQUENCE),
            wire::text(headers, "ce-id").map(str::parse),
        ) else {
            return Ok(None);
        };
        let stored = self.store.event(id).await?;
        Ok(stored
            .filter(|stored| stored.sequence == sequence)
            .map(|_| position))
    }

    /// Publishes events and moves the position once the broker has all of them.
    async fn publish(&self, events: &[&StoredEvent]) -> Result<(), BusError> {
        failpoint!("bus.publish.before");
        let begun = Instant::now();
        let mut left: Vec<&StoredEvent> = events.to_vec();
        let mut failed = 0;
        loop {
            let error = match self.publish_once(&mut left).await {
                None => break,
                Some(error) => self.link.explain(error),
            };
            failed += 1;
            if begun.elapsed() >= TRY_FOR {
                return Err(error);
            }
            self.link.try_another_server().await;
            tokio::time::sleep(self.link.pause(failed)).await;
            self.look_at_the_stream().await;
            if self.signals.stream_is_new.load(Ordering::SeqCst) {
                return Err(error);
            }
        }
        if failed > 0 {
            self.link.health().up();
        }
        failpoint!("bus.publish.after");
        if let Some(last) = events.last() {
            self.signals.position.send_replace(Some(last.sequence));
        }
        Ok(())
    }

    /// Publishes what is left; keeps in `left` what the broker did not take, and answers why.
    async fn publish_once<'a>(&self, left: &mut Vec<&'a StoredEvent>) -> Option<BusError> {
        let mut sent = Vec::with_capacity(left.len());
        for event in left.iter() {
            sent.push(self.send(event).await);
        }
        let mut problem = None;
        let mut again: Vec<&'a StoredEvent> = Vec::new();
        let mut silent = false;
        for (event, sent) in left.iter().zip(sent) {
            let result = match sent {
                Ok(acknowledged) => answer(acknowledged, silent).await,
                Err(error) => Err(error),
            };
            let Err(error) = result else { continue };
            silent |= error.kind() == PublishErrorKind::TimedOut;
            let reason = chain(&error);
            if error.kind() == PublishErrorKind::MaxPayloadExceeded || is_oversized(&reason) {
                error!(
                    bus.event = %event.event.id,
                    "event `{}` is too large for the NATS server, delivered from the store: {reason}",
                    event.event.id
                );
                self.hub.want(ReadScope::Newer);
                continue;
            }
            again.push(event);
            problem = Some(BusError::Broker {
                action: format!("take event `{}`", event.event.id),
                reason,
            });
        }
        *left = again;
        problem
    }

    async fn send(&self, stored: &StoredEvent) -> Result<PublishAckFuture, PublishError> {
        let id = stored.event.id.to_string();
        send(&self.link, stored, stored.sequence, &id).await
    }
}

/// Sends one event; the answer resolves when the broker has stored it.
pub(super) async fn send(
    link: &Link,
    stored: &StoredEvent,
    position: i64,
    message_id: &str,
) -> Result<PublishAckFuture, PublishError> {
    let event = &stored.event;
    let subject = wire::subject(&link.options().project, &event.event_type);
    let headers = wire::headers(event, stored.sequence, position, message_id);
    // Large data stays in the store, where whoever receives the message reads it.
    let payload = match &event.dataref {
        Some(_) => String::new(),
        None => event.data.to_string(),
    };
    link.context()
        .publish_with_headers(subject, headers, payload.into())
        .await
}

/// Waits for the broker's answer; once it let one event wait for too long, all others have waited as long as that one.
async fn answer(acknowledged: PublishAckFuture, silent: bool) -> Result<(), PublishError> {
    let answer = acknowledged.into_future();
    let answer = if silent {
        let late = || Err(PublishError::new(PublishErrorKind::TimedOut));
        answer.now_or_never().unwrap_or_else(late)
    } else {
        answer.await
    };
    answer.map(drop)
}

fn is_oversized(reason: &str) -> bool {
    reason.contains("message size exceeds maximum allowed")
}
