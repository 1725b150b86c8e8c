//! What people answer, and what it takes to answer so.

use std::collections::BTreeSet;

use ropewalk_config::questions::Trigger;
use ropewalk_orchestrator::Context;
use ropewalk_orchestrator::questions::{self, AcceptedAnswer, AnswerError, AnswerInput};
use ropewalk_schemas::person::Right;
use ropewalk_schemas::question::{ANSWER_BYTES, Question};
use ropewalk_schemas::{ChoiceId, QuestionId, UserSlug};
use ropewalk_store::ReadError;

use crate::length::{self, LengthError};
use crate::people::{PermissionError, Person};

/// Says why an answer of a person was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum RefusedAnswer {
    /// The person may not decide so.
    #[error(transparent)]
    Forbidden(#[from] PermissionError),
    /// It is too long.
    #[error(transparent)]
    TooLong(#[from] LengthError),
    /// It is no answer, or comes too late.
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

impl From<ReadError> for RefusedAnswer {
    fn from(error: ReadError) -> Self {
        Self::Answer(error.into())
    }
}

/// Records the answer of `person`, who may decide so; the second answer is told who was first.
pub async fn answer<'a>(
    context: &Context,
    id: QuestionId,
    given: impl Into<AnswerInput<'a>>,
    person: &Person,
    channel: &str,
) -> Result<AcceptedAnswer, RefusedAnswer> {
    let given = given.into();
    length::check("the answer", words_of(given), ANSWER_BYTES)?;
    if let Some(question) = context.store.get::<Question>(&id.to_string()).await?
        && let Some(choice) = questions::chosen(&question, given)
        && let Some(right) = needed(&question, &choice)
    {
        person.demand(right)?;
    }
    let by = person.name.as_str();
    Ok(questions::answer(context, id, given, by, channel).await?)
}

/// Records what `by` says in a conversation as the answer to the question that this waits for. What they may do is not known
/// there, and the words were said to go on talking: they choose nothing that takes a right or has consequences. Of words that
/// are longer than an answer their beginning is one, since the message holds them all.
pub async fn answer_in_conversation(
    context: &Context,
    id: QuestionId,
    words: &str,
    by: &UserSlug,
    channel: &str,
) -> Result<AcceptedAnswer, RefusedAnswer> {
    let words = &words[..words.floor_char_boundary(ANSWER_BYTES)];
    let question = context.store.get::<Question>(&id.to_string()).await?;
    let given = if question.is_some_and(|question| question.consequential) {
        AnswerInput::Words(words)
    } else {
        AnswerInput::Typed(words)
    };
    let person = Person {
        name: by.clone(),
        roles: BTreeSet::new(),
        rights: BTreeSet::new(),
    };
    answer(context, id, given, &person, channel).await
}

/// Returns the words that somebody gave; none beside a choice that was picked without any.
const fn words_of(given: AnswerInput<'_>) -> &str {
    match given {
        AnswerInput::Typed(words)
        | AnswerInput::Words(words)
        | AnswerInput::Picked(_, Some(words)) => words,
        AnswerInput::Picked(_, None) => "",
    }
}

/// Records for `person` the default of every question that has one without consequences.
pub async fn answer_defaults(
    context: &Context,
    person: &Person,
    channel: &str,
) -> Result<Vec<AcceptedAnswer>, AnswerError> {
    questions::answer_defaults(context, person.name.as_str(), channel).await
}

/// Says whether a question waits for `person`: where a choice of it takes a right, for whoever may choose one of those.
pub fn waits_for(question: &Question, person: &Person) -> bool {
    let mut rights = awaited(question).peekable();
    rights.peek().is_none() || rights.any(|right| person.demand(right).is_ok())
}

/// Returns what it takes to choose this. What leaves everything as it is takes the right that the question waits for: it closes
/// the question for those who have that, too.
pub fn needed(question: &Question, choice: &ChoiceId) -> Option<Right> {
    let trigger = Trigger::parse(&question.trigger)?;
    let right = trigger.right(choice);
    let leaves = trigger.leaves(choice);
    right.or_else(|| awaited(question).next().filter(|_| leaves))
}

/// Lists the rights that the choices of a question take; to give up is a way out of every question, and not what it waits for.
fn awaited(question: &Question) -> impl Iterator<Item = Right> {
    let trigger = Trigger::parse(&question.trigger);
    let choices = question.choices.iter();
    let rights = choices.filter_map(move |choice| trigger?.right(&choice.id));
    rights.filter(|right| *right != Right::Stop)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A question of `trigger` with these choices.
    fn question(trigger: &str, choices: &[&str]) -> Question {
        let id = "00000000-0000-7000-8000-000000000001";
        let choice = |id: &&str| json!({ "id": id, "label": id, "recommended": false });
        let choices: Vec<_> = choices.iter().map(choice).collect();
        serde_json::from_value(json!({
            "id": id, "kind": "blocking", "trigger": trigger, "agent": "build", "text": "Go on?", "context": "",
            "choices": choices, "free_text": false, "consequential": true, "about": { "kind": "nothing" },
            "state": "pending", "correlation_id": id, "asked_at": "2026-03-01T08:00:00Z",
        }))
        .unwrap()
    }

    #[test]
    fn what_leaves_all_as_it_is_takes_the_right_that_its_question_waits_for() {
        let approval: &[&str] = &["start", "revise", "later"];
        let call: &[&str] = &["allow-call", "guide", "leave"];
        let task: &[&str] = &["retry", "skip", "leave"];
        for (trigger, choices, choice, expected) in [
            ("spec_complete", approval, "start", Some(Right::Approve)),
            ("spec_complete", approval, "later", Some(Right::Approve)),
            // It is a wish of its own.
            ("spec_complete", approval, "revise", None),
            (
                "build_finished",
                &["merge", "leave"],
                "leave",
                Some(Right::Land),
            ),
            ("decision_needed", call, "leave", Some(Right::Approve)),
            // Nobody else could decide it otherwise.
            ("decision_needed", task, "leave", None),
            ("decision_needed", task, "skip", Some(Right::Stop)),
            ("build_finished", &["leave"], "leave", None),
            ("put_by_a_model", &["leave"], "leave", None),
        ] {
            let choice = ChoiceId::parse(choice).unwrap();
            let right = needed(&question(trigger, choices), &choice);
            assert_eq!(right, expected, "{trigger} {choice}");
        }
    }
}
