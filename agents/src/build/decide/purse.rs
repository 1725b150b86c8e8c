//! Decides what follows from an answer to a budget question, and when a budget of a day is over.

use chrono::{DateTime, Utc};

/// What a person said about a budget that is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// It is raised by so much of what it was.
    Raise {
        /// Percent of the configured limit.
        percent: u64,
    },
    /// The build is stopped.
    Stop,
}

/// Reads an answer to `budget_exceeded`; what is no clear wish to spend stops.
pub fn reply(text: &str) -> Reply {
    let plain = text.trim().to_lowercase();
    if plain.starts_with("raise it by half") {
        Reply::Raise { percent: 50 }
    } else if plain.starts_with("raise it by as much again") || plain == "double it" {
        Reply::Raise { percent: 100 }
    } else {
        Reply::Stop
    }
}

/// Returns whether the budget `scope` is that of a day that has passed.
pub fn is_over(scope: &str, now: DateTime<Utc>) -> bool {
    scope
        .strip_prefix("day/")
        .is_some_and(|day| day != now.date_naive().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::decide::fixture::noon;

    #[test]
    fn only_a_clear_wish_spends_more() {
        let rows = [
            ("Raise it by half", Reply::Raise { percent: 50 }),
            ("raise it by as much again", Reply::Raise { percent: 100 }),
            ("Stop the build", Reply::Stop),
            ("hm", Reply::Stop),
        ];
        for (text, expected) in rows {
            assert_eq!(reply(text), expected, "{text}");
        }
    }

    #[test]
    fn only_a_day_passes() {
        let today = format!("day/{}", noon().date_naive());
        for (scope, expected) in [
            (today.as_str(), false),
            ("day/1999-12-31", true),
            ("project", false),
            ("build/1", false),
        ] {
            assert_eq!(is_over(scope, noon()), expected, "{scope}");
        }
    }
}
