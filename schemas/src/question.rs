//! Defines questions to people (seed pipeline §11, design §11).

pub(crate) mod before_ids;
mod choice;
mod content;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

pub use choice::{Choice, ChoiceWords};
pub use content::{Content, FileChange};

use crate::ids::{
    BuildId, ChoiceId, ComponentName, CorrelationId, KnowledgeId, QuestionId, SessionId, Slug,
    SpecId, TaskId,
};
use crate::state::states;

states! {
    /// Says what became of a question.
    QuestionState ("question") {
        /// Open.
        Pending = "pending" => [Answered, Defaulted, Dismissed, Superseded],
        /// A person answered.
        Answered = "answered" => [],
        /// The default was taken.
        Defaulted = "defaulted" => [],
        /// Closed without an answer.
        Dismissed = "dismissed" => [],
        /// It no longer matters.
        Superseded = "superseded" => [],
    }
}

/// Says how a question behaves.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum QuestionKind {
    /// Waits without limit.
    Blocking,
    /// Takes its default after 4 hours.
    Clarifying,
    /// Waits for a person; one of the program's own that sets nothing in motion is taken for yes after 24 hours.
    Confirming,
    /// Dismissed after 7 days.
    Educational,
    /// Shown, and gone after 7 days; has no default.
    Celebratory,
    /// Dismissed after 7 days; teaches a preference.
    Preference,
}

/// The most late answers that a question keeps.
pub const LATE_ANSWERS: usize = 16;

/// The most bytes of the words that somebody answers with: several messages of a phone, and a question with as many late answers as
/// it keeps is half of the mebibyte that the store takes of a row. Where letters are written as several, fewer late ones find room.
pub const ANSWER_BYTES: usize = 32 * 1024;

/// A question to people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct Question {
    /// Names it.
    pub id: QuestionId,
    /// How it behaves.
    pub kind: QuestionKind,
    /// What made the agent ask, for example `task_failed_repeatedly`.
    pub trigger: String,
    /// Who asks.
    pub agent: ComponentName,
    /// The question.
    pub text: String,
    /// Why it is asked.
    pub context: String,
    /// The choices.
    #[serde(default)]
    pub choices: Vec<Choice>,
    /// Whether words alone are an answer; never where there are consequences.
    pub free_text: bool,
    /// The choice taken when nobody answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<ChoiceId>,
    /// Whether an answer would approve, start, promote, merge, delete, spend, skip or accept a risk; then no default
    /// ever applies, and only a choice is an answer.
    pub consequential: bool,
    /// What a yes holds for, and for nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// What waits for the answer.
    pub about: About,
    /// What of it, where several questions of one trigger may be open about it: the budget, the check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// The idea it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idea: Option<Slug>,
    /// What became of it.
    pub state: QuestionState,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// What people answered when it was closed already: kept, and without effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late: Vec<Answer>,
    /// Why it was closed though nobody answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_because: Option<String>,
    /// The earlier question whose answer was reused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused_from: Option<QuestionId>,
    /// The chain of events it belongs to.
    pub correlation_id: CorrelationId,
    /// When it was asked.
    pub asked_at: DateTime<Utc>,
    /// When the default or the dismissal comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<DateTime<Utc>>,
    /// When people were last reminded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reminded_at: Option<DateTime<Utc>>,
}

impl Question {
    /// Says why no answer is needed any more, of one that was closed without any.
    pub fn without_answer(&self) -> String {
        let why = self.closed_because.clone();
        let why = why.unwrap_or_else(|| format!("it was {}", self.state));
        format!("No answer is needed any more: {why}")
    }

    /// Returns an answer as people read it: a reason alone does not say what it was given for.
    pub fn answer_in_words(&self, answer: &Answer) -> String {
        let mut choices = self.choices.iter();
        let chosen = choices.find(|choice| answer.choice.as_ref() == Some(&choice.id));
        match chosen.filter(|_| answer.says_why) {
            Some(choice) => format!("{}: {}", choice.label, answer.text),
            None => answer.text.clone(),
        }
    }

    /// Returns the answer with what the chosen option means; none while nobody answered.
    pub fn answer_in_full(&self) -> Option<String> {
        let answer = self.answer.as_ref()?;
        let chosen = self.choices.iter();
        let chosen = chosen.filter(|choice| answer.choice.as_ref() == Some(&choice.id));
        let means = chosen.flat_map(|choice| [&choice.description, &choice.implications]);
        let given = self.answer_in_words(answer);
        let parts = [Some(given.trim())];
        let means = means.map(|text| text.as_deref().map(str::trim));
        let said: Vec<&str> = parts.into_iter().chain(means).flatten().collect();
        Some(said.join(" - "))
    }
}

/// An answer: one of the choices, or words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// What was chosen; none where words alone are the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<ChoiceId>,
    /// What was said, for people and models: the words, else the label of the choice.
    pub text: String,
    /// Whether that says why it was chosen, of a choice that is an answer without words too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub says_why: bool,
    /// The person, or `default`.
    pub by: String,
    /// Where it came from, for example `cli`.
    pub channel: String,
    /// When.
    pub at: DateTime<Utc>,
}

/// What a question is about, and so what its answer sets in motion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum About {
    /// An ideation session.
    Session {
        /// The session.
        session: SessionId,
    },
    /// A specification.
    Specification {
        /// The specification.
        spec: SpecId,
    },
    /// A build as a whole.
    Build {
        /// The build.
        build: BuildId,
    },
    /// A task of a build.
    Task {
        /// The build.
        build: BuildId,
        /// The task.
        task: TaskId,
    },
    /// A knowledge item.
    Knowledge {
        /// The item.
        item: KnowledgeId,
    },
    /// Nothing that waits.
    Nothing,
}

impl QuestionKind {
    /// Returns the written form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Blocking => "blocking",
            Self::Clarifying => "clarifying",
            Self::Confirming => "confirming",
            Self::Educational => "educational",
            Self::Celebratory => "celebratory",
            Self::Preference => "preference",
        }
    }

    /// Returns the word that people read.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Educational => "to know",
            Self::Celebratory => "milestone",
            _ => self.as_str(),
        }
    }
}

impl Serialize for Question {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Question {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut stored = Value::deserialize(deserializer)?;
        before_ids::question(&mut stored);
        Self::deserialize(stored).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_that_says_why_is_read_with_what_was_chosen() {
        let id = "00000000-0000-7000-8000-000000000001";
        let (at, label) = ("2026-11-21T12:00:00Z", "Skip this task");
        for (choice, text, says_why, told, in_full) in [
            (
                Some("skip"),
                "nobody needs it",
                true,
                "Skip this task: nobody needs it",
                "Skip this task: nobody needs it - It is left out",
            ),
            (
                Some("skip"),
                label,
                false,
                label,
                "Skip this task - It is left out",
            ),
            (None, "by boat", false, "by boat", "by boat"),
        ] {
            let question: Question = serde_json::from_value(json!({
                "id": id, "kind": "blocking", "trigger": "task_failed_repeatedly", "agent": "build", "text": "What now?",
                "context": "", "free_text": false, "consequential": true, "about": { "kind": "nothing" },
                "choices": [{
                    "id": "skip", "label": label, "description": "It is left out", "recommended": false, "optional_words": true,
                }],
                "state": "answered", "correlation_id": id, "asked_at": at,
                "answer": {
                    "choice": choice, "text": text, "says_why": says_why, "by": "ada", "channel": "cli", "at": at,
                },
            }))
            .unwrap();
            let answer = question.answer.as_ref().unwrap();
            assert_eq!(question.answer_in_words(answer), told);
            assert_eq!(question.answer_in_full().as_deref(), Some(in_full));
        }
    }
}
