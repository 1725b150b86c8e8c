//! What people answer, and what it takes to answer so.

use ropewalk_config::questions::Trigger;
use ropewalk_orchestrator::Context;
use ropewalk_orchestrator::questions::{self, AcceptedAnswer, AnswerError, AnswerInput};
use ropewalk_schemas::person::Right;
use ropewalk_schemas::question::Question;
use ropewalk_schemas::{ChoiceId, QuestionId};
use ropewalk_store::ReadError;

use crate::people::{PermissionError, Person};

/// Says why an answer of a person was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum RefusedAnswer {
    /// The person may not decide so.
    #[error(transparent)]
    Forbidden(#[from] PermissionError),
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
    if let Some(question) = context.store.get::<Question>(&id.to_string()).await?
        && let Some(choice) = questions::chosen(&question, given)
        && let Some(right) = needed(&question, &choice)
    {
        person.demand(right)?;
    }
    let by = person.name.as_str();
    Ok(questions::answer(context, id, given, by, channel).await?)
}

/// Records for `person` the default of every question that has one without consequences.
pub async fn answer_defaults(
    context: &Context,
    person: &Person,
    channel: &str,
) -> Result<Vec<AcceptedAnswer>, AnswerError> {
    questions::answer_defaults(context, person.name.as_str(), channel).await
}

/// Says whether a question waits for `person`: where a choice of it takes a right, for whoever may choose one of those; to
/// give up is a way out of every question, and not what it waits for.
pub fn waits_for(question: &Question, person: &Person) -> bool {
    let choices = question.choices.iter();
    let rights = choices.filter_map(|choice| needed(question, &choice.id));
    let rights = rights.filter(|right| *right != Right::Stop);
    let mut rights = rights.peekable();
    rights.peek().is_none() || rights.any(|right| person.demand(right).is_ok())
}

/// Returns what it takes to choose this.
pub fn needed(question: &Question, choice: &ChoiceId) -> Option<Right> {
    Trigger::parse(&question.trigger)?.right(choice)
}
