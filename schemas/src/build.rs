//! Defines builds (design §6, §10).

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::attempt::Level;
use crate::event::Priority;
use crate::ids::{
    BuildId, CommitId, ContentHash, CorrelationId, EventId, QuestionId, Slug, SpecId, UserSlug,
};
use crate::model_call::Spending;
use crate::payload::SpecApproved;
use crate::specification::Price;
use crate::state::states;

states! {
    /// Says how far a build has come.
    BuildState ("build") {
        /// Approved, not begun.
        Queued = "queued" => [Priming, Paused, Stopped, Failed],
        /// Its context and task graph are being laid.
        Priming = "priming" => [Running, Paused, Failed, Stopped],
        /// Its tasks run.
        Running = "running" => [Paused, Verifying, Failed, Stopped],
        /// It stands still; `pause_reason` says why.
        Paused = "paused" => [Running, Stopped, Failed],
        /// The whole-build check runs.
        Verifying = "verifying" => [Succeeded, Failed, Running, Paused, Stopped],
        /// Everything landed or was skipped by a decision, and the whole-build check passed.
        Succeeded = "succeeded" => [Running, Stopped],
        /// It ended without reaching its goal.
        Failed = "failed" => [Running, Stopped],
        /// It was stopped, and can be resumed unless its idea was abandoned.
        Stopped = "stopped" => [Running],
    }
}

impl BuildState {
    /// Returns whether nothing more comes of a build unless somebody goes on with it.
    pub const fn has_ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Stopped)
    }
}

/// Says why a build stands still.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum PauseReason {
    /// A person asked for it, or only questions are left.
    Person,
    /// A provider's quota is used up.
    Quota,
    /// A budget is used up.
    Budget,
    /// A provider is away.
    Outage,
    /// Somebody else moved its branch, or a file is contested.
    Conflict,
}

/// Says why a build was stopped.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum StopCause {
    /// A person asked for it; it goes on for nothing less than that person's word.
    Person,
    /// Too many of its tasks failed.
    Failures,
    /// A task of a critical phase failed.
    CriticalTask,
    /// Its working time is used up.
    WorkingTime,
    /// A later revision goes on from it.
    Amended,
    /// Its idea was abandoned: nothing goes on from it, and its files are free.
    Abandoned,
}

/// Tasks by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskCounts {
    /// All tasks.
    pub total: u32,
    /// Landed.
    pub complete: u32,
    /// Failed.
    pub failed: u32,
    /// Left out.
    pub skipped: u32,
    /// Blocked by a failed task.
    pub blocked: u32,
}

impl TaskCounts {
    /// Returns whether each task landed or was left out, so that there is none to try again.
    pub const fn are_all_done(&self) -> bool {
        self.total > 0 && self.complete + self.skipped == self.total
    }

    /// Returns whether the newest landing made it half of the tasks, and not all of them.
    pub const fn just_reached_half(&self) -> bool {
        let half = self.total.div_ceil(2);
        self.complete == half && half < self.total
    }
}

/// What a person allowed a build beyond a budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Raise {
    /// The budget, as `budget.exceeded` names it.
    pub scope: String,
    /// So many tokens more, where it limits tokens.
    pub tokens: u64,
    /// So many millionths of a dollar more, where it limits money.
    pub micro_usd: u64,
    /// Who allowed it.
    pub by: String,
}

/// A build whose work another one builds on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Predecessor {
    /// The build.
    pub build: BuildId,
    /// The head of it that the other one contains, or has to contain.
    pub commit: CommitId,
}

/// Work on a build that failed several times in a row and is tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailingWork {
    /// What it is, for example `publication`.
    pub work: String,
    /// How often in a row it failed.
    pub count: u32,
    /// What the reason of the build was given to say of it.
    pub shown: String,
}

/// A build of one approved revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Build {
    /// Names it.
    pub id: BuildId,
    /// What it builds.
    pub spec: SpecId,
    /// The approved revision.
    pub revision: u32,
    /// The approved hash.
    pub hash: ContentHash,
    /// The idea.
    pub idea: Slug,
    /// Whose idea it is.
    pub user: UserSlug,
    /// How far it has come.
    pub state: BuildState,
    /// Why it is in that state, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The work on it that failed, of which the reason says or said so; absent in what was stored before it was written down.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<FailingWork>,
    /// Why it stands still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_reason: Option<PauseReason>,
    /// Why it was stopped; absent in what was stored before causes were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopCause>,
    /// Whether a pause waits for running tasks.
    pub pause_requested: bool,
    /// The branch it lands on.
    pub branch: String,
    /// The commit it started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<CommitId>,
    /// The head: SQL owns it, the git ref follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<CommitId>,
    /// The head that the git ref was last moved to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<CommitId>,
    /// The branch it would be merged into.
    pub target: String,
    /// The build of an earlier revision whose work it goes on from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<BuildId>,
    /// The build of a later revision that goes on from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continued_by: Option<BuildId>,
    /// How urgent it is.
    pub priority: Priority,
    /// How deep its whole-build check looks, if a person chose that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// The security checks whose findings a person accepted.
    #[serde(default)]
    pub accepted: Vec<String>,
    /// The open question about the whole build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionId>,
    /// Working time so far, milliseconds, without waits and pauses.
    pub working_ms: u64,
    /// When the running stretch of working time began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_since: Option<DateTime<Utc>>,
    /// The price that was shown when it was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<Price>,
    /// What it has used, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spending>,
    /// The budget that is used up, if one of the whole build is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exhausted: Option<String>,
    /// What people allowed beyond the budgets, oldest first.
    #[serde(default)]
    pub raises: Vec<Raise>,
    /// The merge, once made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<CommitId>,
    /// The builds whose heads it has joined into its own, in that order; they are merged before it.
    #[serde(default)]
    pub follows: Vec<Predecessor>,
    /// The chain of events it belongs to.
    pub correlation_id: CorrelationId,
    /// The event that set it going: its approval, then its start. What it does later is caused by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<EventId>,
    /// When it was approved.
    pub created_at: DateTime<Utc>,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
}

impl Build {
    /// Says that a later revision takes over, and waits for what still runs.
    pub fn gives_way(&self) -> bool {
        let amended = self.stop == Some(StopCause::Amended);
        self.state == BuildState::Stopped && amended && self.completed_at.is_none()
    }

    /// Says that it moves again on the word of a person alone; what a provider holds up, or a budget of the day, goes on by itself.
    pub fn rests(&self) -> bool {
        match self.state {
            BuildState::Failed | BuildState::Stopped => true,
            BuildState::Paused => match self.pause_reason {
                Some(PauseReason::Quota | PauseReason::Outage) => false,
                Some(PauseReason::Budget) => {
                    let scope = self.exhausted.as_deref();
                    scope.is_none_or(|scope| !scope.starts_with("day/"))
                }
                Some(PauseReason::Person | PauseReason::Conflict) | None => true,
            },
            BuildState::Queued
            | BuildState::Priming
            | BuildState::Running
            | BuildState::Verifying
            | BuildState::Succeeded => false,
        }
    }

    /// Says that attempts which run may go on, and land.
    pub fn lets_land(&self) -> bool {
        self.state == BuildState::Running || self.gives_way()
    }

    /// Returns the build of an approval that nothing has happened to yet: queued, for a branch of its idea's name.
    ///
    /// The branch is settled when the ground is laid and it is known which names are free.
    pub fn queued(
        id: BuildId,
        approval: &SpecApproved,
        correlation_id: CorrelationId,
        created_at: DateTime<Utc>,
    ) -> Self {
        Self {
            id,
            spec: approval.spec_id,
            revision: approval.revision,
            hash: approval.hash.clone(),
            idea: approval.idea_slug.clone(),
            user: approval.user_slug.clone(),
            branch: format!("build/{}", approval.idea_slug),
            state: BuildState::Queued,
            reason: None,
            failing: Vec::new(),
            pause_reason: None,
            stop: None,
            pause_requested: false,
            base: None,
            head: None,
            published: None,
            target: "main".to_owned(),
            continues: None,
            continued_by: None,
            priority: approval.priority,
            level: None,
            accepted: Vec::new(),
            question: None,
            working_ms: 0,
            working_since: None,
            quote: approval.price.clone(),
            spent: None,
            exhausted: None,
            raises: Vec::new(),
            merged: None,
            follows: Vec::new(),
            correlation_id,
            cause: None,
            created_at,
            started_at: None,
            completed_at: None,
        }
    }
}
