//! Deliveries per second through the real bus: a chain of six steps, and one event to six subscribers.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use ropewalk_bus::{Consumer, Delivery, Inbox, TransportOptions};
use ropewalk_schemas::ComponentName;
use ropewalk_store::{ChangeSet, Store};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::disk;
use crate::figure::{Figure, Goal};
use crate::raw::store::{RawStore, Shape};
use crate::sample::Rate;
use crate::settings::Settings;
use crate::words::{STEPS, Words, step, subscription};

/// How many entities move at once.
pub(crate) const IN_FLIGHT: usize = 256;

/// One event, one subscriber, one state row.
pub(crate) const HOP: Shape = Shape {
    subscribers: 1,
    state: true,
};

const WARM_UP: Duration = Duration::from_millis(500);

/// Measures the chain on the embedded bus.
pub(crate) async fn run(settings: &Settings) -> Result<Vec<Figure>> {
    let half = settings.time / 2;
    let raw = raw(half, HOP, IN_FLIGHT).await?;
    let directory = disk::directory()?;
    let ours = ours(
        directory.path(),
        TransportOptions::Embedded,
        Route::Chain,
        settings.time,
    )
    .await?;
    let raw = raw.and(self::raw(half, HOP, IN_FLIGHT).await?);
    let figure = Figure::rate(
        "deliveries, six-step chain, 256 in flight, embedded",
        ours.per_second(),
        raw.per_second(),
        "raw store, batches of 256",
    );
    Ok(vec![figure.goal(Goal::Ratio(0.5))])
}

/// Measures one event to six subscribers on the embedded bus.
pub(crate) async fn fan_out(settings: &Settings) -> Result<Vec<Figure>> {
    let half = settings.time / 2;
    let shape = Shape {
        subscribers: STEPS,
        state: true,
    };
    let events = IN_FLIGHT / STEPS;
    let deliveries = |rate: Rate| Rate {
        done: rate.done * STEPS,
        ..rate
    };
    let raw = raw(half, shape, events).await?;
    let directory = disk::directory()?;
    let ours = ours(
        directory.path(),
        TransportOptions::Embedded,
        Route::FanOut,
        settings.time,
    )
    .await?;
    let raw = deliveries(raw.and(self::raw(half, shape, events).await?));
    Ok(vec![Figure::rate(
        "deliveries, fan-out 1→6, 252 in flight, embedded",
        ours.per_second(),
        raw.per_second(),
        "raw store, batches of 42 × 6",
    )])
}

/// Writes batches of `events` through one connection; counts events.
pub(crate) async fn raw(time: Duration, shape: Shape, events: usize) -> Result<Rate> {
    let directory = disk::directory()?;
    disk::tables(directory.path()).await?;
    let mut raw = RawStore::open(directory.path()).await?;
    let warm = Instant::now();
    while warm.elapsed() < WARM_UP {
        raw.batch(events, shape).await?;
    }
    let begun = Instant::now();
    let mut done = 0;
    while begun.elapsed() < time {
        raw.batch(events, shape).await?;
        done += events;
    }
    let rate = Rate::since(begun, done);
    raw.close().await?;
    Ok(rate)
}

/// Says which way events go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// From step to step, from the last to the first again.
    Chain,
    /// From one source to every step; the first step emits the next.
    FanOut,
}

impl Route {
    fn source_of(self, number: usize) -> Result<ComponentName> {
        match self {
            Self::Chain => step((number + STEPS - 1) % STEPS),
            Self::FanOut => step(0),
        }
    }

    fn emits(self, number: usize) -> bool {
        self == Self::Chain || number == 0
    }

    fn lanes(self) -> usize {
        match self {
            Self::Chain => IN_FLIGHT,
            Self::FanOut => IN_FLIGHT / STEPS,
        }
    }
}

/// Runs deliveries through inboxes for `time`; counts those whose effects are committed.
pub(crate) async fn ours(
    directory: &Path,
    transport: TransportOptions,
    route: Route,
    time: Duration,
) -> Result<Rate> {
    let world = disk::world(directory, transport).await?;
    let words = Arc::new(Words::new());
    let done = Arc::new(AtomicUsize::new(0));
    let stop = CancellationToken::new();
    let mut steps = JoinSet::new();
    for number in 0..STEPS {
        let name = step(number)?;
        let source = route.source_of(number)?;
        let inbox = world
            .services
            .bus
            .consume(Consumer {
                subscription: subscription(&name, &source),
                in_flight: IN_FLIGHT,
                yields: false,
            })
            .await?;
        let handler = Handler {
            words: Arc::clone(&words),
            name,
            emits: route.emits(number),
            number,
            done: Arc::clone(&done),
        };
        steps.spawn(consume(inbox, Arc::new(handler), stop.clone()));
    }
    begin(
        &world.services.store,
        &words,
        &route.source_of(0)?,
        route.lanes(),
    )
    .await?;
    tokio::time::sleep(WARM_UP).await;
    let begun = Instant::now();
    let before = done.load(Ordering::Relaxed);
    tokio::time::sleep(time).await;
    let rate = Rate::since(begun, done.load(Ordering::Relaxed) - before);
    stop.cancel();
    while let Some(ended) = steps.join_next().await {
        ended??;
    }
    world.close().await?;
    Ok(rate)
}

async fn begin(store: &Store, words: &Words, source: &ComponentName, lanes: usize) -> Result<()> {
    let mut changes = ChangeSet::new();
    for lane in 0..lanes {
        changes.emit(words.event(source, lane)?);
    }
    store.commit(changes).await?;
    Ok(())
}

/// What one step does with a delivery.
struct Handler {
    words: Arc<Words>,
    name: ComponentName,
    emits: bool,
    number: usize,
    done: Arc<AtomicUsize>,
}

impl Handler {
    async fn handle(&self, mut delivery: Delivery) -> Result<()> {
        let lane = lane_of(delivery.event.subject.as_str())?;
        let mut changes = ChangeSet::new();
        if self.emits {
            changes.emit(self.words.event(&self.name, lane)?);
        }
        let row = if self.emits {
            lane
        } else {
            lane + 1_000 * self.number
        };
        changes.put(&self.words.task(row)?);
        delivery.finish(changes).await?;
        self.done.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

fn lane_of(subject: &str) -> Result<usize> {
    let (_, number) = subject
        .rsplit_once('-')
        .context("a subject without a number")?;
    Ok(number.parse()?)
}

async fn consume(mut inbox: Inbox, handler: Arc<Handler>, stop: CancellationToken) -> Result<()> {
    let mut in_hand = JoinSet::new();
    loop {
        let delivery = tokio::select! {
            delivery = inbox.next() => delivery,
            () = stop.cancelled() => None,
        };
        let Some(delivery) = delivery else { break };
        while let Some(ended) = in_hand.try_join_next() {
            ended??;
        }
        let handler = Arc::clone(&handler);
        in_hand.spawn(async move { handler.handle(delivery).await });
    }
    while let Some(ended) = in_hand.join_next().await {
        ended??;
    }
    Ok(())
}
