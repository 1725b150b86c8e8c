//! Finds what an earlier conversation about the task came to, for one that begins anew.

use chrono::{DateTime, Utc};
use ropewalk_schemas::CommitId;
use ropewalk_schemas::attempt::Attempt;
use ropewalk_schemas::clip::{self, Weight};
use ropewalk_store::{Query, Versioned};

use super::super::work::Work;
use super::background::EarlierWork;
use crate::error::BuilderError;

/// So much of a difference is told.
const DIFFERENCE_BYTES: usize = 24 * 1024;

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
    let query = Query::new()
        .equal("build", attempt.build.to_string())
        .equal("task", attempt.task.as_str())
        .order_by("number");
    Ok(work.context.store.list::<Attempt>(query).await?)
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
