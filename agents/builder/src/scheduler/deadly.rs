//! Sets aside work on builds that the program died of too often, and asks a person how to go on.

use chrono::{DateTime, Utc};
use ropewalk_config::Trigger;
use ropewalk_orchestrator::Context;
use ropewalk_orchestrator::deaths::decide::{Verdict, verdict};
use ropewalk_schemas::BuildId;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_store::{ChangeSet, Query, retry_on_conflict};
use tracing::warn;

use super::publish::Against;
use super::work::Work;
use super::{LOOKED_AFTER, Need, branch, need, publish};
use crate::SharedState;
use crate::ask;
use crate::context::{self, of_build};
use crate::effects::Scene;
use crate::error::BuilderError;
use crate::machine::build::Input;

/// Holds the builds whose work is not to run again by itself, or refuses what was wanted of their branches.
///
/// What is held or refused runs no more, so its deaths are let go. A branch would follow its head in every state, so they stay
/// until a person wants that tried again.
pub(super) async fn set_aside(shared: &SharedState, context: &Context) -> Result<(), BuilderError> {
    let suspects = context.registry.suspects();
    for deaths in suspects.parked() {
        let Some((build, work)) = Work::of(&deaths.entity) else {
            continue;
        };
        let told = work.died(deaths.count);
        warn!(build.id = %build, "build `{build}` goes on only after somebody said so: {told}");
        match work {
            Work::Publication => {
                contest(shared, context, build, told, deaths.last_at).await?;
                continue;
            }
            Work::Wish => branch::set_aside(shared, context, build, deaths.count).await?,
            Work::Ground | Work::Check | Work::Settlement => {
                hold(shared, context, build, told).await?;
            }
        }
        suspects.let_go(&deaths.entity, &context.store).await;
    }
    Ok(())
}

/// Forgets deaths of work that nobody wants any more: nothing has to wait for it.
pub(super) async fn let_go_of_what_is_over(context: &Context) -> Result<(), BuilderError> {
    let suspects = context.registry.suspects();
    for deaths in suspects.alone().into_iter().chain(suspects.parked()) {
        if let Some((build, work)) = Work::of(&deaths.entity)
            && is_over(context, build, work).await?
        {
            suspects.let_go(&deaths.entity, &context.store).await;
        }
    }
    Ok(())
}

async fn is_over(context: &Context, id: BuildId, work: Work) -> Result<bool, BuilderError> {
    let Some(build) = context::build(&context.store, id).await? else {
        return Ok(true);
    };
    Ok(match work {
        Work::Ground => !matches!(need(&build), Need::Ground),
        Work::Check => !matches!(need(&build), Need::Check),
        Work::Wish => context::wish(&context.store, id).await?.is_none(),
        Work::Publication => build.head == build.published,
        Work::Settlement => true,
    })
}

/// Returns whether a branch may follow its head before anything else begins: one that the program may have died of is tried by
/// the scheduler, if that looks after its build, and else here, where nothing runs beside it.
pub(super) fn may_catch_up(context: &Context, build: &Build) -> bool {
    let suspect = Work::Publication.suspect(build.id);
    let deaths = context.registry.suspects().deaths(&suspect);
    match deaths.map_or(Verdict::Free, |deaths| verdict(deaths.count)) {
        Verdict::Free => true,
        Verdict::Alone => {
            !LOOKED_AFTER.contains(&build.state) || matches!(need(build), Need::Nothing)
        }
        Verdict::Parked => false,
    }
}

/// Holds a build, unless it went on by other ways.
async fn hold(
    shared: &SharedState,
    context: &Context,
    id: BuildId,
    told: String,
) -> Result<(), BuilderError> {
    retry_on_conflict!(BuilderError, id, {
        let Some(build) = context::build(&context.store, id).await? else {
            return Ok(Some(()));
        };
        let context = of_build(context, &build);
        let mut changes = ChangeSet::new();
        let input = Input::Hold {
            detail: told.clone(),
        };
        let scene = Scene::new(shared, &context, &build);
        let held = match scene.build(&mut changes, input).await {
            Ok(held) => held,
            Err(BuilderError::Illegal(_)) => return Ok(Some(())),
            Err(error) => return Err(error),
        };
        let (trigger, why) = (Trigger::BuildHeld, told.clone());
        let after = ask::held(shared, &context, &mut changes, &held, trigger, why).await?;
        changes.update(&build, &after);
        context.store.commit(changes).await?;
        Ok(Some(()))
    })
}

/// Asks about a branch that does not follow its head, unless the build was stopped, or that is asked already or was since the
/// program last died of it: who answered that it stays as it is, is not asked again.
async fn contest(
    shared: &SharedState,
    context: &Context,
    id: BuildId,
    told: String,
    died_at: DateTime<Utc>,
) -> Result<(), BuilderError> {
    let against = Against::Deadly(told);
    retry_on_conflict!(BuilderError, id, {
        let query = Query::new()
            .equal("build", id.to_string())
            .equal("trigger", Trigger::BranchRefused.as_str());
        let asked = context.store.list::<Question>(query).await?;
        let is_asked = asked.iter().any(|question| {
            question.state == QuestionState::Pending || question.asked_at >= died_at
        });
        let build = context::build(&context.store, id).await?;
        let build = build.filter(|build| build.state != BuildState::Stopped);
        if let Some(build) = build.filter(|_| !is_asked) {
            publish::hold(shared, context, &build, &against).await?;
        }
        Ok(Some(()))
    })
}
