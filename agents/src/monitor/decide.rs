//! Decides what is wrong and which alerts to raise, escalate and clear. Pure (seed pipeline §7.3, design §15).

mod alerts;
mod cause;

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use ropewalk_config::settings::StuckMinutes;
use ropewalk_schemas::agent::Component;
use ropewalk_schemas::alert::Severity;
use ropewalk_schemas::{AttemptId, BuildId, ComponentName, TaskId};

use super::ROLE;

pub use alerts::{Move, cleared_attempt, cleared_component, gone, moves};
pub use cause::{COMPONENT, Cause, DEADLOCK, Finding, STUCK, StuckCause};

/// A task that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedTask {
    /// The build.
    pub build: BuildId,
    /// The task.
    pub task: TaskId,
    /// Its phase, which sets how long it may stand still.
    pub phase: String,
    /// The attempt.
    pub attempt: AttemptId,
    /// The loop that works on it.
    pub loop_name: ComponentName,
    /// When it last made progress, or began.
    pub last_sign: DateTime<Utc>,
    /// Whether it waits for something; such a wait is shown elsewhere and is no fault of the task.
    pub waits: bool,
}

/// Finds tasks without progress for the time of their phase. What takes twice and three times that long is worse.
pub fn stuck(tasks: &[WatchedTask], limits: &StuckMinutes, now: DateTime<Utc>) -> Vec<Cause> {
    tasks
        .iter()
        .filter(|task| !task.waits)
        .filter_map(|task| {
            let idle = since(task.last_sign, now);
            let limit =
                Duration::from_mins(u64::from(limits.of(&task.phase))).max(Duration::from_secs(1));
            let severity = match idle.as_secs() / limit.as_secs() {
                0 | 1 => Severity::Warning,
                2 => Severity::Error,
                _ => Severity::Critical,
            };
            (idle > limit).then(|| Cause::stuck(task, idle.as_secs() / 60, severity))
        })
        .collect()
}

/// Finds components without a sign of life, whether or not anybody listened. One that was stopped in order is fine.
pub fn silent(components: &[Component], limit: Duration, now: DateTime<Utc>) -> Vec<&Component> {
    components
        .iter()
        .filter(|component| !component.stopped && since(component.last_seen, now) >= limit)
        .collect()
}

/// Finds processes whose components gave no sign of life while the monitor listened: those of one die together.
pub fn down(
    components: &[Component],
    limit: Duration,
    listening_since: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Vec<Cause> {
    if since(listening_since, now) < limit {
        return Vec::new();
    }
    let mut processes: BTreeMap<&str, Vec<&Component>> = BTreeMap::new();
    for component in silent(components, limit, now) {
        let of_process = processes.entry(&component.process).or_default();
        of_process.push(component);
    }
    processes
        .into_values()
        .filter_map(|silent| Cause::down(&silent, now))
        .collect()
}

/// Finds the processes of monitors that gave no sign of life while somebody listened, unless another monitor is left to
/// tell of them.
pub fn unwatched(
    components: &[Component],
    limit: Duration,
    listening_since: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Vec<Cause> {
    let is_monitor = |component: &&Component| component.role == ROLE && !component.stopped;
    let monitors: Vec<&Component> = components.iter().filter(is_monitor).collect();
    let lives = |monitor: &&Component| since(monitor.last_seen, now) < limit;
    if monitors.iter().any(lives) {
        return Vec::new();
    }
    let is_theirs = |component: &&Component| {
        let of_process = |monitor: &&Component| monitor.process == component.process;
        monitors.iter().any(of_process)
    };
    let theirs: Vec<Component> = components.iter().filter(is_theirs).cloned().collect();
    down(&theirs, limit, listening_since, now)
}

/// When the monitor began to listen without a gap, and when it last did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListeningPeriod {
    /// Since when.
    pub since: DateTime<Utc>,
    /// The last look.
    pub last: DateTime<Utc>,
}

/// Notes a look. After a gap of `limit` (a restart, a machine that slept) nobody's silence counts from before it.
pub fn listen(
    before: Option<ListeningPeriod>,
    limit: Duration,
    now: DateTime<Utc>,
) -> ListeningPeriod {
    match before {
        Some(before) if since(before.last, now) < limit => ListeningPeriod {
            last: now,
            ..before
        },
        _ => ListeningPeriod {
            since: now,
            last: now,
        },
    }
}

/// Writes "every so long" as a cron line; whole minutes from a minute on.
pub fn cron_every(period: Duration) -> String {
    let seconds = period.as_secs().clamp(1, 59 * 60);
    if seconds < 60 {
        format!("*/{seconds} * * * * *")
    } else {
        format!("*/{} * * * *", seconds / 60)
    }
}

fn since(then: DateTime<Utc>, now: DateTime<Utc>) -> Duration {
    (now - then).to_std().unwrap_or_default()
}

#[cfg(test)]
mod tests;
