//! Decides what becomes of the build: it goes on, pauses, stops, fails, or is checked as a whole.

use std::time::Duration;

use chrono::{DateTime, Utc};
use ropewalk_schemas::build::{Build, BuildState, PauseReason, StopCause};
use ropewalk_schemas::task::{Task, TaskState, WaitReason};

use super::counts::named;

/// When a build gives up.
#[derive(Debug, Clone)]
pub struct StopLimits {
    /// More failed tasks than this stop it.
    pub max_failed: usize,
    /// A failed task of one of these phases stops it.
    pub critical_phases: Vec<String>,
    /// The longest working time, without waits and pauses.
    pub working_time: Duration,
}

impl Default for StopLimits {
    fn default() -> Self {
        Self {
            max_failed: 3,
            critical_phases: vec!["database".to_owned()],
            working_time: Duration::from_hours(2),
        }
    }
}

/// What follows for the build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing changes.
    Continue,
    /// It stands still.
    Pause {
        /// Why.
        reason: PauseReason,
        /// Why, for people.
        detail: String,
    },
    /// It runs again.
    Resume,
    /// Everything landed or was left out: the whole is checked.
    Verify,
    /// Nothing is left to move, and the goal is not reached.
    Fail {
        /// Why, for people.
        reason: String,
    },
    /// It gives up for now and can be resumed.
    Stop {
        /// Why.
        why: StopCause,
        /// Why, for people.
        reason: String,
    },
    /// It was stopped, and its last attempt has ended.
    Conclude,
}

/// Decides the next step of a build whose tasks have settled.
pub fn next(build: &Build, tasks: &[Task], limits: &StopLimits, now: DateTime<Utc>) -> Step {
    let active = tasks.iter().any(|task| task.state.is_active());
    match build.state {
        BuildState::Stopped if build.completed_at.is_none() && !active => Step::Conclude,
        BuildState::Running => {
            if let Some((why, reason)) = stop_reason(build, tasks, limits, now) {
                Step::Stop { why, reason }
            } else if active {
                Step::Continue
            } else if build.pause_requested {
                Step::Pause {
                    reason: PauseReason::Person,
                    detail: "paused on request".to_owned(),
                }
            } else if let Some(scope) = &build.exhausted {
                Step::Pause {
                    reason: PauseReason::Budget,
                    detail: format!("the budget `{scope}` is used up"),
                }
            } else {
                at_rest(tasks)
            }
        }
        BuildState::Paused => resumption(build, tasks),
        _ => Step::Continue,
    }
}

/// Says why the build gives up, if it does.
pub fn stop_reason(
    build: &Build,
    tasks: &[Task],
    limits: &StopLimits,
    now: DateTime<Utc>,
) -> Option<(StopCause, String)> {
    let failed: Vec<&Task> = tasks
        .iter()
        .filter(|task| task.state == TaskState::Failed)
        .collect();
    if failed.len() > limits.max_failed {
        let names = named(tasks, TaskState::Failed).unwrap_or_default();
        return Some((StopCause::Failures, format!("too many failures: {names}")));
    }
    let critical = failed
        .iter()
        .find(|task| limits.critical_phases.contains(&task.block.phase));
    if let Some(task) = critical {
        let phase = &task.block.phase;
        let told = format!("critical task `{}` of phase `{phase}` failed", task.id);
        return Some((StopCause::CriticalTask, told));
    }
    (working_time(build, now) >= limits.working_time).then(|| {
        let minutes = limits.working_time.as_secs() / 60;
        let told = format!("time limit: {minutes} minutes of working time are used up");
        (StopCause::WorkingTime, told)
    })
}

/// Returns the working time so far, without waits and pauses.
pub fn working_time(build: &Build, now: DateTime<Utc>) -> Duration {
    let running = build
        .working_since
        .and_then(|since| (now - since).to_std().ok())
        .unwrap_or_default();
    Duration::from_millis(build.working_ms).saturating_add(running)
}

/// Decides for a running build in which no attempt runs.
fn at_rest(tasks: &[Task]) -> Step {
    let waits = |reason| {
        tasks
            .iter()
            .any(|task| task.state == TaskState::Waiting && task.waiting_for == Some(reason))
    };
    let ready = tasks.iter().any(|task| task.state == TaskState::Ready);
    if ready || waits(WaitReason::Lock) || waits(WaitReason::Owner) {
        return Step::Continue;
    }
    let pause = |reason, detail: &str| Step::Pause {
        reason,
        detail: detail.to_owned(),
    };
    if waits(WaitReason::Quota) {
        return pause(PauseReason::Quota, "waits for the provider's quota");
    }
    if waits(WaitReason::Outage) {
        return pause(PauseReason::Outage, "waits for a provider that is away");
    }
    if waits(WaitReason::Budget) {
        return pause(PauseReason::Budget, "the budget is used up");
    }
    if waits(WaitReason::Check) {
        return pause(
            PauseReason::Person,
            "a check could not run; mend what it needs and resume",
        );
    }
    if has_open_question(tasks) {
        return pause(PauseReason::Person, "only open questions are left");
    }
    let reached = tasks.iter().any(|task| task.state == TaskState::Complete);
    match unfinished(tasks) {
        None if reached => Step::Verify,
        None => Step::Fail {
            reason: "nothing was built: every task was skipped".to_owned(),
        },
        Some(reason) => Step::Fail { reason },
    }
}

fn has_open_question(tasks: &[Task]) -> bool {
    tasks.iter().any(|task| {
        task.question.is_some() && matches!(task.state, TaskState::Failed | TaskState::Waiting)
    })
}

/// Names what keeps the build from its goal, if anything does.
fn unfinished(tasks: &[Task]) -> Option<String> {
    let told: Vec<String> = [
        (TaskState::Failed, "failed"),
        (TaskState::Blocked, "blocked"),
        (TaskState::Pending, "never ready"),
        (TaskState::Waiting, "waiting"),
    ]
    .into_iter()
    .filter_map(|(state, word)| named(tasks, state).map(|names| format!("{word}: {names}")))
    .collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// Decides whether a paused build runs again by itself.
fn resumption(build: &Build, tasks: &[Task]) -> Step {
    let contested = build.pause_reason == Some(PauseReason::Conflict)
        || build.question.is_some()
        || build.exhausted.is_some();
    if build.pause_requested || contested {
        return Step::Continue;
    }
    match at_rest(tasks) {
        // What it stands still for may be over while something else still holds it.
        Step::Pause { reason, detail } if build.pause_reason.is_some_and(|told| told != reason) => {
            Step::Pause { reason, detail }
        }
        Step::Pause { .. } => Step::Continue,
        _ => Step::Resume,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::fixture::{build, noon, task};
    use TaskState::{Blocked, Complete, Failed, Pending, Ready, Skipped, Waiting, Working};
    use ropewalk_schemas::QuestionId;
    use uuid::Uuid;

    fn tasks(states: &[TaskState]) -> Vec<Task> {
        let mut made = Vec::new();
        for (position, state) in states.iter().enumerate() {
            made.push(task(&format!("T-{}", position + 1), *state, &[]));
        }
        made
    }

    fn decide(build: &Build, tasks: &[Task]) -> Step {
        next(build, tasks, &StopLimits::default(), noon())
    }

    fn fail(reason: &str) -> Step {
        Step::Fail {
            reason: reason.to_owned(),
        }
    }

    #[test]
    fn a_running_build_goes_on_is_checked_or_fails() {
        let rows: [(&[TaskState], Step); 7] = [
            (&[Complete, Working, Ready], Step::Continue),
            (&[Complete, Ready], Step::Continue),
            (&[Failed, Ready], Step::Continue),
            (&[Complete, Skipped], Step::Verify),
            (&[Complete, Failed], fail("failed: `T-2`")),
            (&[Failed, Blocked], fail("failed: `T-1`; blocked: `T-2`")),
            (&[Complete, Pending], fail("never ready: `T-2`")),
        ];
        for (states, expected) in rows {
            assert_eq!(decide(&build(), &tasks(states)), expected, "{states:?}");
        }
    }

    #[test]
    fn a_pause_whose_reason_is_over_tells_the_reason_that_is_left() {
        let mut build = build();
        build.state = BuildState::Paused;
        build.pause_reason = Some(PauseReason::Budget);
        let mut tasks = tasks(&[Blocked, Failed]);
        tasks[1].question = Some(QuestionId(Uuid::nil()));
        let expected = Step::Pause {
            reason: PauseReason::Person,
            detail: "only open questions are left".to_owned(),
        };
        assert_eq!(decide(&build, &tasks), expected);
        build.pause_reason = Some(PauseReason::Person);
        assert_eq!(decide(&build, &tasks), Step::Continue);
    }

    #[test]
    fn only_questions_left_pauses_and_an_answer_resumes() {
        let mut tasks = tasks(&[Complete, Failed]);
        tasks[1].question = Some(QuestionId(Uuid::nil()));
        let mut build = build();
        let paused = decide(&build, &tasks);
        let reason = PauseReason::Person;
        assert!(matches!(paused, Step::Pause { reason: found, .. } if found == reason));
        build.state = BuildState::Paused;
        build.pause_reason = Some(reason);
        assert_eq!(decide(&build, &tasks), Step::Continue);
        tasks[1].question = None;
        assert_eq!(decide(&build, &tasks), Step::Resume);
        tasks[1].state = Ready;
        assert_eq!(decide(&build, &tasks), Step::Resume);
    }

    #[test]
    fn a_requested_pause_waits_for_running_tasks_and_then_holds() {
        let mut build = build();
        build.pause_requested = true;
        assert_eq!(decide(&build, &tasks(&[Working, Ready])), Step::Continue);
        let paused = decide(&build, &tasks(&[Complete, Ready]));
        assert!(matches!(paused, Step::Pause { .. }));
        build.state = BuildState::Paused;
        assert_eq!(decide(&build, &tasks(&[Complete, Ready])), Step::Continue);
    }

    #[test]
    fn each_wait_has_its_pause() {
        for (wait, expected) in [
            (WaitReason::Quota, PauseReason::Quota),
            (WaitReason::Outage, PauseReason::Outage),
            (WaitReason::Budget, PauseReason::Budget),
            (WaitReason::Check, PauseReason::Person),
        ] {
            let mut tasks = tasks(&[Complete, Waiting]);
            tasks[1].waiting_for = Some(wait);
            let step = decide(&build(), &tasks);
            assert!(matches!(step, Step::Pause { reason, .. } if reason == expected));
        }
        let mut tasks = tasks(&[Complete, Waiting]);
        tasks[1].waiting_for = Some(WaitReason::Owner);
        assert_eq!(decide(&build(), &tasks), Step::Continue);
    }

    #[test]
    fn a_fourth_failure_stops_and_a_third_does_not() {
        let three = tasks(&[Failed, Failed, Failed, Ready]);
        assert_eq!(decide(&build(), &three), Step::Continue);
        let four = tasks(&[Failed, Failed, Failed, Failed, Ready]);
        let Step::Stop { reason, .. } = decide(&build(), &four) else {
            panic!("a fourth failure stops");
        };
        assert!(reason.starts_with("too many failures: `T-1`"), "{reason}");
    }

    #[test]
    fn a_failed_critical_task_and_a_used_up_time_stop() {
        let mut critical = tasks(&[Failed, Ready]);
        critical[0].block.phase = "database".to_owned();
        assert!(matches!(decide(&build(), &critical), Step::Stop { .. }));
        let ready = tasks(&[Working]);
        let mut build = build();
        build.working_ms = 119 * 60_000;
        build.working_since = Some(noon() - chrono::TimeDelta::seconds(59));
        assert_eq!(decide(&build, &ready), Step::Continue);
        build.working_since = Some(noon() - chrono::TimeDelta::seconds(60));
        assert!(matches!(decide(&build, &ready), Step::Stop { .. }));
    }

    #[test]
    fn a_stopped_build_concludes_when_its_last_attempt_has_ended() {
        let mut build = build();
        build.state = BuildState::Stopped;
        assert_eq!(decide(&build, &tasks(&[Working])), Step::Continue);
        assert_eq!(decide(&build, &tasks(&[Ready])), Step::Conclude);
        build.completed_at = Some(noon());
        assert_eq!(decide(&build, &tasks(&[Ready])), Step::Continue);
    }
}
