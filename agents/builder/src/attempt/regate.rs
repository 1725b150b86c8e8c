//! Shows kept work to the gate again, as it is: no slot, no model.

pub(super) mod by_hand;

use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::task::KeptWork;
use ropewalk_schemas::{CommitId, RepoPath};
use ropewalk_workspace::Rebase;

use super::ending::Fault;
use super::joining;
use super::report::Report;
use super::work::{Work, held_now};
use super::{Ending, Proposal, check_proposal, earlier, start};
use crate::claim::conversation;
use crate::error::BuilderError;

/// Puts kept work onto `head` and checks it there: what a person allowed, what no check could look at before, or what missed a
/// package that is there by now.
///
/// A yes is bound to content, so nothing may touch the work in between; where it no longer fits or does not pass, the
/// conversation that handed it in is told so, and where that has ended the next attempt goes on from it with a model.
pub(super) async fn regate(
    work: &Work<'_>,
    (head, kept): (&CommitId, &KeptWork),
    report: &mut Report,
) -> Result<Ending, BuilderError> {
    if !start(work).await? {
        return Ok(Ending::Interrupted("the task was taken away".to_owned()));
    }
    let clone = &work.shared.clone;
    // What a person made may be several commits, and stays them where they stand on the head.
    let stands = clone.is_ancestor(&work.base(), &kept.candidate).await?;
    let commit = if stands {
        kept.candidate.clone()
    } else {
        match joining::rebase(work, &kept.candidate, head).await? {
            (Rebase::Rebased(rebased), _) => rebased.commit,
            (Rebase::Conflict(files), _) => {
                return Ok(Ending::Failed(Box::new(Fault::of_conflict(&files))));
            }
        }
    };
    let preserved = clone.preserve(&work.key(), &commit).await?;
    report.candidate = Some(commit.clone());
    report.preserve_ref = Some(preserved.reference);
    report.granted.clone_from(&kept.granted);
    report.summary = earlier::said_of(work, &kept.candidate).await?;
    report.turn = handed_in(work).await?;
    let allowed: Vec<RepoPath> = held_now(&work.locks).into_keys().collect();
    check_proposal(work, &Proposal { commit, allowed }, report).await
}

/// Returns the turn that handed the kept work in: the last one of the conversation that the attempt takes up, since nobody was asked
/// for anything after it; none where that conversation has ended, and another one begins.
async fn handed_in(work: &Work<'_>) -> Result<Option<u32>, BuilderError> {
    let store = &work.context.store;
    let conversation = conversation(&work.claim.task, work.claim.round);
    let mut last = None;
    for turn in 1.. {
        let key = format!("{conversation}/{turn}");
        if store.get::<ModelCall>(&key).await?.is_none() {
            break;
        }
        last = Some(turn);
    }
    Ok(last)
}
