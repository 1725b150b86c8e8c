//! Decides what follows a failure: class × tries × time (pipeline seed §5.3, design §10).

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_schemas::ContentHash;
use ropewalk_schemas::attempt::{Failure, FailureClass};
use ropewalk_schemas::task::Task;

/// How often the same failure may come before nothing new is expected of another try.
const IDENTICAL: usize = 3;
/// How often a failure of the machine is waited out in one round.
const TRANSIENT: usize = 3;
/// How often a provider or a network that is gone is waited out in one round: with its pauses, a quarter of an hour at least.
const OUTAGE: usize = 12;
/// How long a used-up quota rests when the provider does not say.
const QUOTA_REST: TimeDelta = TimeDelta::minutes(15);
/// How long one rests at least: whoever says that it is back sooner has refused as often as a call is tried.
const SHORTEST_REST: TimeDelta = TimeDelta::seconds(30);

/// What bounds the tries.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Tries for what the agent can mend itself.
    pub tries: u32,
    /// Rebases onto a head that changed the same lines.
    pub rebases: u32,
    /// Installs of missing packages, where a package manager may install them.
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
            installs: 2,
            backoff: Duration::from_secs(5),
            backoff_cap: Duration::from_mins(5),
        }
    }
}

/// What follows a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Another try, in the same conversation unless the failure ended that.
    Retry {
        /// Not before this.
        not_before: Option<DateTime<Utc>>,
    },
    /// Another attempt from the head that moved.
    RebaseAndRetry,
    /// The same work goes to the gate again once the missing package is there.
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
    /// The agent, at once: there is nothing that a gate could look at, and telling so costs nothing.
    Tidy,
    /// The agent, when it reads or says less at once, and after a pause: each such try is paid in full.
    Less,
    /// Time, and there must be an end to it.
    Time {
        /// So many failures of this kind are waited out.
        tries: usize,
    },
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
        | FailureClass::StubMarker
        | FailureClass::SecretFound
        | FailureClass::WeakenedTest
        | FailureClass::Timeout
        | FailureClass::DoomLoop
        | FailureClass::EvalExhausted
        | FailureClass::AgentRefused => Remedy::Agent,
        FailureClass::EmptyChange | FailureClass::OutOfScope => Remedy::Tidy,
        FailureClass::ContextFull | FailureClass::ReplyTooLarge => Remedy::Less,
        FailureClass::Network | FailureClass::ProviderDown => Remedy::Time { tries: OUTAGE },
        FailureClass::Resource => Remedy::Time { tries: TRANSIENT },
        FailureClass::MissingDependency => Remedy::Install,
        FailureClass::Conflict => Remedy::Rebase,
        FailureClass::Quota => Remedy::Quota,
        FailureClass::ToolMissing => Remedy::Hold,
        FailureClass::Tampered => Remedy::Consent,
        FailureClass::SandboxDenied
        | FailureClass::NoProgress
        | FailureClass::Blocked
        | FailureClass::Interrupted
        | FailureClass::Unknown => Remedy::Person,
    }
}

/// What happened, beside the task's own record of its round.
#[derive(Debug, Clone)]
pub struct FailureContext<'a> {
    /// The failure, not yet part of the task's round.
    pub failure: &'a Failure,
    /// When the provider said its quota is back.
    pub quota_back: Option<DateTime<Utc>>,
    /// Whether a package manager that is allowed finds its manifest beside what was checked.
    pub installable: bool,
    /// Whether another try would only meet it again, since nobody works before it.
    pub certain: bool,
    /// Now.
    pub now: DateTime<Utc>,
    /// A random fraction, so that tasks do not come back together.
    pub jitter: f64,
}

/// Returns until when a used-up quota rests. Who asks to come again at once, and has refused that as often as a call is
/// tried, has not said when.
fn quota_rests_until(happened: &FailureContext<'_>) -> DateTime<Utc> {
    let now = happened.now;
    match happened.quota_back {
        Some(back) if back > now => back.max(now + SHORTEST_REST),
        _ => now + QUOTA_REST,
    }
}

/// Decides what follows; `task` holds the round before this failure.
pub fn answer(task: &Task, happened: &FailureContext<'_>, limits: &Limits) -> Answer {
    let class = happened.failure.class;
    let earlier = &task.failures;
    match remedy(class) {
        Remedy::Agent => again(earlier, happened.failure, task.tries, limits),
        // A stray file or an empty hand uses up none of the tries of the work itself.
        Remedy::Tidy => {
            let alike = earlier.iter().filter(|failure| failure.class == class);
            let tries = u32::try_from(alike.count()).unwrap_or(u32::MAX);
            again(earlier, happened.failure, tries, limits)
        }
        Remedy::Less if task.tries + 1 < limits.tries => {
            let before = usize::try_from(task.tries).unwrap_or(usize::MAX);
            Answer::Retry {
                not_before: Some(happened.now + pause(before, limits, happened.jitter)),
            }
        }
        Remedy::Time { tries } => {
            let before = earlier
                .iter()
                .filter(|failure| matches!(remedy(failure.class), Remedy::Time { .. }))
                .count();
            if before >= tries {
                Answer::Fail { class }
            } else {
                let pause = pause(before, limits, happened.jitter);
                Answer::Retry {
                    not_before: Some(happened.now + pause),
                }
            }
        }
        Remedy::Install if happened.installable && task.installs < limits.installs => {
            Answer::InstallAndRetry
        }
        Remedy::Rebase if !happened.certain && task.rebases < limits.rebases => {
            Answer::RebaseAndRetry
        }
        Remedy::Quota => Answer::WaitQuota {
            until: quota_rests_until(happened),
        },
        Remedy::Hold => Answer::Hold,
        Remedy::Consent => Answer::AskPerson,
        Remedy::Less | Remedy::Install | Remedy::Rebase | Remedy::Person => Answer::Fail { class },
    }
}

/// Lets the agent try again, unless its tries are used up or nothing new is to be expected.
fn again(earlier: &[Failure], failure: &Failure, tries: u32, limits: &Limits) -> Answer {
    let same = |one: &&Failure| one.fingerprint == failure.fingerprint;
    let class = failure.class;
    if earlier.iter().filter(same).count() + 1 >= IDENTICAL {
        let class = FailureClass::NoProgress;
        Answer::Fail { class }
    } else if tries + 1 >= limits.tries {
        Answer::Fail { class }
    } else {
        Answer::Retry { not_before: None }
    }
}

/// Says what a person can do about a task that ended with `class`.
pub const fn recommended(class: FailureClass) -> &'static str {
    match class {
        FailureClass::NoProgress => {
            "Nothing new is to be expected of the same approach: give guidance, or skip it."
        }
        FailureClass::MissingDependency => {
            "Allow its package manager in `build.package_managers`, or put what is missing where the gate finds it; then retry it."
        }
        FailureClass::ToolMissing => "Install what is missing, then retry it.",
        FailureClass::SandboxDenied => {
            "Allow what the sandbox refused if it is right, then retry it; else skip it."
        }
        FailureClass::Network | FailureClass::ProviderDown | FailureClass::Quota => {
            "Retry it when the service answers again."
        }
        FailureClass::Interrupted => {
            "Mend what cuts it off, which may be a command of its own check; then retry it, or skip it."
        }
        FailureClass::Blocked => {
            "Its agent says why it cannot be done as it stands: give guidance, ask for a revision, or skip it."
        }
        FailureClass::Resource => "Free memory or disk space, then retry it.",
        FailureClass::ContextFull => {
            "Make the task smaller, or choose a model with a larger context in `[models]`, then retry it."
        }
        FailureClass::ReplyTooLarge => {
            "Ask for less at once: make the task smaller, or lower `max_output_tokens` in `[models]`, then retry it."
        }
        FailureClass::Conflict => {
            "Say which side is right, then retry it: lines that stand against each other are joined before it goes on. Where the checks of \
             both fail together, or one side deleted a file, a retry meets the same: ask for a revision, or skip it."
        }
        FailureClass::OutOfScope => "Add the files to the task, or give guidance.",
        _ => "Give guidance, or skip it.",
    }
}

/// Returns whether what stands against a task is to be resolved: a person was asked about that, and wants it tried again.
pub fn is_to_be_resolved(task: &Task) -> bool {
    let mut earlier = task.earlier_failures.iter();
    earlier.any(|failure| failure.class == FailureClass::Conflict)
}

/// Returns whether something stood against a task before, in this round or an earlier one.
pub fn was_met(task: &Task) -> bool {
    let mut failures = task.earlier_failures.iter().chain(&task.failures);
    failures.any(|failure| failure.class == FailureClass::Conflict)
}

/// Returns whether a failure of `class` uses up one of the counted tries.
pub const fn is_counted(class: FailureClass) -> bool {
    matches!(remedy(class), Remedy::Agent | Remedy::Less)
}

/// Returns whether a failure of `class` is waited out or installed for: it says nothing of who did the work, unless it comes again.
pub const fn is_waited_out(class: FailureClass) -> bool {
    matches!(remedy(class), Remedy::Time { .. } | Remedy::Install)
}

/// Returns whether a failure of `class` ends the conversation that met it. Where time or somebody else mends it, the journal holds
/// nothing of it, and the next attempt comes to the same place.
pub const fn ends_conversation(class: FailureClass) -> bool {
    !is_waited_out(class)
        && !matches!(
            class,
            FailureClass::ReplyTooLarge | FailureClass::Quota | FailureClass::ToolMissing
        )
}

/// Returns whether whoever begins another conversation after a failure of `class` goes on from the work that is there. Where
/// nothing new was to be expected of it, it stood against other work, or it was lost sight of, one begins anew, with that work in
/// the prompt.
pub const fn is_worth_keeping(class: FailureClass) -> bool {
    !matches!(
        class,
        FailureClass::NoProgress
            | FailureClass::Conflict
            | FailureClass::ContextFull
            | FailureClass::DoomLoop
            | FailureClass::Interrupted
    )
}

/// Returns how long a task rests whose attempt could not go on: twice as long as `before` that attempt, where it rested for the
/// same reason then, so that what does not mend by itself does not spin.
pub fn rest(before: Option<TimeDelta>, limits: &Limits) -> TimeDelta {
    let before = before.and_then(|before| before.to_std().ok());
    let doubled = before.unwrap_or_default().saturating_mul(2);
    let rest = doubled.max(limits.backoff).min(limits.backoff_cap);
    TimeDelta::from_std(rest).unwrap_or(TimeDelta::MAX)
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

/// Returns what tells a repetition: class, error without its numbers, and what was changed.
pub fn fingerprint(class: FailureClass, error: &str, changed: &[String]) -> String {
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
    for file in changed {
        plain.push('\n');
        plain.push_str(file);
    }
    ContentHash::of(plain.as_bytes()).to_string()
}

#[cfg(test)]
mod tests;
