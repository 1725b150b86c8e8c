//! Agents and build loops as people see them: the parts that every process has shown.

mod work;

use std::time::Duration;

use chrono::{DateTime, Utc};
use ropewalk_schemas::agent::Component;
use ropewalk_store::{Query, ReadError, Store};

use super::records;

/// Lists what every part of every process does; `all` shows those that were stopped too.
pub async fn list(store: &Store, all: bool) -> Result<Vec<Component>, ReadError> {
    let rows = store
        .list::<Component>(Query::new().order_by("role"))
        .await?;
    let mut parts = records(rows);
    parts.retain(|part| all || !part.stopped);
    Ok(parts)
}

/// Says in words for eyes what a part works on; nothing for one that rests.
pub async fn work(part: &Component, store: &Store) -> Result<String, ReadError> {
    match &part.working_on {
        Some(entity) => work::in_words(entity, store).await,
        None => Ok(String::new()),
    }
}

/// Returns whether a part was not stopped and gives no sign of life all the same.
pub fn is_silent(part: &Component, down_after: Duration, now: DateTime<Utc>) -> bool {
    let silent = (now - part.last_seen).to_std().unwrap_or_default();
    !part.stopped && silent >= down_after
}

/// Says in a word what a part does.
pub fn state(part: &Component, down_after: Duration, now: DateTime<Utc>) -> &'static str {
    if part.stopped {
        "stopped"
    } else if is_silent(part, down_after, now) {
        "silent"
    } else {
        part.state.as_str()
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
