//! Follows the timeline: every event by its position, whoever committed it, read from the store once for all who listen.
//!
//! What wakes it may be lost (a commit of this process, a poke, what a server says of others); a look each second finds
//! what nobody announced. Where nobody listens, it rests.

use std::sync::Arc;
use std::time::Duration;

use ropewalk_runtime::{Clock, Supervisor};
use ropewalk_schemas::advice::Words;
use ropewalk_store::{CommitFeed, EventFilter, ReadError, Store, StoredEvent};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, broadcast, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// How many events a listener may lie behind before it has to begin anew.
const CAPACITY: usize = 4_096;
/// How many listeners may be about to begin at once.
const BEGINNING: usize = 256;
/// How many events one look reads.
const AT_ONCE: u32 = 512;
/// How long the tail waits for somebody to say that there is something.
const LOOK: Duration = Duration::from_secs(1);

/// Follows the timeline; cheap to clone.
#[derive(Debug, Clone)]
pub struct Tail {
    /// Weak, so that whoever holds this and listens hears the end of the one who tells.
    events: broadcast::WeakSender<Arc<StoredEvent>>,
    begin: mpsc::Sender<oneshot::Sender<i64>>,
}

/// Says that no events come from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TailError {
    /// The process is about to stop.
    #[error("the program is about to stop")]
    Stopping,
    /// The listener was too slow.
    #[error("{0} events were missed")]
    Missed(u64),
}

/// The events after a position.
#[derive(Debug)]
pub struct TailEvents {
    events: broadcast::Receiver<Arc<StoredEvent>>,
    /// The position after which every event comes.
    pub after: i64,
}

impl TailEvents {
    /// Waits for the next event.
    pub async fn next(&mut self) -> Result<Arc<StoredEvent>, TailError> {
        self.events.recv().await.map_err(|error| match error {
            RecvError::Closed => TailError::Stopping,
            RecvError::Lagged(missed) => TailError::Missed(missed),
        })
    }
}

impl Tail {
    /// Begins to follow `store`, and looks at once where `poked` is notified.
    pub(crate) fn start(
        store: Store,
        poked: Arc<Notify>,
        clock: Clock,
        supervisor: &Supervisor,
    ) -> Self {
        let events = broadcast::Sender::new(CAPACITY);
        let (begin, asked) = mpsc::channel(BEGINNING);
        let follower = Follower {
            store,
            poked,
            clock,
            events,
            last: 0,
        };
        let events = follower.events.downgrade();
        let stop = supervisor.shutdown().soft().clone();
        supervisor.spawn("bus.tail", follower.follow(asked, stop));
        Self { events, begin }
    }

    /// Listens; every event after [`TailEvents::after`] comes.
    pub async fn listen(&self) -> Result<TailEvents, TailError> {
        // Before the position is asked for, so that nothing comes in between.
        let events = self
            .events
            .upgrade()
            .ok_or(TailError::Stopping)?
            .subscribe();
        let (reply, after) = oneshot::channel();
        let asked = self.begin.send(reply).await;
        asked.map_err(|_| TailError::Stopping)?;
        let after = after.await.map_err(|_| TailError::Stopping)?;
        Ok(TailEvents { events, after })
    }
}

struct Follower {
    store: Store,
    poked: Arc<Notify>,
    clock: Clock,
    events: broadcast::Sender<Arc<StoredEvent>>,
    /// The position up to which everything was told.
    last: i64,
}

impl Follower {
    async fn follow(
        mut self,
        mut asked: mpsc::Receiver<oneshot::Sender<i64>>,
        stop: CancellationToken,
    ) {
        loop {
            let first = tokio::select! {
                () = stop.cancelled() => return,
                first = asked.recv() => first,
            };
            let Some(first) = first else { return };
            let mut feed = self.store.feed();
            match self.newest().await {
                Ok(newest) => self.last = newest,
                Err(error) => {
                    warn!("the timeline cannot be followed: {}", Words::of(&error));
                    continue;
                }
            }
            first.send(self.last).ok();
            while self.events.receiver_count() > 0 {
                tokio::select! {
                    () = stop.cancelled() => return,
                    more = asked.recv() => {
                        let Some(more) = more else { return };
                        more.send(self.last).ok();
                        continue;
                    }
                    () = self.woken(&mut feed) => {}
                }
                if let Err(error) = self.tell().await {
                    warn!(
                        "the timeline stands still until the next look: {}",
                        Words::of(&error)
                    );
                }
            }
        }
    }

    async fn woken(&self, feed: &mut CommitFeed) {
        tokio::select! {
            () = self.poked.notified() => {}
            () = self.clock.sleep(LOOK) => {}
            Some(_) = feed.next() => {}
        }
    }

    async fn newest(&self) -> Result<i64, ReadError> {
        let newest = EventFilter {
            limit: Some(1),
            newest_first: true,
            ..EventFilter::default()
        };
        let found = self.store.events(&newest).await?;
        Ok(found.first().map_or(0, |event| event.sequence))
    }

    /// Tells everything that is there now.
    async fn tell(&mut self) -> Result<(), ReadError> {
        loop {
            let filter = EventFilter {
                after_sequence: Some(self.last),
                limit: Some(AT_ONCE),
                ..EventFilter::default()
            };
            let found = self.store.events(&filter).await?;
            let is_more = found.len() == AT_ONCE as usize;
            for event in found {
                self.last = event.sequence;
                // An error only says that nobody listens any more.
                drop(self.events.send(Arc::new(event)));
            }
            if !is_more {
                return Ok(());
            }
        }
    }
}
