//! Decides when a question reminds, when it ends by itself and how, and which one people see first (design §11).

use std::time::Duration;

use chrono::{DateTime, Utc};
use ropewalk_config::questions::Trigger;
use ropewalk_schemas::ChoiceId;
use ropewalk_schemas::person::Role;
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

impl Deadline {
    /// Returns how long after asking a question ends by itself; one whose yes has consequences waits instead of taking a
    /// default.
    pub(super) fn ends_after(self, is_consequential: bool) -> Option<Duration> {
        let waits = |how| is_consequential && how == OnDeadline::Default;
        let (after, how) = self.ends?;
        (!waits(how)).then_some(after)
    }
}

/// What becomes of a question at its deadline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    /// It stays open: it is closed already, blocking, or its yes has consequences.
    StaysOpen,
    /// It takes this choice.
    Default(ChoiceId),
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

/// Returns the choice that a question takes by itself: its default, else what a confirming one recommends; none where its yes
/// has consequences.
pub fn default_of(question: &Question) -> Option<ChoiceId> {
    if question.consequential {
        return None;
    }
    let recommended = || {
        (question.kind == QuestionKind::Confirming)
            .then(|| question.choices.iter().find(|choice| choice.recommended))
            .flatten()
            .map(|choice| choice.id.clone())
    };
    question.default.clone().or_else(recommended)
}

/// Returns whether "answer all with defaults" answers `question`.
pub(super) fn takes_default_on_request(question: &Question) -> bool {
    question.state == QuestionState::Pending
        && question.kind != QuestionKind::Blocking
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

/// Returns who is asked a question first.
pub fn role(question: &Question) -> Role {
    // A question of a newer program has a trigger that nobody here knows.
    Trigger::parse(&question.trigger).map_or(Role::Technical, Trigger::role)
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

#[cfg(test)]
pub(super) mod tests {
    use chrono::TimeDelta;
    use ropewalk_schemas::question::Choice;
    use ropewalk_schemas::{ComponentName, CorrelationId, QuestionId, TaskId};
    use uuid::Uuid;

    use super::*;

    pub(in crate::questions) fn id(text: &str) -> ChoiceId {
        ChoiceId::parse(text).unwrap()
    }

    pub(in crate::questions) fn question(kind: QuestionKind) -> Question {
        let choice = |name, label, recommended| Choice {
            recommended,
            ..Choice::new(id(name), label)
        };
        Question {
            id: QuestionId(Uuid::nil()),
            kind,
            trigger: "before_research".to_owned(),
            agent: ComponentName::parse("ideation").unwrap(),
            text: "Go on?".to_owned(),
            context: String::new(),
            choices: vec![
                choice("yes", "Yes, go on", true),
                choice("no", "No, wait", false),
            ],
            free_text: false,
            default: None,
            consequential: false,
            content: None,
            about: About::Nothing,
            topic: None,
            idea: None,
            state: QuestionState::Pending,
            answer: None,
            late: Vec::new(),
            closed_because: None,
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
            default: Some(id("no")),
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
                Ending::Default(id("no")),
            ),
            (question(QuestionKind::Clarifying), Ending::Dismiss),
            (
                question(QuestionKind::Confirming),
                Ending::Default(id("yes")),
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
    fn whoever_waits_for_a_yes_with_consequences_is_told_no_end() {
        let deadlines = Deadlines::default();
        let ends = |kind, consequential| deadlines.of(kind).ends_after(consequential).is_some();
        for (kind, usually, consequential) in [
            (QuestionKind::Blocking, false, false),
            (QuestionKind::Clarifying, true, false),
            (QuestionKind::Confirming, true, false),
            (QuestionKind::Celebratory, true, true),
        ] {
            assert_eq!(
                (ends(kind, false), ends(kind, true)),
                (usually, consequential),
                "{kind:?}"
            );
        }
        let confirming = question(QuestionKind::Confirming);
        assert_eq!(default_of(&confirming), Some(id("yes")));
        let spending = Question {
            consequential: true,
            default: Some(id("yes")),
            ..confirming
        };
        assert_eq!(default_of(&spending), None);
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
}
