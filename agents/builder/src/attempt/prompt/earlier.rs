//! Finds what an earlier conversation about the task came to, for one that begins anew.

use chrono::{DateTime, Utc};
use ropewalk_config::Trigger;
use ropewalk_desk::builds::forerunners;
use ropewalk_schemas::amendment::begun;
use ropewalk_schemas::attempt::Attempt;
use ropewalk_schemas::clip::{self, Weight};
use ropewalk_schemas::question::{About, Question};
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{BuildId, CommitId};
use ropewalk_store::{Query, Versioned, task_key};

use super::super::work::Work;
use super::background::{AnsweredQuestion, EarlierWork};
use crate::context::attempts_at;
use crate::error::BuilderError;

/// So much of a difference is told.
const DIFFERENCE_BYTES: usize = 24 * 1024;
/// So many answers are told, the newest.
const ANSWERS: usize = 20;
/// So much of a question is told.
const QUESTION_LETTERS: usize = 1_000;
/// So much of an answer is told.
const ANSWER_LETTERS: usize = 4_000;

/// Shows the latest work of earlier conversations; none where there was no work.
pub(in crate::attempt) async fn find(work: &Work<'_>) -> Result<Option<EarlierWork>, BuilderError> {
    let attempt = &work.claim.attempt;
    let attempts = attempts(work).await?;
    let before = attempts
        .iter()
        .rev()
        .filter(|one| one.round < attempt.round);
    for earlier in before {
        let Some((candidate, summary)) = left(work, earlier).await? else {
            continue;
        };
        let clone = &work.shared.clone;
        // What landed since that attempt began is no work of its own: it may have been put onto another head.
        let parent = format!("{candidate}^");
        let difference = clone.diff_of(&parent, candidate.as_str(), &[]).await?;
        if !difference.text.trim().is_empty() {
            return Ok(Some(EarlierWork {
                summary,
                difference: clip::ends(difference.text.trim_end(), DIFFERENCE_BYTES, Weight::Tail)
                    .into_owned(),
            }));
        }
    }
    Ok(None)
}

/// Lists what earlier conversations about the task asked people and these answered, the oldest first: this one finds none of it
/// among its calls. A build that it goes on from counts where the task was begun there.
pub(in crate::attempt) async fn answers(
    work: &Work<'_>,
) -> Result<Vec<AnsweredQuestion>, BuilderError> {
    let (store, claim) = (&work.context.store, work.claim);
    let task = &claim.task;
    let mut asked = asked_in(work, task.build).await?;
    asked.retain(|(round, _)| *round < claim.round);
    for before in forerunners(store, &claim.build).await? {
        let row = store.get::<Task>(&task_key(before.id, &task.id)).await?;
        let row = row.map(Versioned::into_inner);
        if row.is_some_and(|row| begun(&task.block, &[row]).is_some()) {
            asked.extend(asked_in(work, before.id).await?);
        }
    }
    asked.sort_by_key(|(_, question)| question.asked_at);
    let told = asked.iter().filter_map(|(_, question)| told_of(question));
    let mut told: Vec<AnsweredQuestion> = told.collect();
    drop(told.drain(..told.len().saturating_sub(ANSWERS)));
    Ok(told)
}

/// Lists what the model of the task asked in a build, each with the conversation in which it did.
async fn asked_in(work: &Work<'_>, build: BuildId) -> Result<Vec<(u32, Question)>, BuilderError> {
    let of_build = Query::new().equal("build", build.to_string());
    let asked = work.context.store.list::<Question>(of_build).await?;
    let own = &work.claim.task.id;
    let of_task = |one: &Question| matches!(&one.about, About::Task { task, .. } if task == own);
    let asked = asked.into_iter().map(Versioned::into_inner).filter(of_task);
    Ok(asked
        .filter_map(|question| Some((round_of(&question)?, question)))
        .collect())
}

/// Returns the conversation in which a model asked; none where it was no model.
fn round_of(question: &Question) -> Option<u32> {
    let trigger = Trigger::parse(&question.trigger)?;
    let of_model = matches!(
        trigger,
        Trigger::MissingContext | Trigger::MultipleImplementations
    );
    let topic = question.topic.as_deref().filter(|_| of_model)?;
    let (round, _) = topic.split_once('/')?;
    round.parse().ok()
}

fn told_of(question: &Question) -> Option<AnsweredQuestion> {
    Some(AnsweredQuestion {
        question: clip::line(&question.text, QUESTION_LETTERS),
        answer: clip::line(&question.answer_in_full()?, ANSWER_LETTERS),
        by: question.answer.as_ref()?.by.clone(),
    })
}

/// Returns what an agent said of `candidate` when it handed it in.
pub(in crate::attempt) async fn said_of(
    work: &Work<'_>,
    candidate: &CommitId,
) -> Result<Option<String>, BuilderError> {
    let attempts = attempts(work).await?;
    let works = attempts.iter().rev().filter_map(latest);
    let mut said = works.filter(|(commit, _)| commit == candidate);
    Ok(said.find_map(|(_, summary)| summary))
}

/// Returns the commit that the last attempt of an earlier round worked from; none where there was none.
pub(in crate::attempt) async fn last_base(
    work: &Work<'_>,
) -> Result<Option<CommitId>, BuilderError> {
    let attempts = attempts(work).await?;
    let mut before = attempts
        .into_iter()
        .rev()
        .filter(|one| one.id != work.claim.attempt.id);
    Ok(before.next().map(|one| one.into_inner().base))
}

/// Returns when the conversation began that the attempt holds or takes up again.
pub(in crate::attempt) async fn began(work: &Work<'_>) -> Result<DateTime<Utc>, BuilderError> {
    let own = &work.claim.attempt;
    let attempts = attempts(work).await?;
    let of_it = attempts.iter().filter(|one| one.round == own.round);
    let began = of_it.map(|one| one.started_at).min();
    Ok(began.unwrap_or(own.started_at))
}

/// Lists the attempts at the task, the first one first.
async fn attempts(work: &Work<'_>) -> Result<Vec<Versioned<Attempt>>, BuilderError> {
    let attempt = &work.claim.attempt;
    Ok(attempts_at(&work.context.store, attempt.build, &attempt.task).await?)
}

/// Returns the last work of an attempt, also where nobody handed it in, since it was ended from outside.
async fn left(
    work: &Work<'_>,
    attempt: &Versioned<Attempt>,
) -> Result<Option<(CommitId, Option<String>)>, BuilderError> {
    let (None, Some(reference)) = (latest(attempt), &attempt.preserve_ref) else {
        return Ok(latest(attempt));
    };
    let kept = work.shared.clone.resolve(reference).await?;
    Ok(kept.map(|commit| (commit, attempt.summary.clone())))
}

/// Returns the last work that an attempt handed in, with what its agent said of it.
fn latest(attempt: &Versioned<Attempt>) -> Option<(CommitId, Option<String>)> {
    let refused = attempt.tries.last();
    let candidate = attempt
        .candidate
        .clone()
        .or_else(|| refused.map(|one| one.candidate.clone()))?;
    let said = refused.and_then(|one| one.summary.clone());
    Some((candidate, attempt.summary.clone().or(said)))
}
