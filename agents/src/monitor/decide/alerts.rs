//! Decides what becomes of alerts: one per cause, raised once, escalated, cleared when the cause is gone.

use std::collections::BTreeMap;

use ropewalk_schemas::agent::Component;
use ropewalk_schemas::alert::{Alert, Severity};
use ropewalk_schemas::attempt::Attempt;

use super::cause::Cause;

/// What becomes of an alert.
#[derive(Debug, Clone, PartialEq)]
pub enum Move {
    /// It is raised.
    Raise(Cause),
    /// It stands and its cause has grown worse.
    Escalate {
        /// The cause of the alert.
        key: String,
        /// How bad it is now.
        severity: Severity,
        /// One line for people.
        message: String,
    },
    /// Its cause is gone.
    Clear {
        /// The cause of the alert.
        key: String,
    },
}

/// Compares the causes of now with the alerts that stand, among those whose cause begins with `family`.
pub fn moves<'a>(
    causes: Vec<Cause>,
    open: impl IntoIterator<Item = &'a Alert> + Clone,
    family: &str,
) -> Vec<Move> {
    let standing: Vec<&str> = causes.iter().map(|cause| cause.key.as_str()).collect();
    let gone = gone(&standing, open.clone(), family);
    let known: BTreeMap<&str, Severity> = open
        .into_iter()
        .map(|alert| (alert.cause.as_str(), alert.severity))
        .collect();
    causes
        .into_iter()
        .filter_map(|cause| match known.get(cause.key.as_str()) {
            None => Some(Move::Raise(cause)),
            Some(severity) if *severity < cause.severity => Some(Move::Escalate {
                key: cause.key,
                severity: cause.severity,
                message: cause.message,
            }),
            Some(_) => None,
        })
        .chain(gone.into_iter().map(|key| Move::Clear { key }))
        .collect()
}

/// Names the alerts of a family that stand though their cause does not.
pub fn gone<'a>(
    standing: &[&str],
    open: impl IntoIterator<Item = &'a Alert>,
    family: &str,
) -> Vec<String> {
    open.into_iter()
        .map(|alert| &alert.cause)
        .filter(|cause| cause.starts_with(family) && !standing.contains(&cause.as_str()))
        .cloned()
        .collect()
}

/// Says how a stuck attempt came to move.
pub fn cleared_attempt(attempt: Option<&Attempt>) -> String {
    match attempt {
        Some(attempt) => match attempt.ended_at {
            Some(ended) => {
                let minutes = (ended - attempt.started_at).num_minutes().max(0);
                format!(
                    "attempt {} at task `{}` ended after {minutes} minutes: {}",
                    attempt.number, attempt.task, attempt.state
                )
            }
            None => format!("task `{}` moves again", attempt.task),
        },
        None => "the attempt is gone".to_owned(),
    }
}

/// Says how a silent component came back.
pub fn cleared_component(name: &str, component: Option<&Component>) -> String {
    match component {
        Some(component) if component.stopped => format!("component `{name}` was stopped in order"),
        Some(_) => format!("component `{name}` gives signs of life again"),
        None => format!("component `{name}` is no longer registered"),
    }
}
