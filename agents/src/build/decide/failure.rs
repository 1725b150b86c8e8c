//! Decides what follows a failure: class × tries × time (pipeline seed §5.3, design §10).

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_schemas::ContentHash;
use ropewalk_schemas::attempt::{Failure, FailureClass};
use ropewalk_schemas::task::Task;

/// How often the same failure may come before nothing new is expected of another try.
const IDENTICAL: usize = 3;
/// How often a failure from outside is waited out in one round.
const TRANSIENT: usize = 3;
/// How long a used-up quota rests when the provider does not say.
const QUOTA_REST: TimeDelta = TimeDelta::minutes(15);

/// What bounds the tries.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Tries for what the agent can mend itself.
    pub tries: u32,
    /// Rebases onto a head that changed the same lines.
    pub rebases: u32,
    /// Installs of missing packages; 0 while commands do not run in a sandbox.
    pub installs: u32,
    /// The first pause before a transient failure is tried again.
    pub backoff: Duration,
    /// The longest such pause.
    pub backoff_cap: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tries: 3,
            rebases: 2,
            installs: 0,
            backoff: Duration::from_secs(5),
            backoff_cap: Duration::from_mins(5),
        }
    }
}

/// What follows a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Another attempt, with the error in its prompt.
    Retry {
        /// Not before this.
        not_before: Option<DateTime<Utc>>,
    },
    /// Another attempt from the head that moved.
    RebaseAndRetry,
    /// Another attempt once the missing package is there.
    InstallAndRetry,
    /// Another attempt when the quota is back; this one does not count.
    WaitQuota {
        /// When.
        until: DateTime<Utc>,
    },
    /// The task waits, visibly, until the check can run; this try does not count.
    Hold,
    /// Work that nobody may accept alone: a person is asked, and the work is kept.
    AskPerson,
    /// The task has failed; a person is asked.
    Fail {
        /// The class after the whole round was seen, which may be `NO_PROGRESS`.
        class: FailureClass,
    },
}

impl Answer {
    /// Returns whether another attempt follows by itself.
    pub const fn will_retry(&self) -> bool {
        matches!(
            self,
            Self::Retry { .. }
                | Self::RebaseAndRetry
                | Self::InstallAndRetry
                | Self::WaitQuota { .. }
        )
    }
}

/// Who can do something about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remedy {
    /// The agent, with the error before its eyes.
    Agent,
    /// Time.
    Time,
    /// A package manager.
    Install,
    /// A rebase.
    Rebase,
    /// The provider's clock.
    Quota,
    /// Whoever installs the tool.
    Hold,
    /// A person who may accept what the agent may not do alone.
    Consent,
    /// A person.
    Person,
}

const fn remedy(class: FailureClass) -> Remedy {
    match class {
        FailureClass::SyntaxError
        | FailureClass::ValidationFailed
        | FailureClass::EmptyChange
        | FailureClass::OutOfScope
        | FailureClass::StubMarker
        | FailureClass::WeakenedTest
        | FailureClass::Timeout
        | FailureClass::DoomLoop
        | FailureClass::EvalExhausted
        | FailureClass::AgentRefused => Remedy::Agent,
        FailureClass::Network | FailureClass::Resource | FailureClass::ProviderDown => Remedy::Time,
        FailureClass::MissingDependency => Remedy::Install,
        FailureClass::Conflict => Remedy::Rebase,
        FailureClass::Quota => Remedy::Quota,
        FailureClass::ToolMissing => Remedy::Hold,
        FailureClass::Tampered => Remedy::Consent,
        FailureClass::SandboxDenied | FailureClass::NoProgress | FailureClass::Unknown => {
            Remedy::Person
        }
    }
}

/// What happened, beside the task's own record of its round.
#[derive(Debug, Clone)]
pub struct Happened<'a> {
    /// The failure, not yet part of the task's round.
    pub failure: &'a Failure,
    /// When the provider said its quota is back.
    pub quota_back: Option<DateTime<Utc>>,
    /// Now.
    pub now: DateTime<Utc>,
    /// A random fraction, so that tasks do not come back together.
    pub jitter: f64,
}

/// Decides what follows; `task` holds the round before this failure.
pub fn answer(task: &Task, happened: &Happened<'_>, limits: &Limits) -> Answer {
    let class = happened.failure.class;
    let earlier = &task.failures;
    match remedy(class) {
        Remedy::Agent => {
            let identical = 1 + earlier
                .iter()
                .filter(|failure| failure.fingerprint == happened.failure.fingerprint)
                .count();
            if identical >= IDENTICAL {
                Answer::Fail {
                    class: FailureClass::NoProgress,
                }
            } else if task.tries + 1 >= limits.tries {
                Answer::Fail { class }
            } else {
                Answer::Retry { not_before: None }
            }
        }
        Remedy::Time => {
            let before = earlier
                .iter()
                .filter(|failure| remedy(failure.class) == Remedy::Time)
                .count();
            if before + 1 > TRANSIENT {
                Answer::Fail { class }
            } else {
                let pause = pause(before, limits, happened.jitter);
                Answer::Retry {
                    not_before: Some(happened.now + pause),
                }
            }
        }
        Remedy::Install if task.installs < limits.installs => Answer::InstallAndRetry,
        Remedy::Rebase if task.rebases < limits.rebases => Answer::RebaseAndRetry,
        Remedy::Quota => Answer::WaitQuota {
            until: happened.quota_back.unwrap_or(happened.now + QUOTA_REST),
        },
        Remedy::Hold => Answer::Hold,
        Remedy::Consent => Answer::AskPerson,
        Remedy::Install | Remedy::Rebase | Remedy::Person => Answer::Fail { class },
    }
}

/// Returns whether a failure of `class` uses up one of the counted tries.
pub const fn is_counted(class: FailureClass) -> bool {
    matches!(remedy(class), Remedy::Agent)
}

fn pause(before: usize, limits: &Limits, jitter: f64) -> TimeDelta {
    let doublings = u32::try_from(before).unwrap_or(u32::MAX).min(16);
    let ceiling = limits
        .backoff
        .saturating_mul(1 << doublings)
        .min(limits.backoff_cap);
    // Half of it is certain, so that a transient failure is never tried again at once.
    let pause = ceiling.mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0));
    TimeDelta::from_std(pause).unwrap_or(TimeDelta::MAX)
}

/// Returns what tells a repetition: class, error without its numbers, and the changed files.
pub fn fingerprint(class: FailureClass, error: &str, files: &[String]) -> String {
    let mut plain = format!("{class:?}\n");
    let mut in_number = false;
    for letter in error.chars() {
        // Durations, process ids and addresses differ between two runs of the very same failure.
        if letter.is_ascii_digit() {
            if !in_number {
                plain.push('#');
            }
            in_number = true;
        } else {
            in_number = false;
            plain.push(letter);
        }
    }
    for file in files {
        plain.push('\n');
        plain.push_str(file);
    }
    ContentHash::of(plain.as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::decide::fixture::{failure, noon, task};
    use FailureClass as Class;
    use ropewalk_schemas::task::TaskState;

    fn decide(task: &Task, class: Class, error: &str) -> Answer {
        let failure = failure(class, error);
        let happened = Happened {
            failure: &failure,
            quota_back: None,
            now: noon(),
            jitter: 1.0,
        };
        answer(task, &happened, &Limits::default())
    }

    /// A task that has used `tries` counted tries with different errors.
    fn tried(tries: u32, class: Class) -> Task {
        let mut task = task("T-1", TaskState::Working, &[]);
        task.tries = tries;
        for letter in ["a", "b", "c"].iter().take(tries as usize) {
            task.failures.push(failure(class, letter));
        }
        task
    }

    #[test]
    fn what_the_agent_can_mend_gets_three_tries_without_delay() {
        let retry = Answer::Retry { not_before: None };
        for class in [
            Class::SyntaxError,
            Class::ValidationFailed,
            Class::EmptyChange,
            Class::OutOfScope,
            Class::StubMarker,
            Class::WeakenedTest,
            Class::Timeout,
            Class::DoomLoop,
            Class::EvalExhausted,
            Class::AgentRefused,
        ] {
            assert_eq!(decide(&tried(0, class), class, "x"), retry, "{class:?}");
            assert_eq!(decide(&tried(1, class), class, "x"), retry, "{class:?}");
            assert_eq!(
                decide(&tried(2, class), class, "x"),
                Answer::Fail { class },
                "{class:?}"
            );
        }
    }

    #[test]
    fn the_third_identical_failure_is_no_progress() {
        let mut task = task("T-1", TaskState::Working, &[]);
        task.failures = vec![
            failure(Class::ValidationFailed, "took 3 ms"),
            failure(Class::ValidationFailed, "took 11 ms"),
        ];
        let verdict = decide(&task, Class::ValidationFailed, "took 7 ms");
        let class = Class::NoProgress;
        assert_eq!(verdict, Answer::Fail { class });
    }

    #[test]
    fn a_transient_failure_backs_off_three_times() {
        let mut task = task("T-1", TaskState::Working, &[]);
        let seconds = [5, 10, 20];
        for pause in seconds {
            let expected = Answer::Retry {
                not_before: Some(noon() + TimeDelta::seconds(pause)),
            };
            assert_eq!(decide(&task, Class::ProviderDown, "down"), expected);
            task.failures.push(failure(Class::Network, "down"));
        }
        let class = Class::ProviderDown;
        assert_eq!(decide(&task, class, "down"), Answer::Fail { class });
    }

    #[test]
    fn every_other_class_has_its_row() {
        let mut rebased = task("T-1", TaskState::Landing, &[]);
        rebased.rebases = 2;
        let fresh = task("T-1", TaskState::Working, &[]);
        let quota = Answer::WaitQuota {
            until: noon() + TimeDelta::minutes(15),
        };
        let fail = |class| Answer::Fail { class };
        let rows = [
            (&fresh, Class::Conflict, Answer::RebaseAndRetry),
            (&rebased, Class::Conflict, fail(Class::Conflict)),
            (
                &fresh,
                Class::MissingDependency,
                fail(Class::MissingDependency),
            ),
            (&fresh, Class::Quota, quota),
            (&fresh, Class::ToolMissing, Answer::Hold),
            (&fresh, Class::Tampered, Answer::AskPerson),
            (&fresh, Class::SandboxDenied, fail(Class::SandboxDenied)),
            (&fresh, Class::NoProgress, fail(Class::NoProgress)),
            (&fresh, Class::Unknown, fail(Class::Unknown)),
        ];
        for (task, class, expected) in rows {
            assert_eq!(decide(task, class, "x"), expected, "{class:?}");
        }
    }

    #[test]
    fn installing_is_off_unless_allowed_and_then_bounded() {
        let limits = Limits {
            installs: 2,
            ..Limits::default()
        };
        let missing = failure(Class::MissingDependency, "x");
        let mut task = task("T-1", TaskState::Working, &[]);
        for installs in 0..3 {
            task.installs = installs;
            let happened = Happened {
                failure: &missing,
                quota_back: None,
                now: noon(),
                jitter: 0.0,
            };
            let allowed = answer(&task, &happened, &limits) == Answer::InstallAndRetry;
            assert_eq!(allowed, installs < 2);
        }
    }
}
