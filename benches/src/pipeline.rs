//! Six agents that do nothing but hand on, one after the other through the frame.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use ropewalk_bus::TransportOptions;
use ropewalk_orchestrator::{Agent, AgentError, Context, Frame, Profile};
use ropewalk_schemas::{ComponentName, Event};
use ropewalk_store::{ChangeSet, CommitFeed};
use ropewalk_world::World;

use crate::disk;
use crate::figure::{Figure, Goal};
use crate::raw::store::{RawStore, Shape};
use crate::sample::Times;
use crate::settings::Settings;
use crate::words::{STEPS, Words, from, step};

/// The event that begins, and what each of the six commits.
const COMMITS: f64 = 7.0;

/// How many runs of one side come before the other side has its turn.
const TURN: usize = 10;

/// Hands the event of one step on to the next.
pub(crate) struct HandOn {
    role: ComponentName,
    source: ComponentName,
}

#[async_trait]
impl Agent for HandOn {
    fn profile(&self) -> Profile {
        Profile {
            role: self.role.clone(),
            patterns: vec![from(&self.source)],
            in_flight: 64,
            schedules: Vec::new(),
        }
    }

    async fn handle(&self, event: &Event, context: &Context) -> Result<ChangeSet, AgentError> {
        let mut changes = ChangeSet::new();
        changes.emit(context.event(event.subject.clone(), event.payload.clone()));
        Ok(changes)
    }
}

/// Returns the six agents.
pub(crate) fn agents() -> Result<Vec<Arc<dyn Agent>>> {
    (1..=STEPS)
        .map(|number| {
            let agent = HandOn {
                role: step(number)?,
                source: step(number - 1)?,
            };
            Ok(Arc::new(agent) as Arc<dyn Agent>)
        })
        .collect()
}

/// A world with the six agents in it.
pub(crate) struct Pipeline {
    pub(crate) world: World,
    words: Words,
}

impl Pipeline {
    pub(crate) async fn open(directory: &Path) -> Result<Self> {
        let world = disk::world(directory, TransportOptions::Embedded).await?;
        let services = world.services.clone();
        Frame::start(&services, agents()?, &world.supervisor).await?;
        Ok(Self {
            world,
            words: Words::new(),
        })
    }

    /// Begins a chain and waits until `steps` steps are committed.
    pub(crate) async fn walk(&self, feed: &mut CommitFeed, steps: usize) -> Result<()> {
        let last = step(steps)?;
        let mut changes = ChangeSet::new();
        changes.emit(self.words.event(&step(0)?, 1)?);
        self.world.services.store.commit(changes).await?;
        loop {
            let committed = feed.next().await.context("the store is closed")??;
            if committed
                .events
                .iter()
                .any(|stored| stored.event.source == last)
            {
                return Ok(());
            }
        }
    }
}

/// Measures the pipeline.
pub(crate) async fn run(settings: &Settings) -> Result<Vec<Figure>> {
    let (directory, raw_directory) = (disk::directory()?, disk::directory()?);
    disk::tables(raw_directory.path()).await?;
    let mut raw = RawStore::open(raw_directory.path()).await?;
    let pipeline = Pipeline::open(directory.path()).await?;
    let mut feed = pipeline.world.services.store.feed();
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    let begun = Instant::now();
    while begun.elapsed() < settings.time * 2 {
        for _ in 0..TURN {
            let begun = Instant::now();
            pipeline.walk(&mut feed, STEPS).await?;
            ours.add(begun.elapsed());
        }
        raw_turn(&mut raw, &mut theirs).await?;
    }
    pipeline.world.close().await?;
    raw.close().await?;
    let figure = Figure::cost(
        "pipeline of six no-op agents through the frame, p50",
        "ms",
        ours.millis(50)?,
    )
    .p99(ours.millis(99)?)
    .beside(
        COMMITS * theirs.millis(50)?,
        "its 7 commits × a lone raw commit",
    )
    .goal(Goal::Ratio(1.3));
    Ok(vec![figure])
}

async fn raw_turn(raw: &mut RawStore, times: &mut Times) -> Result<()> {
    let shape = Shape {
        subscribers: 1,
        state: false,
    };
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(20) {
        let begun = Instant::now();
        raw.batch(1, shape).await?;
        times.add(begun.elapsed());
    }
    Ok(())
}
