//! Counts how a build went.

use std::collections::BTreeMap;
use std::time::Duration;

use ropewalk_schemas::task::TaskState;

/// What the metrics need to know of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskFacts {
    /// How it ended.
    pub state: TaskState,
    /// The attempts that failed; one that was only interrupted is none.
    pub failures: u32,
    /// Whether it carried lessons.
    pub has_gotchas: bool,
}

impl TaskFacts {
    /// Returns whether the task landed without a failure.
    pub fn passed_first(&self) -> bool {
        self.state == TaskState::Complete && self.failures == 0
    }
}

/// Counts; a share of nothing is 0.
pub fn metrics(
    tasks: &[TaskFacts],
    elapsed: Duration,
    working: Duration,
    prevented: usize,
) -> BTreeMap<String, f64> {
    let share = |part: usize, whole: usize| {
        if whole == 0 {
            0.0
        } else {
            number(part) / number(whole)
        }
    };
    let first = tasks.iter().filter(|task| task.passed_first()).count();
    let carrying = tasks.iter().filter(|task| task.has_gotchas);
    let helped = carrying.clone().filter(|task| task.passed_first()).count();
    let failures: u32 = tasks.iter().map(|task| task.failures).sum();
    [
        ("first_pass_success", share(first, tasks.len())),
        ("gotcha_effectiveness", share(helped, carrying.count())),
        ("gotcha_prevented_failure", number(prevented)),
        ("build_duration_minutes", minutes(elapsed)),
        ("working_minutes", minutes(working)),
        ("failed_attempts", f64::from(failures)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

fn minutes(duration: Duration) -> f64 {
    // Thousandths of a minute are exact enough and read well.
    (duration.as_secs_f64() / 60.0 * 1_000.0).round() / 1_000.0
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_counted_and_a_share_of_nothing_is_none() {
        let task = |state, failures, has_gotchas| TaskFacts {
            state,
            failures,
            has_gotchas,
        };
        let complete = |failures, gotchas| task(TaskState::Complete, failures, gotchas);
        let rows = [
            (vec![], 0.0, 0.0),
            (vec![complete(0, false)], 1.0, 0.0),
            (vec![complete(1, false)], 0.0, 0.0),
            (vec![complete(0, true), complete(1, true)], 0.5, 0.5),
            (
                vec![complete(0, true), task(TaskState::Skipped, 0, false)],
                0.5,
                1.0,
            ),
            (vec![task(TaskState::Failed, 0, true)], 0.0, 0.0),
        ];
        for (tasks, first, effective) in rows {
            let found = metrics(&tasks, Duration::from_secs(90), Duration::from_mins(1), 2);
            let named = |name: &str| found[name];
            assert!(
                (named("first_pass_success") - first).abs() < 1e-9,
                "{tasks:?}"
            );
            assert!(
                (named("gotcha_effectiveness") - effective).abs() < 1e-9,
                "{tasks:?}"
            );
            assert!((named("build_duration_minutes") - 1.5).abs() < 1e-9);
            assert!((named("gotcha_prevented_failure") - 2.0).abs() < 1e-9);
        }
    }
}
