//! Payloads of questions and schedules.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{ChoiceId, QuestionId, Slug, TimerId};
use crate::question::{About, QuestionKind};

/// A question was put to people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionAsked {
    /// The question.
    pub question_id: QuestionId,
    /// How it behaves.
    pub kind: QuestionKind,
    /// The question.
    pub text: String,
    /// The idea it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idea_slug: Option<Slug>,
    /// What waits for the answer.
    pub about: About,
}

/// People were reminded of an open question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionReminded {
    /// The question.
    pub question_id: QuestionId,
    /// The question.
    pub text: String,
    /// The idea it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idea_slug: Option<Slug>,
}

/// A question has an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionAnswered {
    /// The question.
    pub question_id: QuestionId,
    /// What made the agent ask, for example `task_failed_repeatedly`.
    pub trigger: String,
    /// What was chosen; none where words alone are the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<ChoiceId>,
    /// What was said, for people and models: the words, else the label of the choice.
    pub answer: String,
    /// Whether that says why it was chosen, of a choice that is an answer without words too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub says_why: bool,
    /// The person, or `default`.
    pub answered_by: String,
    /// Where the answer came from.
    pub channel: String,
    /// What waited for the answer.
    pub about: About,
    /// The idea it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idea_slug: Option<Slug>,
}

impl QuestionAnswered {
    /// Returns why it was chosen, where whoever chose said so beside a choice that needs no words.
    pub fn why(&self) -> Option<&str> {
        self.says_why.then_some(self.answer.as_str())
    }
}

/// A question was closed without an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionClosed {
    /// The question.
    pub question_id: QuestionId,
    /// Why.
    pub reason: String,
    /// What it was about.
    pub about: About,
}

/// A timer or a schedule came due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleDue {
    /// The timer.
    pub timer_id: TimerId,
    /// What is due, for example `monitor.tick` or `question.default`.
    pub name: String,
    /// The entity it concerns, empty for a schedule.
    pub target: String,
}
