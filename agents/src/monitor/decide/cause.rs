//! Names causes of alerts, so that one cause has one alert.

use std::fmt;

use chrono::{DateTime, Utc};
use ropewalk_schemas::agent::Component;
use ropewalk_schemas::alert::Severity;
use ropewalk_schemas::payload::{ComponentDown, StuckTask};
use ropewalk_schemas::{AttemptId, BuildId, TaskId};

use super::WatchedTask;

/// Begins the cause of a stuck task.
pub const STUCK: &str = "stuck/";
/// Begins the cause of a silent component.
pub const COMPONENT: &str = "component/";
/// Begins the cause of a cycle of waits, as its detector names it.
pub const DEADLOCK: &str = "deadlock/";

/// Something that is wrong now.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// Names it; the key of its alert.
    pub key: String,
    /// How bad it is.
    pub severity: Severity,
    /// One line for people.
    pub message: String,
    /// What was found.
    pub finding: Finding,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    /// A task makes no progress.
    Stuck(StuckTask),
    /// Components of one process give no sign of life.
    Down(Vec<ComponentDown>),
}

/// The attempt that an alert about a stuck task speaks of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StuckCause {
    /// The build.
    pub build: BuildId,
    /// The task.
    pub task: TaskId,
    /// The attempt.
    pub attempt: AttemptId,
}

impl StuckCause {
    /// Reads the cause of an alert; `None` for a cause of another kind.
    pub fn parse(cause: &str) -> Option<Self> {
        let mut parts = cause.strip_prefix(STUCK)?.split('/');
        let parsed = Self {
            build: parts.next()?.parse().ok()?,
            task: parts.next()?.parse().ok()?,
            attempt: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(parsed)
    }
}

impl fmt::Display for StuckCause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{STUCK}{}/{}/{}",
            self.build, self.task, self.attempt
        )
    }
}

impl Cause {
    /// Describes a stuck task.
    pub(super) fn stuck(task: &WatchedTask, idle_minutes: u64, severity: Severity) -> Self {
        let key = StuckCause {
            build: task.build,
            task: task.task.clone(),
            attempt: task.attempt,
        };
        Self {
            key: key.to_string(),
            severity,
            message: format!(
                "task `{}` has made no progress for {idle_minutes} minutes on `{}`",
                task.task, task.loop_name
            ),
            finding: Finding::Stuck(StuckTask {
                build_id: task.build,
                task_id: task.task.clone(),
                attempt_id: task.attempt,
                loop_name: task.loop_name.clone(),
                idle_minutes,
                severity: Some(severity),
            }),
        }
    }

    /// Describes the silent components of one process: one message to people, and an event for each loop, whose work
    /// others take; `None` when there are none.
    pub(super) fn down(silent: &[&Component], now: DateTime<Utc>) -> Option<Self> {
        let mut silent = silent.to_vec();
        silent.sort_by_key(|component| (!component.name.is_loop(), component.name.as_str()));
        let first = silent.first()?;
        let seconds = |component: &Component| {
            u64::try_from((now - component.last_seen).num_seconds()).unwrap_or_default()
        };
        let names: Vec<String> = silent
            .iter()
            .map(|component| format!("`{}`", component.name))
            .collect();
        let (noun, verb) = if names.len() == 1 {
            ("component", "has")
        } else {
            ("components", "have")
        };
        let severity = Severity::Error;
        let told = silent
            .iter()
            .enumerate()
            .filter(|(place, component)| *place == 0 || component.name.is_loop());
        Some(Self {
            key: format!("{COMPONENT}{}", first.name),
            severity,
            message: format!(
                "{noun} {} of process `{}` {verb} given no sign of life for {} seconds",
                names.join(", "),
                first.process,
                seconds(first)
            ),
            finding: Finding::Down(
                told.map(|(_, component)| ComponentDown {
                    component: component.name.clone(),
                    silent_seconds: seconds(component),
                    severity: Some(severity),
                })
                .collect(),
            ),
        })
    }
}
