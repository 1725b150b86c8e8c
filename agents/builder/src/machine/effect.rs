//! Names what a transition brings with it, beside the new record and in the same commit.

use ropewalk_engine::{BudgetOverrun, TaskQuestion};
use ropewalk_gate::protected::ProtectedChange;
use ropewalk_schemas::attempt::{AttemptState, Failure, FailureClass};
use ropewalk_schemas::build::PauseReason;
use ropewalk_schemas::wait::Resource;
use ropewalk_schemas::{AttemptId, CommitId};

/// What a transition brings with it.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// The row of an attempt is closed, and what it held and waited for is free.
    EndAttempt {
        /// The attempt.
        attempt: AttemptId,
        /// How it ended.
        state: AttemptState,
        /// Why, where its try counts or somebody meant to end it; a crash has no reason, and its work is run again.
        failure: Option<Failure>,
        /// The turn of its conversation whose result tells the next attempt why; none where that is told nothing, or begins anew.
        told_at: Option<u32>,
    },
    /// Every wait ends.
    StopWaiting,
    /// A wait begins.
    Wait(Resource),
    /// What was asked about the task, or about the build as a whole, matters no more.
    CloseQuestions {
        /// Why.
        why: String,
    },
    /// What was asked about the budgets of the build matters no more.
    CloseBudgetQuestions {
        /// Why.
        why: String,
    },
    /// A person is asked; the question goes where the new state has a place for it.
    Ask(Ask),
    /// It is told that a build stands still.
    TellPaused {
        /// Why.
        reason: PauseReason,
        /// Why, for people.
        detail: String,
    },
    /// It is told that a task was left out.
    TellSkipped {
        /// By whom.
        by: String,
        /// Why.
        why: String,
    },
}

/// A question that the model of a task puts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicQuestion {
    /// What is asked.
    pub question: TaskQuestion,
    /// Names it among all questions of the task.
    pub topic: String,
}

/// What people are asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// What shall become of a task that has used up its tries.
    Failed {
        /// The class of the whole round.
        class: FailureClass,
    },
    /// What shall become of a task that stood still.
    Suspended {
        /// What was seen of it.
        why: String,
    },
    /// What the model of a task wants to know.
    Model(Box<TopicQuestion>),
    /// Whether a task may change files that judge its work.
    Protected {
        /// The candidate that shows how.
        candidate: CommitId,
        /// The files, and what is wrong with them.
        files: Vec<ProtectedChange>,
    },
    /// What shall become of a task whose check could not run.
    Held {
        /// Why it could not.
        why: String,
    },
    /// Whether more may be spent.
    Budget(BudgetOverrun),
}
