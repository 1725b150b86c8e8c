//! Shows kept work to the gate again, as it is: no slot, no model.

pub(super) mod by_hand;

use ropewalk_schemas::RepoPath;
use ropewalk_schemas::task::KeptWork;
use ropewalk_workspace::Rebase;

use super::landing;
use super::report::Report;
use super::work::{Work, held_now};
use super::{Ending, Proposal, check_proposal, earlier, start};
use crate::error::BuilderError;

/// Puts kept work onto the head and checks it there: what a person allowed, or what no check could look at before.
///
/// A yes is bound to content, so nothing may touch the work in between; where it no longer fits or does not pass, the
/// next attempt goes on from it with a model.
pub(super) async fn regate(
    work: &Work<'_>,
    kept: &KeptWork,
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
        match clone.rebase(&kept.candidate, &work.base()).await? {
            Rebase::Rebased(rebased) => rebased.commit,
            Rebase::Conflict(files) => {
                return Ok(Ending::Failed(Box::new(landing::conflict(&files))));
            }
        }
    };
    let preserved = clone.preserve(&work.key(), &commit).await?;
    report.candidate = Some(commit.clone());
    report.preserve_ref = Some(preserved.reference);
    report.granted.clone_from(&kept.granted);
    report.summary = earlier::said_of(work, &kept.candidate).await?;
    let allowed: Vec<RepoPath> = held_now(&work.locks).into_keys().collect();
    check_proposal(work, &Proposal { commit, allowed }, report).await
}
