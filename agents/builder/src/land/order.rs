//! Decides which build has to be landed first.

use std::collections::BTreeSet;

use ropewalk_coordination::ownership;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::build::{Build, StopCause};
use ropewalk_schemas::task::ChangeRequestState;
use ropewalk_schemas::{BuildId, CommitId};
use ropewalk_store::{ReadError, Versioned};
use ropewalk_workspace::LocalClone;

use super::LandError;
use crate::context::{self, Plan};

/// Returns what has to be landed first: a build that is followed, or the one that goes on from it, while its work is
/// neither landed, given up nor in the branch by other ways. None of two that each wait for the other is first: whichever a person
/// lands brings what it joined of the other one.
pub(super) async fn forerunner(
    clone: &LocalClone,
    context: &Context,
    build: &Build,
    tip: &CommitId,
) -> Result<Option<Versioned<Build>>, LandError> {
    for followed in &build.follows {
        let Some(other) = context::build(&context.store, followed.build).await? else {
            continue;
        };
        if other.merged.is_some() || clone.is_ancestor(&followed.commit, tip).await? {
            continue;
        }
        let last = ownership::successor_of(&context.store, other.id).await?;
        // What was given up never lands by itself: nobody could go first then.
        let lands = |last: &Versioned<Build>| {
            last.merged.is_none() && last.stop != Some(StopCause::Abandoned)
        };
        let Some(last) = last.filter(lands) else {
            continue;
        };
        if !waits_for(context, last.id, build.id).await? {
            return Ok(Some(last));
        }
    }
    Ok(None)
}

/// Returns whether `waiter` goes on only once `build` has landed: since it builds on it, or one of its tasks waits for a
/// file of it, or for such a build.
async fn waits_for(context: &Context, waiter: BuildId, build: BuildId) -> Result<bool, ReadError> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![waiter]);
    while let Some(next) = open.pop() {
        if next == build {
            return Ok(true);
        }
        if !seen.insert(next) {
            continue;
        }
        let Some(plan) = Plan::load(&context.store, next).await? else {
            continue;
        };
        if plan.build.merged.is_some() {
            continue;
        }
        open.extend(plan.build.follows.iter().map(|followed| followed.build));
        open.extend(plan.build.continued_by);
        let requests = plan.tasks.iter().flat_map(|task| &task.change_requests);
        let unanswered = requests.filter(|request| request.state == ChangeRequestState::Requested);
        open.extend(unanswered.map(|request| request.owner));
    }
    Ok(false)
}
