//! Names what can happen to a build.

use ropewalk_schemas::build::{PauseReason, StopCause};
use ropewalk_schemas::{BuildId, CommitId, Priority, QuestionId};

/// What can happen to a build.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Its ground is being laid.
    Prime,
    /// Its ground is laid.
    Begin,
    /// A person wants it to stand still; running tasks finish.
    Pause {
        /// How many still run, for people.
        told: String,
    },
    /// Fewer tasks run before the pause that was asked for.
    Count {
        /// How many still run, for people.
        told: String,
    },
    /// Nothing of it can move.
    Rest {
        /// Why.
        why: PauseReason,
        /// Why, for people.
        detail: String,
    },
    /// A check of the whole could not run, or what was done for it ended the program too often.
    Hold {
        /// Why, for people.
        detail: String,
    },
    /// Somebody else moved its branch.
    Contest {
        /// What, for people.
        detail: String,
    },
    /// What was asked about its branch is done.
    SettleBranch,
    /// What it stood still for is over.
    GoOn,
    /// A person lets it go on, or begin another round.
    Resume,
    /// One of its tasks is tried again, or left out, on the word of a person.
    Revive {
        /// Whether that was the wish itself; what a person stopped goes on for nothing less.
        express: bool,
    },
    /// Everything landed or was left out.
    Verify,
    /// The check of the whole passed.
    Pass {
        /// What was left out or is not shown by anything, for people.
        told: Option<String>,
    },
    /// The goal cannot be reached.
    Fail {
        /// Why, for people.
        why: String,
    },
    /// It is stopped.
    Stop {
        /// Why.
        why: StopCause,
        /// Why, for people.
        told: String,
    },
    /// Its idea is given up: nothing of it goes on.
    Abandon {
        /// Who gave it up and why, for people.
        told: String,
    },
    /// A person says how urgent it is.
    Rank {
        /// From now on.
        priority: Priority,
    },
    /// Its last attempt has ended.
    Conclude,
    /// A later revision goes on from here.
    Amend {
        /// The build of it.
        by: BuildId,
        /// The revision.
        revision: u32,
    },
    /// A budget of the whole build is used up.
    ExhaustBudget {
        /// The budget.
        scope: String,
    },
    /// There is budget again.
    Fund {
        /// A budget that is still used up.
        left: Option<String>,
    },
    /// Its branch is landed.
    Land {
        /// The head that has it.
        commit: CommitId,
        /// How, for people.
        told: String,
    },
    /// Somebody landed its branch by other ways, in whatever state it is.
    Merge {
        /// The head that has it.
        commit: CommitId,
    },
    /// Its branch could not be landed.
    RefuseLanding {
        /// Why, for people.
        why: String,
    },
    /// A person accepts what a security check found.
    AcceptRisk {
        /// The check.
        check: String,
        /// Who.
        by: String,
        /// What of it is still to be answered; it is checked again when that is nothing.
        left: Option<Option<QuestionId>>,
    },
    /// What is done for it fails again and again, or does so no more; nothing else changes.
    Explain {
        /// Why it does not go on, for people; none once it does.
        told: Option<String>,
    },
    /// What was asked about the whole of it is answered, and changes nothing.
    Heed {
        /// What is told of it.
        told: Option<String>,
    },
    /// A question about the whole of it is open, in place of the one before; none where nothing is asked any more.
    Ask(Option<QuestionId>),
}

impl Input {
    /// Says what was wanted of a build that has no use for it, after "it cannot".
    pub(super) const fn wish(&self) -> &'static str {
        match self {
            Self::Prime | Self::Begin => "begin",
            Self::Pause { .. } | Self::Count { .. } | Self::Rest { .. } => "be paused",
            Self::Hold { .. } => "be held",
            Self::Contest { .. } => "lose its branch",
            Self::SettleBranch => "be given a branch",
            Self::GoOn => "go on",
            Self::Resume | Self::Revive { .. } => "be resumed",
            Self::Verify => "be checked",
            Self::Pass { .. } => "succeed",
            Self::Fail { .. } => "fail",
            Self::Stop { .. } => "be stopped",
            Self::Abandon { .. } => "be abandoned",
            Self::Rank { .. } => "be given a priority",
            Self::Conclude => "be concluded",
            Self::Amend { .. } => "be amended",
            Self::ExhaustBudget { .. } => "use up a budget",
            Self::Fund { .. } => "be given budget",
            Self::Land { .. } | Self::Merge { .. } | Self::RefuseLanding { .. } => "be landed",
            Self::AcceptRisk { .. } => "be checked again",
            Self::Explain { .. } | Self::Heed { .. } => "be told",
            Self::Ask(_) => "hold a question",
        }
    }
}
