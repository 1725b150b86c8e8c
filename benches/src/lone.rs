//! One change at a time: what a commit costs when nobody shares it, and what a lock costs.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use ropewalk_coordination::locks::{self, LockRequest};
use ropewalk_schemas::lease::{Holder, Lease, LeaseState};
use ropewalk_schemas::{Event, Payload, RepoPath, Subject};
use ropewalk_store::{ChangeSet, DeliveryKey, Outcome, Store, Versioned};
use tokio::task::JoinSet;

use crate::chain::HOP;
use crate::disk;
use crate::figure::{Figure, Goal};
use crate::raw::store::RawStore;
use crate::sample::Times;
use crate::settings::Settings;
use crate::words::{Words, step, subscription, task_id};

/// How many runs of one side come before the other side has its turn.
const TURN: usize = 25;

/// Measures a lone commit and a lock.
pub(crate) async fn run(settings: &Settings) -> Result<Vec<Figure>> {
    let mut figures = vec![commit(settings.time).await?];
    figures.extend(lock(settings.time).await?);
    Ok(figures)
}

async fn commit(time: Duration) -> Result<Figure> {
    let (directory, raw_directory) = (disk::directory()?, disk::directory()?);
    disk::tables(raw_directory.path()).await?;
    let mut raw = RawStore::open(raw_directory.path()).await?;
    let store = disk::store(directory.path()).await?;
    let mut hops = Hops::begin(&store).await?;
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    let begun = Instant::now();
    while begun.elapsed() < time * 2 {
        let (back, times) = in_task(hops.turn(store.clone())).await?;
        hops = back;
        ours.join(times);
        for _ in 0..TURN {
            let begun = Instant::now();
            raw.batch(1, HOP).await?;
            theirs.add(begun.elapsed());
        }
    }
    store.close().await?;
    raw.close().await?;
    let figure = Figure::cost("a lone change commits, p50", "ms", ours.millis(50)?)
        .beside(theirs.millis(50)?, "a lone raw commit of the same rows")
        .goal(Goal::Ratio(1.5));
    Ok(figure.p99(ours.millis(99)?))
}

/// Does one turn in a task of the runtime, as agents do their work; raw turns stay on the main thread, where they are
/// quicker.
async fn in_task<Done: Send + 'static>(
    turn: impl Future<Output = Result<Done>> + Send + 'static,
) -> Result<Done> {
    let mut tasks = JoinSet::new();
    tasks.spawn(turn);
    tasks.join_next().await.context("one turn was begun")??
}

/// Hops of one chain, each closing the delivery that the one before opened.
struct Hops {
    words: Words,
    open: DeliveryKey,
}

impl Hops {
    async fn begin(store: &Store) -> Result<Self> {
        let words = Words::new();
        let (name, source) = (step(1)?, step(0)?);
        store.subscribe(&subscription(&name, &source)).await?;
        let mut changes = ChangeSet::new();
        changes.emit(words.event(&source, 1)?);
        let committed = store.commit(changes).await?;
        let event = committed.events.first().context("the event is stored")?;
        let open = DeliveryKey {
            sequence: event.sequence,
            subscriber: name,
        };
        Ok(Self { words, open })
    }

    async fn turn(mut self, store: Store) -> Result<(Self, Times)> {
        let mut times = Times::default();
        for _ in 0..TURN {
            times.add(self.hop(&store).await?);
        }
        Ok((self, times))
    }

    async fn hop(&mut self, store: &Store) -> Result<Duration> {
        let begun = Instant::now();
        let mut changes = ChangeSet::new();
        changes
            .emit(self.words.event(&step(0)?, 1)?)
            .put(&self.words.task(1)?)
            .close(&self.open, Outcome::Done);
        let committed = store.commit(changes).await?;
        let time = begun.elapsed();
        self.open.sequence = committed
            .events
            .first()
            .context("the event is stored")?
            .sequence;
        Ok(time)
    }
}

async fn lock(time: Duration) -> Result<Vec<Figure>> {
    let (directory, raw_directory) = (disk::directory()?, disk::directory()?);
    disk::tables(raw_directory.path()).await?;
    let mut raw = RawStore::open(raw_directory.path()).await?;
    let store = disk::store(directory.path()).await?;
    let taker = Taker::new(&store)?;
    let (mut commits, mut whole, mut theirs) =
        (Times::default(), Times::default(), Times::default());
    let begun = Instant::now();
    while begun.elapsed() < time * 2 {
        commits.join(in_task(taker.clone().turn(false)).await?);
        whole.join(in_task(taker.clone().turn(true)).await?);
        for _ in 0..TURN {
            theirs.add(taker.raw(&mut raw).await?);
        }
    }
    store.close().await?;
    raw.close().await?;
    let raw_is = "two raw commits of the same rows";
    let raw = theirs.millis(50)?;
    let commits = Figure::cost("lock acquire + release, p50", "ms", commits.millis(50)?)
        .p99(commits.millis(99)?)
        .beside(raw, raw_is)
        .goal(Goal::Ratio(1.3));
    let whole = Figure::cost(
        "the same with the two reads that decide it, p50",
        "ms",
        whole.millis(50)?,
    )
    .p99(whole.millis(99)?)
    .beside(raw, raw_is);
    Ok(vec![commits, whole])
}

/// Takes a lock and gives it back, again and again.
#[derive(Clone)]
struct Taker {
    store: Store,
    request: LockRequest,
    words: Words,
}

impl Taker {
    fn new(store: &Store) -> Result<Self> {
        let words = Words::new();
        Ok(Self {
            store: store.clone(),
            request: request(&words)?,
            words,
        })
    }

    /// Does one turn, with the two reads that decide on a lock if `decides`.
    async fn turn(self, decides: bool) -> Result<Times> {
        let mut times = Times::default();
        for _ in 0..TURN {
            let begun = Instant::now();
            if decides {
                locks::all_held(&self.store).await?;
                locks::lease_waits(&self.store).await?;
            }
            self.take_and_give_back().await?;
            times.add(begun.elapsed());
        }
        Ok(times)
    }

    async fn raw(&self, raw: &mut RawStore) -> Result<Duration> {
        let begun = Instant::now();
        let lease = lease(&self.request, 0)?;
        raw.grant(&lease).await?;
        let released = self.words.event(&step(0)?, 1)?;
        raw.release(&lease, &released).await?;
        Ok(begun.elapsed())
    }

    async fn take_and_give_back(&self) -> Result<()> {
        let mut changes = ChangeSet::new();
        locks::acquire(&mut changes, &self.request, self.words.clock.now());
        let granted = self.store.commit(changes).await?;
        let token = granted.token.context("a granted lease has a token")?;
        let held = Versioned {
            version: 0,
            record: lease(&self.request, token)?,
        };
        let announced = self.words.event(&step(0)?, 1)?;
        let announce = |subject: Subject, payload: Payload| Event {
            subject,
            payload,
            ..announced.clone()
        };
        let mut changes = ChangeSet::new();
        locks::release(&mut changes, &[held], &announce);
        self.store.commit(changes).await?;
        Ok(())
    }
}

fn request(words: &Words) -> Result<LockRequest> {
    Ok(LockRequest {
        holder: Holder {
            build: words.build,
            task: task_id(1)?,
            attempt: words.ids.next().into(),
            loop_name: step(1)?,
        },
        files: vec![RepoPath::parse("src/part_1.rs")?],
        ttl: Duration::from_mins(1),
        reason: "a benchmark".to_owned(),
        since: words.clock.now(),
    })
}

fn lease(request: &LockRequest, token: i64) -> Result<Lease> {
    Ok(Lease {
        path: request.files.first().context("a lock has a file")?.clone(),
        holder: request.holder.clone(),
        state: LeaseState::Granted,
        token,
        renewals: 0,
        ttl_ms: 60_000,
        reason: request.reason.clone(),
        granted_at: request.since,
    })
}
