//! The life of a task: its states with what belongs to each, and their written form in the record.

mod apply;
mod input;

use chrono::{DateTime, Utc};
use ropewalk_schemas::task::{ChangeRequestState, Task, TaskState, WaitReason};
use ropewalk_schemas::{AttemptId, CommitId, QuestionId, RepoPath, TaskId};

pub use apply::{apply, apply_alone};
pub use input::{FailedAttempt, Input};

/// How far a task has come, with what belongs to that.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// Waits for the tasks that it needs, or for its build.
    Pending,
    /// May be claimed.
    Ready {
        /// Not earlier than this.
        not_before: Option<DateTime<Utc>>,
    },
    /// An attempt holds its files.
    Running {
        /// The attempt.
        attempt: AttemptId,
        /// How far that has come.
        phase: Phase,
    },
    /// Waits for something that is no task.
    Waiting {
        /// What.
        on: On,
        /// Since when it waits for that, or for others of its kind; none where the record is older than the field. Since when it
        /// wants its files is no part of a state: `Task::wants_files_since`.
        since: Option<DateTime<Utc>>,
    },
    /// Cannot go on by itself.
    Blocked {
        /// What stands in its way.
        by: Blocker,
    },
    /// Its tries are used up.
    Failed {
        /// The question what shall become of it, while that is open.
        question: Option<QuestionId>,
    },
    /// Left out.
    Skipped {
        /// By whom, or with what.
        by: Skipper,
    },
    /// Landed with the evidence of the gate.
    Complete {
        /// The commit; none for a task that only verifies.
        commit: Option<CommitId>,
        /// When.
        at: DateTime<Utc>,
    },
}

/// How far an attempt has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It holds its locks.
    Claimed,
    /// The agent works.
    Working,
    /// The gate runs.
    Validating,
    /// The candidate waits for its turn.
    Landing,
}

/// What a task waits for.
#[derive(Debug, Clone, PartialEq)]
pub enum On {
    /// Files, which its rows in the graph of waits name.
    Files(Files),
    /// A person.
    Person {
        /// The question.
        question: Option<QuestionId>,
    },
    /// The quota of a provider.
    Quota {
        /// When it is back.
        until: Option<DateTime<Utc>>,
    },
    /// A budget, which its row in the graph of waits names.
    Budget {
        /// The question whether more may be spent, where the budget is the task's own.
        question: Option<QuestionId>,
    },
    /// A check that could not run.
    Check {
        /// The question what shall become of the task.
        question: Option<QuestionId>,
    },
    /// A provider that is away, which its row in the graph of waits names.
    Outage,
}

/// Who has the files that a task waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// Another task has locked them.
    Locked,
    /// Another build owns them.
    Owned,
}

/// What stands in the way of a task.
#[derive(Debug, Clone, PartialEq)]
pub enum Blocker {
    /// The chain of tasks that it needs, the failed one last.
    Failed(Vec<TaskId>),
    /// The owner of a file, who keeps it.
    Owner,
}

/// What leaves a task out.
#[derive(Debug, Clone, PartialEq)]
pub enum Skipper {
    /// Somebody, whose word was about the task itself.
    Person {
        /// Who; none where the record is older than the field.
        name: Option<String>,
    },
    /// The chain of tasks that it needs, the one that was left out last; never empty.
    Needed(Vec<TaskId>),
}

impl Phase {
    /// Returns the phase that follows.
    pub const fn next(self) -> Option<Self> {
        match self {
            Self::Claimed => Some(Self::Working),
            Self::Working => Some(Self::Validating),
            Self::Validating => Some(Self::Landing),
            Self::Landing => None,
        }
    }

    const fn written(self) -> TaskState {
        match self {
            Self::Claimed => TaskState::Claimed,
            Self::Working => TaskState::Working,
            Self::Validating => TaskState::Validating,
            Self::Landing => TaskState::Landing,
        }
    }
}

impl State {
    /// Reads the state of a record.
    pub fn of(task: &Task) -> Self {
        let running = |phase| match task.attempt {
            Some(attempt) => Self::Running { attempt, phase },
            // Nobody would ever end what nobody runs.
            None => Self::Ready { not_before: None },
        };
        match task.state {
            TaskState::Pending => Self::Pending,
            TaskState::Ready => Self::Ready {
                not_before: task.not_before,
            },
            TaskState::Claimed => running(Phase::Claimed),
            TaskState::Working => running(Phase::Working),
            TaskState::Validating => running(Phase::Validating),
            TaskState::Landing => running(Phase::Landing),
            TaskState::Waiting => match On::of(task) {
                Some(on) => Self::Waiting {
                    on,
                    since: task.waiting_since,
                },
                None => Self::Ready { not_before: None },
            },
            TaskState::Blocked => Self::Blocked {
                by: if task.blocked_by.is_empty() {
                    Blocker::Owner
                } else {
                    Blocker::Failed(task.blocked_by.clone())
                },
            },
            TaskState::Failed => Self::Failed {
                question: task.question,
            },
            TaskState::Skipped => Self::Skipped {
                by: if task.blocked_by.is_empty() {
                    Skipper::Person {
                        name: task.skipped_by.clone(),
                    }
                } else {
                    Skipper::Needed(task.blocked_by.clone())
                },
            },
            TaskState::Complete => Self::Complete {
                commit: task.commit.clone(),
                at: task.completed_at.unwrap_or_default(),
            },
        }
    }

    /// Writes the state into a record, in place of the one that it held.
    pub fn write(self, task: &mut Task) {
        task.state = self.written();
        task.waiting_for = None;
        task.waiting_since = None;
        task.not_before = None;
        task.question = None;
        task.blocked_by.clear();
        task.skipped_by = None;
        task.attempt = None;
        match self {
            Self::Pending => {}
            Self::Ready { not_before } => task.not_before = not_before,
            Self::Running { attempt, .. } => task.attempt = Some(attempt),
            Self::Waiting { on, since } => {
                task.waiting_since = since;
                on.write(task);
            }
            Self::Blocked { by } => match by {
                Blocker::Failed(chain) => task.blocked_by = chain,
                Blocker::Owner => {}
            },
            Self::Failed { question } => task.question = question,
            Self::Skipped { by } => match by {
                Skipper::Person { name } => task.skipped_by = name,
                Skipper::Needed(chain) => {
                    // It would be read as the word of somebody.
                    debug_assert!(!chain.is_empty(), "left out with no task");
                    task.blocked_by = chain;
                }
            },
            Self::Complete { commit, at } => {
                task.commit = commit;
                task.completed_at = Some(at);
                // It is told when the work on it began.
                return;
            }
        }
        if task.attempt.is_none() {
            task.claimed_at = None;
        }
    }

    /// Returns the name of the state in the record.
    pub const fn written(&self) -> TaskState {
        match self {
            Self::Pending => TaskState::Pending,
            Self::Ready { .. } => TaskState::Ready,
            Self::Running { phase, .. } => phase.written(),
            Self::Waiting { .. } => TaskState::Waiting,
            Self::Blocked { .. } => TaskState::Blocked,
            Self::Failed { .. } => TaskState::Failed,
            Self::Skipped { .. } => TaskState::Skipped,
            Self::Complete { .. } => TaskState::Complete,
        }
    }

    /// Returns the open question that the state names.
    pub const fn question(&self) -> Option<QuestionId> {
        match self {
            Self::Failed { question }
            | Self::Waiting {
                on: On::Person { question } | On::Budget { question } | On::Check { question },
                ..
            } => *question,
            _ => None,
        }
    }
}

impl On {
    fn of(task: &Task) -> Option<Self> {
        Some(match task.waiting_for? {
            WaitReason::Lock => Self::Files(Files::Locked),
            WaitReason::Owner => Self::Files(Files::Owned),
            WaitReason::Person => Self::Person {
                question: task.question,
            },
            WaitReason::Quota => Self::Quota {
                until: task.not_before,
            },
            WaitReason::Budget => Self::Budget {
                question: task.question,
            },
            WaitReason::Check => Self::Check {
                question: task.question,
            },
            WaitReason::Outage => Self::Outage,
        })
    }

    /// Returns whether it is of the same kind as `other`, whoever has the files or what question is open.
    fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    fn write(self, task: &mut Task) {
        task.waiting_for = Some(match self {
            Self::Files(Files::Locked) => WaitReason::Lock,
            Self::Files(Files::Owned) => WaitReason::Owner,
            Self::Person { question } => {
                task.question = question;
                WaitReason::Person
            }
            Self::Quota { until } => {
                task.not_before = until;
                WaitReason::Quota
            }
            Self::Budget { question } => {
                task.question = question;
                WaitReason::Budget
            }
            Self::Check { question } => {
                task.question = question;
                WaitReason::Check
            }
            Self::Outage => WaitReason::Outage,
        });
    }
}

/// Closes the open requests of a task: for one file, or all.
pub(crate) fn close_requests(
    task: &mut Task,
    file: Option<&RepoPath>,
    state: ChangeRequestState,
    reason: &str,
    now: DateTime<Utc>,
) {
    for request in &mut task.change_requests {
        let meant = file.is_none_or(|file| file.key() == request.file.key());
        if meant && request.state == ChangeRequestState::Requested {
            request.state = state;
            request.reason = Some(reason.to_owned());
            request.decided_at = Some(now);
        }
    }
}

#[cfg(test)]
mod tests;
