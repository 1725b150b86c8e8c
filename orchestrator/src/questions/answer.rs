//! Takes an answer once, from a named person, on any channel.

use ropewalk_runtime::failpoint;
use ropewalk_schemas::advice::Advice;
use ropewalk_schemas::payload::QuestionAnswered;
use ropewalk_schemas::question::{Answer, Choice, LATE_ANSWERS, Question, QuestionState};
use ropewalk_schemas::{ChoiceId, Payload, QuestionId, Subject};
use ropewalk_store::{
    ChangeSet, CommitError, CommitFailure, Query, ReadError, Versioned, retry_on_conflict,
};

use super::decide;
use super::reply::{self, AnswerInput, Refusal, Reply};
use crate::context::Context;

/// Says why an answer was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// No question has this id.
    #[error("no question has the id `{0}`")]
    Unknown(QuestionId),
    /// The question is closed; what was said changes nothing.
    #[error("question `{id}` is already {state}{by}")]
    Closed {
        /// The question.
        id: QuestionId,
        /// What became of it.
        state: QuestionState,
        /// Who was first, as ` by NAME over CHANNEL at TIME`, or why nobody has to be, as `: WHY`; empty where nobody knows.
        by: String,
        /// Whether what was said is kept beside it.
        kept: bool,
        /// Whether what was said is the answer that counts, which the same person gave.
        counts: bool,
    },
    /// The answer is empty.
    #[error("the answer is empty and decides nothing")]
    Empty {
        /// What would be an answer.
        choices: String,
    },
    /// The answer is none of the choices.
    #[error("`{text}` is none of the choices of question `{id}` and decides nothing")]
    NotAChoice {
        /// The question.
        id: QuestionId,
        /// The answer as given.
        text: String,
        /// What would be an answer.
        choices: String,
    },
    /// Words were given where only a choice is an answer.
    #[error("words alone decide nothing about question `{id}`")]
    WordsAlone {
        /// The question.
        id: QuestionId,
        /// What would be an answer.
        choices: String,
    },
    /// The choice takes words, and none were given.
    #[error("`{choice}` decides nothing without your words")]
    WordsMissing {
        /// The choice.
        choice: ChoiceId,
    },
    /// The choice takes no words, and some were given beside it.
    #[error(
        "the choice `{choice}` takes no words, so that its `choice` and a `text` are no answer together"
    )]
    WordsBeside {
        /// The choice.
        choice: ChoiceId,
    },
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl CommitFailure for AnswerError {
    fn commit_error(&self) -> Option<&CommitError> {
        match self {
            Self::Commit(error) => Some(error),
            _ => None,
        }
    }
}

impl Advice for AnswerError {
    fn next(&self) -> Option<String> {
        Some(match self {
            Self::Unknown(_) => "`ropewalk question list` shows the open ones".to_owned(),
            Self::Closed { counts: true, .. } => {
                "that is your answer, and it counts as you gave it then".to_owned()
            }
            Self::Closed { kept: true, .. } => {
                "your answer is kept beside it and changes nothing".to_owned()
            }
            Self::Closed { kept: false, .. } => {
                "as many late answers are kept beside it as may be, and yours is not".to_owned()
            }
            Self::Empty { choices }
            | Self::NotAChoice { choices, .. }
            | Self::WordsAlone { choices, .. } => format!("answer with {choices}"),
            Self::WordsMissing { choice } => {
                format!("answer with `{choice}` and what you want to say")
            }
            Self::WordsBeside { choice } => {
                format!("answer with `{choice}` alone, or with words alone where those are taken")
            }
            Self::Read(error) => return error.next(),
            Self::Commit(error) => return error.next(),
        })
    }
}

/// What was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedAnswer {
    /// The question.
    pub id: QuestionId,
    /// What was chosen; none where words alone are the answer.
    pub choice: Option<ChoiceId>,
    /// The words, else the label of the choice, and behind that why it was chosen, where that was said.
    pub answer: String,
    /// What was asked.
    pub asked: String,
}

/// Records the answer of `by` and tells whoever asked; the second answer is told who was first.
pub async fn answer<'a>(
    context: &Context,
    id: QuestionId,
    given: impl Into<AnswerInput<'a>>,
    by: &str,
    channel: &str,
) -> Result<AcceptedAnswer, AnswerError> {
    let given = given.into();
    let context = context
        .because_of_newest(Subject::question(id), "question.asked")
        .await?;
    retry_on_conflict!(AnswerError, id, {
        let question = context
            .store
            .get::<Question>(&id.to_string())
            .await?
            .ok_or(AnswerError::Unknown(id))?;
        let mut changes = ChangeSet::new();
        let outcome = if question.state == QuestionState::Pending {
            let reply = reply::accept(&question, given)
                .map_err(|refusal| refused(&question, given, refusal))?;
            let answer = record(&mut changes, &context, &question, reply, by, channel);
            Ok(AcceptedAnswer {
                id,
                answer: question.answer_in_words(&answer),
                choice: answer.choice,
                asked: question.text.clone(),
            })
        } else {
            let late = keep_late(&mut changes, &context, &question, given, by, channel);
            Err(closed(&question, late))
        };
        if changes.is_empty() {
            return outcome.map(Some);
        }
        failpoint!("questions.answer.before");
        let committed = context.store.commit(changes).await;
        failpoint!("questions.answer.after");
        if outcome.is_err() && matches!(committed, Err(CommitError::Oversized { .. })) {
            // A row of before answers were bound may have no room for another.
            return Err(closed(&question, LateAnswer::Dropped));
        }
        // Somebody else may have changed the question in between.
        committed?;
        outcome.map(Some)
    })
}

/// Returns the choice that `given` would be for `question`, if it is one.
pub fn chosen(question: &Question, given: AnswerInput<'_>) -> Option<ChoiceId> {
    reply::accept(question, given).ok()?.choice
}

/// Answers every open question that has a default and whose yes has no consequences; returns what was answered.
pub async fn answer_defaults(
    context: &Context,
    by: &str,
    channel: &str,
) -> Result<Vec<AcceptedAnswer>, AnswerError> {
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
        match answer(
            context,
            question.id,
            AnswerInput::Picked(&default, None),
            by,
            channel,
        )
        .await
        {
            Ok(done) => answered.push(done),
            // Somebody answered it meanwhile, which is as good.
            Err(AnswerError::Closed { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(answered)
}

/// Adds to `changes` that `question` has an answer, and returns it.
pub(super) fn record(
    changes: &mut ChangeSet,
    context: &Context,
    question: &Versioned<Question>,
    reply: Reply,
    by: &str,
    channel: &str,
) -> Answer {
    let by_default = by == super::BY_DEFAULT;
    let state = if by_default {
        QuestionState::Defaulted
    } else {
        QuestionState::Answered
    };
    let given = Answer {
        choice: reply.choice.clone(),
        text: reply.text.clone(),
        says_why: reply.says_why,
        by: by.to_owned(),
        channel: channel.to_owned(),
        at: context.now(),
    };
    changes.update(
        question,
        &Question {
            state,
            answer: Some(given.clone()),
            ..question.record.clone()
        },
    );
    let payload = QuestionAnswered {
        question_id: question.id,
        trigger: question.trigger.clone(),
        choice: reply.choice,
        answer: reply.text,
        says_why: reply.says_why,
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
    given
}

/// What becomes of an answer to a question that is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LateAnswer {
    /// It is the one that counts, said again.
    Counted,
    /// It is kept, now or since before.
    Kept,
    /// There is no room for it.
    Dropped,
}

/// Keeps what came too late, each person's word once, so that it can be looked up and changes nothing.
fn keep_late(
    changes: &mut ChangeSet,
    context: &Context,
    question: &Versioned<Question>,
    given: AnswerInput<'_>,
    by: &str,
    channel: &str,
) -> LateAnswer {
    let reply = reply::accept(question, given).unwrap_or_else(|_| Reply {
        choice: None,
        text: given.text(),
        says_why: false,
    });
    let is_known = |answer: &Answer| {
        answer.by == by && (&answer.choice, &answer.text) == (&reply.choice, &reply.text)
    };
    if question.answer.as_ref().is_some_and(is_known) {
        return LateAnswer::Counted;
    }
    if question.late.iter().any(is_known) {
        return LateAnswer::Kept;
    }
    if question.late.len() >= LATE_ANSWERS {
        return LateAnswer::Dropped;
    }
    let mut after = question.record.clone();
    after.late.push(Answer {
        choice: reply.choice,
        text: reply.text,
        says_why: reply.says_why,
        by: by.to_owned(),
        channel: channel.to_owned(),
        at: context.now(),
    });
    changes.update(question, &after);
    LateAnswer::Kept
}

fn closed(question: &Question, late: LateAnswer) -> AnswerError {
    let by = match (&question.answer, &question.closed_because) {
        (Some(first), _) => {
            let at = first.at.format("%Y-%m-%d %H:%M:%S UTC");
            format!(" by {} over {} at {at}", first.by, first.channel)
        }
        (None, Some(why)) => format!(": {why}"),
        (None, None) => String::new(),
    };
    AnswerError::Closed {
        id: question.id,
        state: question.state,
        by,
        kept: late != LateAnswer::Dropped,
        counts: late == LateAnswer::Counted,
    }
}

fn refused(question: &Question, given: AnswerInput<'_>, refusal: Refusal) -> AnswerError {
    match refusal {
        Refusal::Empty => AnswerError::Empty {
            choices: choices_told(question),
        },
        Refusal::NotAChoice => AnswerError::NotAChoice {
            id: question.id,
            text: given.text(),
            choices: choices_told(question),
        },
        Refusal::WordsAlone => AnswerError::WordsAlone {
            id: question.id,
            choices: choices_told(question),
        },
        Refusal::WordsMissing(choice) => AnswerError::WordsMissing { choice },
        Refusal::WordsBeside(choice) => AnswerError::WordsBeside { choice },
    }
}

/// Lists what would be an answer as it is typed, each choice by its id alone.
pub fn choices_in_short(question: &Question) -> String {
    let choices = question.choices.iter().map(typed);
    let words = reply::takes_words(question).then(|| "WORDS".to_owned());
    choices.chain(words).collect::<Vec<_>>().join(" | ")
}

/// Returns what is typed to choose this.
fn typed(choice: &Choice) -> String {
    format!("{}{}", choice.id, choice.words.typed())
}

/// Says in one line what would be an answer, each choice as its id with its label behind it.
pub fn choices_told(question: &Question) -> String {
    let told = |choice: &Choice| format!("`{}` ({})", typed(choice), choice.label);
    let mut told: Vec<String> = question.choices.iter().map(told).collect();
    if reply::takes_words(question) {
        told.push("words of your own".to_owned());
    }
    match told.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => told.join(", "),
    }
}
