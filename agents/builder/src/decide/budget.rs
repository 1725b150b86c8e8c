//! Decides when a budget of a day is over.

use chrono::{DateTime, Utc};

/// Returns whether the budget `scope` is that of a day that has passed.
pub fn is_over(scope: &str, now: DateTime<Utc>) -> bool {
    scope
        .strip_prefix("day/")
        .is_some_and(|day| day != now.date_naive().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::fixture::{build, noon};
    use ropewalk_schemas::build::{Build, BuildState, PauseReason};

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
            let paused = Build {
                state: BuildState::Paused,
                pause_reason: Some(PauseReason::Budget),
                exhausted: Some(scope.to_owned()),
                ..build()
            };
            let goes_on = scope.starts_with("day/");
            assert_eq!(paused.rests(), !goes_on, "{scope}");
        }
    }
}
