//! Takes an answer once, from a named person, on any channel.

use ropewalk_schemas::payload::QuestionAnswered;
use ropewalk_schemas::question::{Answer, Question, QuestionState};
use ropewalk_schemas::{Payload, QuestionId, Subject};
use ropewalk_store::{ChangeSet, CommitError, Query, ReadError, Versioned};

use super::decide::{self, Refusal};
use crate::context::Context;

/// Says why an answer was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// No question has this id.
    #[error("no question has the id `{0}`; `ropewalk question list` shows the open ones")]
    Unknown(QuestionId),
    /// The question is closed.
    #[error("question `{id}` is already {state}{by}")]
    Closed {
        /// The question.
        id: QuestionId,
        /// What became of it.
        state: QuestionState,
        /// Who was first, as ` by NAME over CHANNEL`, or empty.
        by: String,
    },
    /// The answer is empty.
    #[error("the answer is empty; give one of the options or a text")]
    Empty,
    /// The answer is none of the options.
    #[error("`{text}` is none of the options: {options}")]
    NotAChoice {
        /// The answer as given.
        text: String,
        /// The options.
        options: String,
    },
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// What was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The question.
    pub id: QuestionId,
    /// The answer, spelled as its option is.
    pub answer: String,
}

/// Records the answer of `by` and tells whoever asked; the second answer is told who was first.
pub async fn answer(
    context: &Context,
    id: QuestionId,
    text: &str,
    by: &str,
    channel: &str,
) -> Result<Answered, AnswerError> {
    let context = context
        .because_of_newest(Subject::question(id), "question.asked")
        .await?;
    loop {
        let question = context
            .store
            .get::<Question>(&id.to_string())
            .await?
            .ok_or(AnswerError::Unknown(id))?;
        let accepted = decide::accept(&question, text)
            .map_err(|refusal| refused(&question, text, &refusal))?;
        let mut changes = ChangeSet::new();
        record(&mut changes, &context, &question, &accepted, by, channel);
        match context.store.commit(changes).await {
            Ok(_) => {
                return Ok(Answered {
                    id,
                    answer: accepted,
                });
            }
            // Somebody else changed the question in between: look again.
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Answers every open question that has a default and whose yes has no consequences; returns what was answered.
pub async fn answer_defaults(
    context: &Context,
    by: &str,
    channel: &str,
) -> Result<Vec<Answered>, AnswerError> {
    let open = context
        .store
        .list::<Question>(Query::new().equal("state", QuestionState::Pending.as_str()))
        .await?;
    let mut answered = Vec::new();
    for question in open
        .iter()
        .filter(|question| decide::takes_default_on_request(question))
    {
        let Some(default) = decide::default_of(question) else {
            continue;
        };
        match answer(context, question.id, &default, by, channel).await {
            Ok(done) => answered.push(done),
            // Somebody answered it meanwhile, which is as good.
            Err(AnswerError::Closed { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(answered)
}

/// Adds to `changes` that `question` has an answer.
pub(super) fn record(
    changes: &mut ChangeSet,
    context: &Context,
    question: &Versioned<Question>,
    text: &str,
    by: &str,
    channel: &str,
) {
    let by_default = by == super::service::DEFAULT;
    let state = if by_default {
        QuestionState::Defaulted
    } else {
        QuestionState::Answered
    };
    let given = Answer {
        text: text.to_owned(),
        by: by.to_owned(),
        channel: channel.to_owned(),
        at: context.now(),
    };
    changes.update(
        question,
        &Question {
            state,
            answer: Some(given),
            ..question.record.clone()
        },
    );
    let payload = QuestionAnswered {
        question_id: question.id,
        trigger: question.trigger.clone(),
        answer: text.to_owned(),
        answered_by: by.to_owned(),
        channel: channel.to_owned(),
        about: question.about.clone(),
        idea_slug: question.idea.clone(),
    };
    let payload = if by_default {
        Payload::QuestionDefaulted(payload)
    } else {
        Payload::QuestionAnswered(payload)
    };
    // An answer belongs to the chain of the question, and a person starts its hops anew.
    let claim = context.for_claim(question.correlation_id, ropewalk_schemas::Priority::URGENT);
    changes.emit(claim.event(Subject::question(question.id), payload));
}

fn refused(question: &Question, text: &str, refusal: &Refusal) -> AnswerError {
    match refusal {
        Refusal::Closed(state) => AnswerError::Closed {
            id: question.id,
            state: *state,
            by: question
                .answer
                .as_ref()
                .map(|answer| format!(" by {} over {}", answer.by, answer.channel))
                .unwrap_or_default(),
        },
        Refusal::Empty => AnswerError::Empty,
        Refusal::NotAChoice => AnswerError::NotAChoice {
            text: text.to_owned(),
            options: question
                .choices
                .iter()
                .map(|choice| format!("`{}`", choice.label))
                .collect::<Vec<_>>()
                .join(", "),
        },
    }
}
