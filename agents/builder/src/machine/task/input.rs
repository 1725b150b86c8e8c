//! Names what can happen to a task.

use chrono::{DateTime, Utc};
use ropewalk_engine::BudgetOverrun;
use ropewalk_gate::protected::ProtectedChange;
use ropewalk_schemas::attempt::Failure;
use ropewalk_schemas::task::KeptWork;
use ropewalk_schemas::{AttemptId, CommitId, ComponentName, QuestionId, RepoPath};

use crate::decide::failure::Answer;
use crate::decide::readiness::Edges;
use crate::machine::TopicQuestion;
use crate::machine::task::{Files, Phase};

/// What can happen to a task.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// The tasks that it needs have come so far.
    Edges(Edges),
    /// An earlier build has landed it already.
    Carry {
        /// The commit.
        commit: Option<CommitId>,
        /// When.
        at: DateTime<Utc>,
        /// How many attempts that took.
        attempts: u32,
    },
    /// An earlier build has begun it.
    TakeUp {
        /// What was made so far, if anything was.
        work: Option<CommitId>,
        /// What people said to it.
        guidance: Vec<String>,
    },
    /// A loop takes it, with its files.
    Claim {
        /// The attempt that begins.
        attempt: AttemptId,
        /// Whether it goes on with a try that was counted when it began: one that was cut off after it was sent back, or whose
        /// work goes to the gate again as it is.
        goes_on: bool,
        /// Whether it takes up a conversation again, whose replies so far know only what was told then, and which comes again to
        /// what it handed in.
        resumes: bool,
    },
    /// Others have its files.
    Obstruct {
        /// How.
        by: Files,
        /// Who, for people.
        told: String,
    },
    /// The running attempt waits for more files, with its locks in hand.
    Await {
        /// Who has them, for people.
        told: String,
    },
    /// The running attempt has moved.
    Progress,
    /// The running attempt has the files that it waited for.
    Extend,
    /// The running attempt waits no more, and did not get what it wanted.
    Refrain,
    /// The running attempt has come to a phase.
    Reach(Phase),
    /// The candidate is the build's head.
    Land {
        /// The commit; none for a task that only verifies.
        commit: Option<CommitId>,
    },
    /// The gate refused the candidate, and the same conversation goes on.
    SendBack(Failure),
    /// The attempt failed.
    Fail(Box<FailedAttempt>),
    /// The attempt was cut off: by a crash, a lost lock, or the end of its build. The same work is run again.
    CutOff {
        /// By what.
        why: String,
        /// Not to be claimed earlier, since whatever kept it from its work may still be there.
        not_before: Option<DateTime<Utc>>,
        /// Whether the work itself may be the reason.
        counts: bool,
    },
    /// Somebody ends the attempt; the next one begins anew.
    Interrupt {
        /// Why.
        why: String,
    },
    /// The attempt stands still, so it is ended; a person says what shall become of the task.
    Suspend {
        /// What was seen of it.
        why: String,
    },
    /// Its model asks a person, and the same conversation goes on with the answer.
    PutQuestion(Box<TopicQuestion>),
    /// A person has answered what its model asked.
    Answer,
    /// The next model call would go beyond a budget.
    ExhaustBudget {
        /// The budget.
        exceeded: Box<BudgetOverrun>,
        /// Whether the budget is the task's own, so that it is asked about the task.
        own: bool,
    },
    /// The provider of its model is away; the same work is run again when it is back.
    LoseProvider {
        /// The provider.
        provider: String,
        /// Since when it is away, for people.
        told: String,
    },
    /// The provider answers again.
    ProviderBack,
    /// The files that it waited for are free.
    FilesFree,
    /// A moment has come that it may have waited for.
    Tick,
    /// There is budget again.
    Fund,
    /// A person lets its build go on.
    Resume,
    /// The owner of a file let it go.
    HandOver {
        /// The file.
        file: RepoPath,
        /// Why.
        why: String,
    },
    /// A file that it waits for has another owner now.
    ChangeOwner {
        /// The file.
        file: RepoPath,
    },
    /// The owner of a file keeps it.
    Deny {
        /// Why.
        why: String,
    },
    /// A person allows the change that was asked about.
    Allow {
        /// The work that was shown, which goes to the gate as it is.
        shown: Option<KeptWork>,
        /// What was said of earlier answers about the same, which hold no more.
        overruled: Vec<String>,
        /// What was said with it, and is told before it lands; none where the work is right as it is.
        told: Option<String>,
    },
    /// A person forbids the change that was asked about.
    Forbid {
        /// What was said of earlier answers about the same, which hold no more.
        overruled: Vec<String>,
        /// What the next attempt is told of that, one advice by file.
        told: Vec<String>,
    },
    /// A person wants a check tried again that could not run.
    Recheck,
    /// Another round is wanted.
    Retry {
        /// What to do differently.
        guidance: Option<String>,
    },
    /// It is left out.
    Skip {
        /// By whom.
        by: String,
        /// Why.
        why: String,
    },
    /// It stays failed, or fails.
    Leave {
        /// What is told of it.
        told: String,
    },
    /// Its build was stopped.
    LayDown,
    /// A loop should take it.
    Assign(ComponentName),
    /// The next attempt is told something.
    Advise(String),
    /// Its model was told so much of what was said, and has replied since.
    Hear {
        /// How many words, from the first.
        words: u32,
    },
    /// A question about it is open.
    Ask(QuestionId),
}

/// An attempt that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct FailedAttempt {
    /// What went wrong.
    pub failure: Failure,
    /// What follows from it.
    pub answer: Answer,
    /// The candidate with what it was allowed, which the next attempt shows again or goes on from.
    pub kept: Option<KeptWork>,
    /// The turn of the conversation that handed it in; none where nothing was handed in that failed, or no conversation goes on with
    /// it.
    pub turn: Option<u32>,
    /// What the gate saw of it.
    pub shown: Option<CommitId>,
    /// What a person would have to accept.
    pub protected: Vec<ProtectedChange>,
    /// Whose quota is used up, if that was it.
    pub provider: String,
}

impl Input {
    /// Says what was wanted of a task that has no use for it, after "it cannot".
    pub(super) const fn wish(&self) -> &'static str {
        match self {
            Self::Edges(_) => "follow the tasks that it needs",
            Self::Carry { .. } | Self::TakeUp { .. } => "be taken over",
            Self::Claim { .. } => "be claimed",
            Self::Obstruct { .. } => "begin to wait for files",
            Self::Await { .. } | Self::Progress | Self::Extend | Self::Refrain | Self::Reach(_) => {
                "go on"
            }
            Self::SendBack(_) => "be sent back",
            Self::Land { .. } => "land",
            Self::Fail(_) => "fail",
            Self::CutOff { .. } | Self::Interrupt { .. } | Self::Suspend { .. } => "be interrupted",
            Self::PutQuestion(_) => "ask a person",
            Self::Answer => "be answered",
            Self::ExhaustBudget { .. } => "use up a budget",
            Self::LoseProvider { .. } => "lose its provider",
            Self::ProviderBack => "be given its provider",
            Self::FilesFree => "be given its files",
            Self::Tick => "come due",
            Self::Fund => "be given budget",
            Self::Resume => "be resumed",
            Self::HandOver { .. } | Self::ChangeOwner { .. } => "be given a file",
            Self::Deny { .. } => "be denied a file",
            Self::Allow { .. } => "be allowed a change",
            Self::Forbid { .. } => "be forbidden a change",
            Self::Recheck => "be checked again",
            Self::Retry { .. } => "be tried again",
            Self::Skip { .. } => "be skipped",
            Self::Leave { .. } => "be left to a person",
            Self::LayDown => "be laid down",
            Self::Assign(_) => "be assigned",
            Self::Advise(_) => "be advised",
            Self::Hear { .. } => "be told",
            Self::Ask(_) => "hold a question",
        }
    }
}
