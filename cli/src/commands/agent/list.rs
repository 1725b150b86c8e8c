//! Verb `agent list`: what every part of every process does.

use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::Args;
use ropewalk_runtime::Clock;
use ropewalk_schemas::agent::Component;
use ropewalk_store::{Query, ReadError, Store};

use crate::app::App;
use crate::error::CliError;
use crate::output::time;

/// Which ones.
#[derive(Debug, Args)]
pub struct List {
    /// Those that were stopped too.
    #[arg(long)]
    all: bool,
}

impl List {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let down_after = app.project()?.config().monitor.component_down_seconds;
        let down_after = Duration::from_secs(down_after.into());
        let now = Clock::system().now();
        let mut parts = parts(&desk.store).await?;
        parts.retain(|part| self.all || !part.stopped);
        let headers = [
            "part",
            "role",
            "state",
            "works on",
            "since",
            "last seen",
            "process",
        ];
        app.output.list(&parts, headers, |part| {
            [
                part.name.to_string(),
                part.role.clone(),
                state(part, down_after, now),
                part.working_on.clone().unwrap_or_default(),
                time(part.since),
                time(part.last_seen),
                part.process.clone(),
            ]
        })
    }
}

/// Loads every part that any process has shown.
pub(crate) async fn parts(store: &Store) -> Result<Vec<Component>, ReadError> {
    let rows = store
        .list::<Component>(Query::new().order_by("role"))
        .await?;
    Ok(rows.into_iter().map(|row| row.record).collect())
}

/// Returns whether a part was not stopped and gives no sign of life all the same.
pub(crate) fn is_silent(part: &Component, down_after: Duration, now: DateTime<Utc>) -> bool {
    let silent = (now - part.last_seen).to_std().unwrap_or_default();
    !part.stopped && silent >= down_after
}

fn state(part: &Component, down_after: Duration, now: DateTime<Utc>) -> String {
    if part.stopped {
        "stopped".to_owned()
    } else if is_silent(part, down_after, now) {
        "silent".to_owned()
    } else {
        part.state.to_string()
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use ropewalk_schemas::ComponentName;
    use ropewalk_schemas::agent::AgentState;

    use super::*;

    #[test]
    fn a_part_that_was_not_stopped_is_silent_after_the_limit() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::hours(1);
        let cases = [
            (false, 89, "active"),
            (false, 90, "silent"),
            (true, 90, "stopped"),
            (true, 1, "stopped"),
        ];
        for (stopped, seconds, expected) in cases {
            let part = Component {
                name: ComponentName::parse("monitor").unwrap(),
                role: "monitor".to_owned(),
                process: "ropewalk-1".to_owned(),
                state: AgentState::Active,
                working_on: None,
                since: now,
                last_seen: now - TimeDelta::seconds(seconds),
                stopped,
            };
            let shown = state(&part, Duration::from_secs(90), now);
            assert_eq!(shown, expected, "{stopped} {seconds}");
        }
    }
}
