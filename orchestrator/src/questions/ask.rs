//! Puts a question: once in 24 hours, with its timers, in the change set of whoever asks.

use chrono::TimeDelta;
use ropewalk_config::QuestionDraft;
use ropewalk_schemas::payload::{QuestionAsked, QuestionClosed};
use ropewalk_schemas::question::{
    About, Answer, Choice, Content, Question, QuestionKind, QuestionState,
};
use ropewalk_schemas::{ChoiceId, Payload, QuestionId, Slug, Subject};
use ropewalk_store::{ChangeSet, Query, ReadError, Versioned};

use super::decide::Deadlines;
use super::{DEADLINE, REMIND};
use crate::agent::AgentError;
use crate::context::Context;
use crate::timers;

/// What an agent wants to ask.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionRequest {
    /// How the question behaves.
    pub kind: QuestionKind,
    /// What made the agent ask, for example `task_failed_repeatedly`.
    pub trigger: String,
    /// The question.
    pub text: String,
    /// Why it is asked.
    pub context: String,
    /// The choices.
    pub choices: Vec<Choice>,
    /// Whether words alone are an answer.
    pub free_text: bool,
    /// The choice taken when nobody answers.
    pub default: Option<ChoiceId>,
    /// Whether an answer would approve, start, promote, merge, delete, spend, skip or accept a risk.
    pub consequential: bool,
    /// What a yes holds for, and for nothing else.
    pub content: Option<Content>,
    /// What waits for the answer.
    pub about: About,
    /// What of it, where several questions of one trigger may be open about it.
    pub topic: Option<String>,
    /// The idea it is about.
    pub idea: Option<Slug>,
}

impl QuestionRequest {
    /// Asks what a filled-in template says, about `about`.
    pub fn of(draft: QuestionDraft, about: About, idea: Option<&Slug>) -> Self {
        Self {
            kind: draft.kind,
            trigger: draft.trigger.as_str().to_owned(),
            text: draft.text,
            context: draft.context,
            choices: draft.choices,
            free_text: draft.free_text,
            default: draft.default,
            consequential: draft.consequential,
            content: None,
            about,
            topic: None,
            idea: idea.cloned(),
        }
    }
}

/// What came of asking.
#[derive(Debug, Clone, PartialEq)]
pub enum AskOutcome {
    /// The question is open, newly asked or asked before and still open.
    Open(QuestionId),
    /// The same question was answered, or took its default, a short while ago; that answer holds.
    Reused(Answer),
}

/// Puts a question into `changes`, unless the same one is open or was answered a short while ago (24 hours by default).
pub async fn ask(
    changes: &mut ChangeSet,
    context: &Context,
    deadlines: &Deadlines,
    asking: QuestionRequest,
) -> Result<AskOutcome, AgentError> {
    if let Some(earlier) = earlier(context, deadlines, &asking).await? {
        let Some(answer) = earlier.answer.clone() else {
            return Ok(AskOutcome::Open(earlier.id));
        };
        // It stands closed beside the first one, so that everybody sees whose answer was taken.
        changes.insert(&Question {
            state: earlier.state,
            answer: Some(answer.clone()),
            reused_from: Some(earlier.id),
            due_at: None,
            ..question(context, deadlines, asking)
        });
        return Ok(AskOutcome::Reused(answer));
    }
    let question = question(context, deadlines, asking);
    let subject = Subject::question(question.id);
    changes.emit(context.event(
        subject,
        Payload::QuestionAsked(QuestionAsked {
            question_id: question.id,
            kind: question.kind,
            text: question.text.clone(),
            idea_slug: question.idea.clone(),
            about: question.about.clone(),
        }),
    ));
    let target = question.id.to_string();
    if let Some(due) = question.due_at {
        timers::set(changes, context, DEADLINE, &target, due);
    }
    if let Some(after) = deadlines.of(question.kind).remind_after {
        timers::set(changes, context, REMIND, &target, question.asked_at + after);
    }
    changes.insert(&question);
    Ok(AskOutcome::Open(question.id))
}

/// Returns the same question, if it is open or has been answered a short while ago.
///
/// A question about a task counts as the same only while it is open: a task that fails again asks again.
async fn earlier(
    context: &Context,
    deadlines: &Deadlines,
    asking: &QuestionRequest,
) -> Result<Option<Question>, ReadError> {
    let since = context.now() - TimeDelta::from_std(deadlines.repeat).unwrap_or(TimeDelta::MAX);
    let same = context
        .store
        .list::<Question>(Query::new().equal("trigger", asking.trigger.as_str()))
        .await?;
    Ok(same
        .into_iter()
        .map(|question| question.record)
        .filter(|question| question.about == asking.about && question.topic == asking.topic)
        .filter(|question| question.text == asking.text && question.content == asking.content)
        .filter(|question| match question.state {
            QuestionState::Pending => true,
            QuestionState::Answered | QuestionState::Defaulted => {
                question.asked_at >= since
                    // A reused answer does not grow younger by its reuse.
                    && question.reused_from.is_none()
                    && !question.consequential
                    && !matches!(question.about, About::Task { .. })
            }
            _ => false,
        })
        .max_by_key(|question| question.asked_at))
}

fn question(context: &Context, deadlines: &Deadlines, asking: QuestionRequest) -> Question {
    let asked_at = context.now();
    let ends = deadlines
        .of(asking.kind)
        .ends_after(asking.consequential)
        .map(|after| asked_at + after);
    Question {
        id: QuestionId(context.ids.next()),
        kind: asking.kind,
        trigger: asking.trigger,
        agent: context.source().clone(),
        text: asking.text,
        context: asking.context,
        choices: asking.choices,
        free_text: asking.free_text,
        default: asking.default,
        consequential: asking.consequential,
        content: asking.content,
        about: asking.about,
        topic: asking.topic,
        idea: asking.idea,
        state: QuestionState::Pending,
        answer: None,
        late: Vec::new(),
        closed_because: None,
        reused_from: None,
        correlation_id: context.correlation(),
        asked_at,
        due_at: ends,
        reminded_at: None,
    }
}

/// Closes an open question that no longer matters; a closed one stays as it is.
pub fn supersede(
    changes: &mut ChangeSet,
    context: &Context,
    question: &Versioned<Question>,
    reason: &str,
) {
    let Ok(state) = question.state.to(QuestionState::Superseded) else {
        return;
    };
    changes.update(
        question,
        &Question {
            state,
            closed_because: Some(reason.to_owned()),
            ..question.record.clone()
        },
    );
    changes.emit(context.event(
        Subject::question(question.id),
        Payload::QuestionSuperseded(QuestionClosed {
            question_id: question.id,
            reason: reason.to_owned(),
            about: question.about.clone(),
        }),
    ));
}
