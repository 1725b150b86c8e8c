//! Does what people want of the branch of a build: merge it, build on what somebody else put there, or leave it to them.
//!
//! A handler only notes the wish. Git and the gate take their time, and a crash on the way leaves the wish in its row.

use std::time::Duration;

use ropewalk_config::Trigger;
use ropewalk_orchestrator::Context;
use ropewalk_orchestrator::deaths::times;
use ropewalk_schemas::BuildId;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::wish::{BranchWish, Wish};
use ropewalk_store::{ChangeSet, Query, ReadError, Versioned, retry_on_conflict};
use tracing::{info, warn};

use super::publish::{self, Against};
use super::work::Work;
use super::{adopt::adopted, resolve};
use crate::SharedState;
use crate::ask;
use crate::context::{self, of_build};
use crate::effects::Scene;
use crate::error::BuilderError;
use crate::land::{self, LandError, LandRequest, LandedBuild};
use crate::machine::build::Input;

/// How often a landing is tried that failed by what may pass, before a person is asked.
const TRIES: u32 = 5;
/// The pause before each other try.
const PAUSE: Duration = Duration::from_secs(5);

/// Lists what people want, the oldest first.
pub(crate) async fn wishes(context: &Context) -> Result<Vec<Versioned<Wish>>, ReadError> {
    let oldest = Query::new().order_by("at");
    context.store.list::<Wish>(oldest).await
}

/// Does what a person wants of the branch of a build; one that is gone wants nothing any more.
pub(crate) async fn fulfil(
    shared: &SharedState,
    context: &Context,
    id: BuildId,
) -> Result<(), BuilderError> {
    let Some(wish) = context::wish(&context.store, id).await? else {
        return Ok(());
    };
    let context = context.because_of(wish.cause);
    match wish.what {
        BranchWish::BuildOnTop | BranchWish::OwnBranch => settle(shared, &context, id).await,
        BranchWish::Merge => merge(shared, &context, id, &wish.by).await,
        BranchWish::Resolve => resolve::resolve(shared, &context, id).await,
    }
}

/// Lets a build go on whose branch somebody moved.
async fn settle(shared: &SharedState, context: &Context, id: BuildId) -> Result<(), BuilderError> {
    retry_on_conflict!(BuilderError, id, {
        let Some(wish) = context::wish(&context.store, id).await? else {
            return Ok(Some(()));
        };
        let mut changes = ChangeSet::new();
        changes.delete(&wish);
        if let Some(build) = context::build(&context.store, id).await? {
            let context = of_build(context, &build);
            let after = settled(shared, &context, &mut changes, &build, wish.what).await?;
            changes.update(&build, &after);
        }
        context.store.commit(changes).await?;
        Ok(Some(()))
    })
}

async fn settled(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    what: BranchWish,
) -> Result<Build, BuilderError> {
    let adopted = match what {
        BranchWish::BuildOnTop => adopted(shared, context, build).await?,
        BranchWish::OwnBranch | BranchWish::Merge | BranchWish::Resolve => None,
    };
    if what == BranchWish::BuildOnTop && adopted.is_none() {
        // It moved again, and no longer goes together with what landed: that is another question.
        let found = shared.clone.user_branch(&build.branch).await?;
        return ask::branch_moved(shared, context, changes, build, found.as_ref()).await;
    }
    let scene = Scene::new(shared, context, build);
    let mut after = scene.build(changes, Input::SettleBranch).await?;
    if let Some(adopted) = adopted {
        after.head = Some(adopted.head);
        after.published = Some(adopted.branch);
    } else {
        // What others put on the branch stays theirs; the landed commits go on under a free name.
        after.branch = free_name(shared, build).await?;
        after.published = None;
    }
    Ok(after)
}

async fn free_name(shared: &SharedState, build: &Build) -> Result<String, BuilderError> {
    let mut number = 2_u32;
    loop {
        let branch = format!("build/{}-{number}", build.idea);
        if branch != build.branch && shared.clone.user_branch(&branch).await?.is_none() {
            return Ok(branch);
        }
        number += 1;
    }
}

/// Merges the branch; what is asked for and cannot be done is asked about again.
async fn merge(
    shared: &SharedState,
    context: &Context,
    id: BuildId,
    by: &str,
) -> Result<(), BuilderError> {
    let request = LandRequest {
        build: id,
        into: None,
        push: None,
        shape: shared.options.landing,
        by: by.to_owned(),
    };
    // A landing is written down at once and not with the end of the wish: whatever changes while the gate runs, what
    // the gate saw must not get lost.
    let refusal = land(shared, context, &request).await.err();
    retry_on_conflict!(BuilderError, id, {
        let Some(wish) = context::wish(&context.store, id).await? else {
            return Ok(Some(()));
        };
        let mut changes = ChangeSet::new();
        changes.delete(&wish);
        if let (Some(refusal), Some(build)) = (&refusal, context::build(&context.store, id).await?)
        {
            refuse(shared, context, &mut changes, &build, refusal).await?;
        }
        context.store.commit(changes).await?;
        Ok(Some(()))
    })
}

/// Lands a build, again where what stood against it may have passed.
async fn land(
    shared: &SharedState,
    context: &Context,
    request: &LandRequest,
) -> Result<LandedBuild, LandError> {
    let mut tries = 0;
    loop {
        tries += 1;
        match land::land(&shared.gate, context, request).await {
            Err(error) if !error.is_for_people() && tries < TRIES => {
                warn!(build.id = %request.build, "build `{}` is landed again: {}", request.build, Words::of(&error));
                tokio::time::sleep(PAUSE).await;
            }
            landed => return landed,
        }
    }
}

/// Gives up what a person wants of the branch of a build, since the program died of it too often, and asks how to go on.
pub(super) async fn set_aside(
    shared: &SharedState,
    context: &Context,
    id: BuildId,
    deaths: u32,
) -> Result<(), BuilderError> {
    retry_on_conflict!(BuilderError, id, {
        let Some(wish) = context::wish(&context.store, id).await? else {
            return Ok(Some(()));
        };
        let mut changes = ChangeSet::new();
        changes.delete(&wish);
        if let Some(build) = context::build(&context.store, id).await? {
            match wish.what {
                BranchWish::Merge | BranchWish::Resolve => {
                    let refusal = LandError::Deadly {
                        branch: build.branch.clone(),
                        often: times(deaths),
                    };
                    refuse(shared, context, &mut changes, &build, &refusal).await?;
                }
                BranchWish::BuildOnTop | BranchWish::OwnBranch => {
                    let against = Against::Deadly(Work::Wish.died(deaths));
                    let after =
                        publish::contested(shared, context, &mut changes, &build, &against).await?;
                    changes.update(&build, &after);
                }
            }
        }
        context.store.commit(changes).await?;
        Ok(Some(()))
    })
}

async fn refuse(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Versioned<Build>,
    refusal: &LandError,
) -> Result<(), BuilderError> {
    let context = of_build(context, build);
    let input = Input::RefuseLanding {
        why: Words::of(refusal).to_string(),
    };
    let scene = Scene::new(shared, &context, build);
    let unlanded = match scene.build(changes, input).await {
        Ok(unlanded) => unlanded,
        Err(BuilderError::Illegal(refused)) => {
            info!(build.id = %build.id, "the wish to land build `{}` came too late: {refused}", build.id);
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    // Whoever wanted it without that question is not asked two things about one branch.
    let (finished, why) = (Trigger::BuildFinished, "its landing was refused");
    ask::supersede_asked(&context, changes, build.id, finished, why).await?;
    let after = ask::landing_refused(shared, &context, changes, &unlanded, refusal).await?;
    changes.update(build, &after);
    Ok(())
}
