//! Decides when a question reminds, when it ends by itself and how, and which one people see first (design §11).

use std::time::Duration;

use chrono::{DateTime, Utc};
use ropewalk_schemas::question::{About, Question, QuestionKind, QuestionState};

/// What a question does when its time has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDeadline {
    /// Takes its default.
    Default,
    /// Closes without an answer.
    Dismiss,
}

/// When a question reminds and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    /// How long after asking people are first reminded.
    pub remind_after: Option<Duration>,
    /// How long after a reminder the next one comes; `None` for one reminder only.
    pub remind_again: Option<Duration>,
    /// How long after asking it ends by itself, and how.
    pub ends: Option<(Duration, OnDeadline)>,
}

/// The waiting times of each kind of question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// Between asking and reminding, and between reminders of a blocking question.
    pub reminder: Duration,
    /// Until a clarifying question takes its default.
    pub clarifying: Duration,
    /// Until a confirming question is taken for yes.
    pub confirming: Duration,
    /// Until an educational, preference or celebratory one is dismissed.
    pub dismissal: Duration,
    /// Within which an answered question is not asked again.
    pub repeat: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            reminder: Duration::from_mins(30),
            clarifying: Duration::from_hours(4),
            confirming: Duration::from_hours(24),
            dismissal: Duration::from_hours(7 * 24),
            repeat: Duration::from_hours(24),
        }
    }
}

impl Deadlines {
    /// Returns when a question of `kind` reminds and ends.
    pub fn of(&self, kind: QuestionKind) -> Deadline {
        match kind {
            QuestionKind::Blocking => Deadline {
                remind_after: Some(self.reminder),
                remind_again: Some(self.reminder),
                ends: None,
            },
            QuestionKind::Clarifying => Deadline {
                remind_after: Some(self.reminder),
                remind_again: None,
                ends: Some((self.clarifying, OnDeadline::Default)),
            },
            QuestionKind::Confirming => Deadline {
                remind_after: None,
                remind_again: None,
                ends: Some((self.confirming, OnDeadline::Default)),
            },
            QuestionKind::Educational | QuestionKind::Preference | QuestionKind::Celebratory => {
                Deadline {
                    remind_after: None,
                    remind_again: None,
                    ends: Some((self.dismissal, OnDeadline::Dismiss)),
                }
            }
        }
    }
}

/// What becomes of a question at its deadline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    /// It stays open: it is closed already, blocking, or its yes has consequences.
    StaysOpen,
    /// It takes this answer.
    Default(String),
    /// It closes without an answer.
    Dismiss,
}

/// Decides what becomes of `question` at its deadline. No default ever approves, starts, promotes, merges,
/// deletes or spends.
pub(super) fn at_deadline(question: &Question, on_deadline: OnDeadline) -> Ending {
    if question.state != QuestionState::Pending || question.kind == QuestionKind::Blocking {
        return Ending::StaysOpen;
    }
    match on_deadline {
        OnDeadline::Dismiss => Ending::Dismiss,
        OnDeadline::Default if question.consequential => Ending::StaysOpen,
        OnDeadline::Default => default_of(question).map_or(Ending::Dismiss, Ending::Default),
    }
}

/// Returns the answer that a question takes by itself: its default, else what a confirming one recommends.
pub(super) fn default_of(question: &Question) -> Option<String> {
    let recommended = || {
        (question.kind == QuestionKind::Confirming)
            .then(|| question.choices.iter().find(|choice| choice.recommended))
            .flatten()
            .map(|choice| choice.label.clone())
    };
    question.default.clone().or_else(recommended)
}

/// Returns whether "answer all with defaults" answers `question`.
pub(super) fn takes_default_on_request(question: &Question) -> bool {
    question.state == QuestionState::Pending
        && question.kind != QuestionKind::Blocking
        && !question.consequential
        && default_of(question).is_some()
}

/// Where a question stands among others; the least comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    closed: bool,
    urgency: u8,
    impact: u8,
    asked_at: DateTime<Utc>,
}

/// Ranks a question for people: open before closed, blocking first, then by urgency and impact, older before newer.
///
/// Urgent is what acts by itself soon; impact is how much follows from the answer or waits for it.
pub fn rank(question: &Question) -> Rank {
    let urgency = match question.kind {
        QuestionKind::Blocking => 0,
        QuestionKind::Clarifying => 1,
        QuestionKind::Confirming => 2,
        QuestionKind::Educational | QuestionKind::Preference | QuestionKind::Celebratory => 3,
    };
    let impact = match question.about {
        _ if question.consequential => 0,
        About::Build { .. } => 1,
        About::Specification { .. } => 2,
        About::Session { .. } => 3,
        About::Task { .. } => 4,
        About::Knowledge { .. } => 5,
        About::Nothing => 6,
    };
    Rank {
        closed: question.state != QuestionState::Pending,
        urgency,
        impact,
        asked_at: question.asked_at,
    }
}

/// Why an answer is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Somebody else was first.
    Closed(QuestionState),
    /// The text is empty.
    Empty,
    /// The text is none of the options and free text is not taken.
    NotAChoice,
}

/// Checks an answer; returns the label it stands for, spelled as the option spells it.
pub(super) fn accept(question: &Question, text: &str) -> Result<String, Refusal> {
    if question.state != QuestionState::Pending {
        return Err(Refusal::Closed(question.state));
    }
    let text = text.trim();
    if text.is_empty() {
        return Err(Refusal::Empty);
    }
    let named = question
        .choices
        .iter()
        .find(|choice| choice.label.eq_ignore_ascii_case(text));
    let numbered = || {
        let position: usize = text.parse().ok()?;
        question.choices.get(position.checked_sub(1)?)
    };
    match named.or_else(numbered) {
        Some(choice) => Ok(choice.label.clone()),
        // People may always say something else than an option, unless the yes is binding.
        None if question.free_text || (question.choices.is_empty() && !question.consequential) => {
            Ok(text.to_owned())
        }
        None => Err(Refusal::NotAChoice),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use chrono::TimeDelta;
    use ropewalk_schemas::question::Choice;
    use ropewalk_schemas::{ComponentName, CorrelationId, QuestionId, TaskId};
    use uuid::Uuid;

    use super::*;

    pub(in crate::questions) fn question(kind: QuestionKind) -> Question {
        let choice = |label: &str, recommended| Choice {
            label: label.to_owned(),
            description: None,
            recommended,
            implications: None,
        };
        Question {
            id: QuestionId(Uuid::nil()),
            kind,
            trigger: "before_research".to_owned(),
            agent: ComponentName::parse("ideation").unwrap(),
            text: "Go on?".to_owned(),
            context: String::new(),
            choices: vec![choice("Yes", true), choice("No", false)],
            free_text: false,
            default: None,
            consequential: false,
            about: About::Nothing,
            topic: None,
            idea: None,
            state: QuestionState::Pending,
            answer: None,
            reused_from: None,
            correlation_id: CorrelationId(Uuid::nil()),
            asked_at: DateTime::UNIX_EPOCH,
            due_at: None,
            reminded_at: None,
        }
    }

    #[test]
    fn each_kind_ends_in_its_own_way() {
        let with_default = |kind| Question {
            default: Some("No".to_owned()),
            ..question(kind)
        };
        let consequential = |kind| Question {
            consequential: true,
            ..question(kind)
        };
        let cases = [
            (question(QuestionKind::Blocking), Ending::StaysOpen),
            (
                with_default(QuestionKind::Clarifying),
                Ending::Default("No".to_owned()),
            ),
            (question(QuestionKind::Clarifying), Ending::Dismiss),
            (
                question(QuestionKind::Confirming),
                Ending::Default("Yes".to_owned()),
            ),
            (consequential(QuestionKind::Confirming), Ending::StaysOpen),
            (question(QuestionKind::Educational), Ending::Dismiss),
            (question(QuestionKind::Preference), Ending::Dismiss),
            (question(QuestionKind::Celebratory), Ending::Dismiss),
        ];
        for (question, expected) in cases {
            let on_deadline = Deadlines::default()
                .of(question.kind)
                .ends
                .map_or(OnDeadline::Default, |(_, how)| how);
            assert_eq!(
                at_deadline(&question, on_deadline),
                expected,
                "{:?}",
                question.kind
            );
        }
    }

    #[test]
    fn people_see_first_what_holds_most_and_longest() {
        let id = Uuid::nil();
        let task = TaskId::parse("T-1").unwrap();
        let about = |kind, about| Question {
            about,
            ..question(kind)
        };
        let newer = |question: Question| Question {
            asked_at: question.asked_at + TimeDelta::hours(1),
            ..question
        };
        let spending = Question {
            consequential: true,
            ..question(QuestionKind::Confirming)
        };
        let answered = Question {
            state: QuestionState::Answered,
            ..question(QuestionKind::Blocking)
        };
        let of_task = || About::Task {
            build: id.into(),
            task: task.clone(),
        };
        let in_order = [
            newer(about(
                QuestionKind::Blocking,
                About::Build { build: id.into() },
            )),
            newer(about(
                QuestionKind::Blocking,
                About::Specification { spec: id.into() },
            )),
            about(QuestionKind::Blocking, of_task()),
            newer(about(QuestionKind::Blocking, of_task())),
            question(QuestionKind::Clarifying),
            newer(spending),
            question(QuestionKind::Confirming),
            newer(question(QuestionKind::Confirming)),
            question(QuestionKind::Preference),
            newer(question(QuestionKind::Educational)),
            answered,
        ];
        let ranks: Vec<Rank> = in_order.iter().map(rank).collect();
        assert!(ranks.is_sorted_by(|one, next| one < next), "{ranks:#?}");
    }

    #[test]
    fn answering_all_with_defaults_leaves_blocking_and_consequential_questions() {
        assert!(takes_default_on_request(&question(
            QuestionKind::Confirming
        )));
        assert!(!takes_default_on_request(&question(QuestionKind::Blocking)));
        assert!(!takes_default_on_request(&question(
            QuestionKind::Educational
        )));
        let spending = Question {
            consequential: true,
            ..question(QuestionKind::Confirming)
        };
        assert!(!takes_default_on_request(&spending));
    }

    #[test]
    fn an_answer_is_an_option_by_label_or_number_or_free_text_where_that_is_taken() {
        let plain = question(QuestionKind::Blocking);
        let free = Question {
            free_text: true,
            ..plain.clone()
        };
        let closed = Question {
            state: QuestionState::Answered,
            ..plain.clone()
        };
        let cases = [
            (&plain, "yes", Ok("Yes".to_owned())),
            (&plain, "2", Ok("No".to_owned())),
            (&plain, "3", Err(Refusal::NotAChoice)),
            (&plain, "maybe", Err(Refusal::NotAChoice)),
            (&plain, "  ", Err(Refusal::Empty)),
            (&free, "maybe", Ok("maybe".to_owned())),
            (
                &closed,
                "Yes",
                Err(Refusal::Closed(QuestionState::Answered)),
            ),
        ];
        for (question, text, expected) in cases {
            assert_eq!(accept(question, text), expected, "{text}");
        }
    }
}
