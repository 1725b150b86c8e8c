//! A frame in a temporary directory, on a clock that the test moves.

use std::collections::VecDeque;
use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeZone, Utc};
use ropewalk_orchestrator::{
    Agent, AgentError, Context, Frame, Profile, Schedule, Services, Suspects, timers,
};
use ropewalk_runtime::Clock;
use ropewalk_schemas::timer::Timer;
use ropewalk_schemas::{ComponentName, Event, EventPattern};
use ropewalk_store::{ChangeSet, Query};
use ropewalk_world::{Plan, World, patience};

/// A running frame.
pub(crate) struct FrameWorld {
    pub(crate) services: Services,
    pub(crate) clock: Clock,
    world: World,
}

pub(crate) fn noon() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 11, 21, 12, 0, 0)
        .single()
        .unwrap_or_default()
}

impl FrameWorld {
    /// Opens the store in `directory` and runs `agents` at the time of `clock`.
    pub(crate) async fn open(
        directory: &Path,
        clock: Clock,
        agents: Vec<Arc<dyn Agent>>,
    ) -> anyhow::Result<Self> {
        Self::open_counting(directory, clock, agents, Suspects::default()).await
    }

    /// Opens it in a process that counts what the one before died of.
    pub(crate) async fn open_counting(
        directory: &Path,
        clock: Clock,
        agents: Vec<Arc<dyn Agent>>,
        suspects: Suspects,
    ) -> anyhow::Result<Self> {
        let plan = Plan::at(&clock).counting(suspects);
        let world = plan.open(directory).await?;
        let services = world.services.clone();
        Frame::start(&services, agents, &world.supervisor).await?;
        Ok(Self {
            services,
            clock,
            world,
        })
    }

    /// Returns a context in which `name` speaks.
    pub(crate) fn context(&self, name: &str) -> anyhow::Result<Context> {
        Ok(self.world.context(name)?)
    }

    /// Waits until `look` finds what it looks for.
    pub(crate) async fn until<T, F, Looking>(&self, what: &str, look: F) -> anyhow::Result<T>
    where
        F: FnMut() -> Looking,
        Looking: Future<Output = anyhow::Result<Option<T>>>,
    {
        patience::until(what, look).await
    }

    /// Moves the clock in steps of a second, so that everybody who sleeps wakes in order.
    pub(crate) async fn pass(&self, duration: Duration) {
        let mut left = duration;
        while !left.is_zero() {
            let step = left.min(Duration::from_secs(1).max(duration / 64));
            self.clock.advance(step);
            left -= step;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// As [`FrameWorld::pass`], up to a moment: on a busy machine more may have passed before than a test meant.
    pub(crate) async fn pass_until(&self, moment: DateTime<Utc>) {
        let left = moment - self.clock.now();
        self.pass(left.to_std().unwrap_or_default()).await;
    }

    /// Waits until every timer that is due has fired and everything that follows is handled; seconds pass meanwhile.
    pub(crate) async fn settle(&self) -> anyhow::Result<()> {
        let store = &self.services.store;
        self.until("everything that is due", || async {
            let now = self.clock.now().timestamp_millis();
            let due = store
                .count::<Timer>(Query::new().at_most("due", now))
                .await?;
            // A timer and its event are one commit, so whoever sees no timer sees its delivery.
            let open = store.open_deliveries(None, 0, 1).await?;
            if due == 0 && open.is_empty() {
                return Ok(Some(()));
            }
            self.pass(Duration::from_secs(1)).await;
            Ok(None)
        })
        .await
    }

    /// Drops what is in hand and closes the store.
    pub(crate) async fn abort(self) -> anyhow::Result<()> {
        Ok(self.world.crash().await?)
    }

    /// Drains the frame and closes the store, as an orderly stop does.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        Ok(self.world.close().await?)
    }
}

/// What a [`Recorder`] does with its next event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reaction {
    Crash,
    Fail,
    Refuse,
}

/// An agent that notes every event it completes, and misbehaves on demand before that.
pub(crate) struct Recorder {
    profile: Profile,
    reactions: Mutex<VecDeque<Reaction>>,
    seen: Arc<Mutex<Vec<Event>>>,
}

impl Recorder {
    pub(crate) fn new(role: &str, pattern: &str) -> anyhow::Result<Self> {
        let profile = Profile {
            role: ComponentName::parse(role)?,
            patterns: vec![EventPattern::of(pattern)],
            in_flight: 4,
            schedules: Vec::new(),
        };
        Ok(Self {
            profile,
            reactions: Mutex::default(),
            seen: Arc::default(),
        })
    }

    /// Returns one that takes what the timers of a family bring.
    pub(crate) fn of_timers(role: &str, family: &str) -> anyhow::Result<Self> {
        let mut recorder = Self::new(role, "schedule.due")?;
        recorder.profile.patterns = timers::patterns(["schedule.due"], family)?;
        Ok(recorder)
    }

    pub(crate) fn on_schedule(mut self, name: &str, cron: &str) -> Self {
        self.profile.schedules.push(Schedule {
            name: name.to_owned(),
            cron: cron.to_owned(),
        });
        self
    }

    pub(crate) fn reacting(self, reactions: &[Reaction]) -> Self {
        Self {
            reactions: Mutex::new(reactions.iter().copied().collect()),
            ..self
        }
    }

    /// Returns where the events are noted.
    pub(crate) fn seen(&self) -> Arc<Mutex<Vec<Event>>> {
        Arc::clone(&self.seen)
    }
}

/// Returns how many events are noted.
pub(crate) fn count(seen: &Mutex<Vec<Event>>) -> usize {
    seen.lock().unwrap_or_else(PoisonError::into_inner).len()
}

#[async_trait]
impl Agent for Recorder {
    fn profile(&self) -> Profile {
        self.profile.clone()
    }

    async fn handle(&self, event: &Event, _context: &Context) -> Result<ChangeSet, AgentError> {
        let reaction = self
            .reactions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front();
        match reaction {
            Some(Reaction::Crash) => panic!("the handler crashes on demand"),
            Some(Reaction::Fail) => Err(AgentError::transient("not yet")),
            Some(Reaction::Refuse) => Err(AgentError::permanent("never")),
            None => {
                self.seen
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(event.clone());
                Ok(ChangeSet::new())
            }
        }
    }
}
