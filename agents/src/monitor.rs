//! Watches the project on a schedule, without a model (seed pipeline §7): stuck tasks, silent components, cycles of waits.
//!
//! One alert stands for one cause, from the look that first finds it until the look that finds it gone.

mod act;
mod context;

pub mod decide;
pub mod deputy;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use ropewalk_config::settings::{MonitorSettings, StuckMinutes};
use ropewalk_orchestrator::{Agent, AgentError, Context, Profile, Schedule, timers};
use ropewalk_schemas::{ComponentName, Event, EventPattern, InvalidId, Payload};
use ropewalk_store::ChangeSet;

use decide::ListeningPeriod;

/// The schedule on which tasks and waits are looked at.
pub const TICK: &str = "monitor.tick";
/// The schedule on which components are looked at.
pub const HEALTH: &str = "monitor.health";
/// What the monitor is called.
const ROLE: &str = "monitor";
/// The events that the agent takes.
const TAKES: [&str; 1] = ["schedule.due"];

/// What the monitor keeps to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorOptions {
    /// When tasks and waits are looked at: cron with 5 or 6 fields, UTC.
    pub interval: String,
    /// How often components are looked at.
    pub check_components_every: Duration,
    /// A component is down after this without a sign of life.
    pub component_down_after: Duration,
    /// A task is stuck after so many minutes without progress, by phase.
    pub stuck_minutes: StuckMinutes,
}

impl From<&MonitorSettings> for MonitorOptions {
    fn from(settings: &MonitorSettings) -> Self {
        let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
        Self {
            interval: settings.interval.clone(),
            check_components_every: seconds(settings.component_check_seconds),
            component_down_after: seconds(settings.component_down_seconds),
            stuck_minutes: settings.stuck_minutes.clone(),
        }
    }
}

/// The monitor.
#[derive(Debug)]
pub struct Monitor {
    role: ComponentName,
    patterns: Vec<EventPattern>,
    options: MonitorOptions,
    listening: Mutex<Option<ListeningPeriod>>,
}

impl Monitor {
    /// Makes the agent.
    pub fn new(options: MonitorOptions) -> Result<Self, InvalidId> {
        Ok(Self {
            role: ComponentName::parse(ROLE)?,
            patterns: timers::patterns(TAKES, ROLE)?,
            options,
            listening: Mutex::default(),
        })
    }

    /// Notes a look at the components and returns since when the monitor has listened without a gap.
    fn listen(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        let mut listening = self
            .listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let after = decide::listen(*listening, self.options.component_down_after, now);
        *listening = Some(after);
        after.since
    }
}

#[async_trait]
impl Agent for Monitor {
    fn profile(&self) -> Profile {
        let schedule = |name: &str, cron: String| Schedule {
            name: name.to_owned(),
            cron,
        };
        Profile {
            role: self.role.clone(),
            patterns: self.patterns.clone(),
            in_flight: 1,
            schedules: vec![
                schedule(TICK, self.options.interval.clone()),
                schedule(
                    HEALTH,
                    decide::cron_every(self.options.check_components_every),
                ),
            ],
        }
    }

    async fn recover(&self, context: &Context) -> Result<(), AgentError> {
        self.listen(context.now());
        Ok(())
    }

    async fn handle(&self, event: &Event, context: &Context) -> Result<ChangeSet, AgentError> {
        let Payload::ScheduleDue(due) = &event.payload else {
            return Ok(ChangeSet::new());
        };
        match due.name.as_str() {
            TICK => act::look_at_work(&self.options, context).await,
            HEALTH => {
                let since = self.listen(context.now());
                act::look_at_components(&self.options, since, context).await
            }
            _ => Ok(ChangeSet::new()),
        }
    }
}
