//! Looks after builds: does what people want of their branches, settles them, lays their ground, checks them as a whole,
//! publishes what is not published.

pub(crate) mod adopt;
mod branch;
mod chores;
mod deadly;
mod lease_reaper;
mod prime;
pub(crate) mod publish;
pub(crate) mod recover;
pub(crate) mod resolve;
mod retirements;
mod settle;
mod streaks;
pub(crate) mod tasks_file;
mod traced;
pub(crate) mod verdicts;
mod verify;
pub(crate) mod work;

use std::sync::Arc;
use std::time::Duration;

use ropewalk_orchestrator::Context;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_store::Versioned;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::SharedState;
use super::context::{self, builds_in};
use super::error::BuilderError;
use chores::Chores;
use lease_reaper::LeaseReaper;
use retirements::UntoldRetirements;
use work::Work;

/// The first pause after a call. A call may come just before the commit that it speaks of, so the next look is soon.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The pause when nothing has called for long.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The states in which a build has something to look after.
const LOOKED_AFTER: [BuildState; 6] = [
    BuildState::Queued,
    BuildState::Priming,
    BuildState::Running,
    BuildState::Paused,
    BuildState::Verifying,
    BuildState::Stopped,
];

/// Works until `ending`.
pub(crate) async fn run(shared: Arc<SharedState>, context: Context, ending: CancellationToken) {
    let mut feed = context.store.feed();
    let mut bell = shared.signals.scheduler();
    let mut chores = Chores::default();
    let mut pause = FIRST_PAUSE;
    let mut lease_reaper = LeaseReaper::default();
    let mut retirements = UntoldRetirements::default();
    if let Err(error) = chores.streaks.take_up(&context).await {
        warn!("what kept builds before could not be read: {error}");
    }
    match publish::unpublished(&context).await {
        Ok(builds) => {
            for build in builds {
                chores.owe(build);
            }
        }
        Err(error) => warn!("which branches are to follow could not be read: {error}"),
    }
    while !ending.is_cancelled() {
        bell.borrow_and_update();
        if let Err(error) = look(&shared, &context, &mut chores).await {
            warn!("the builds could not be looked after: {error}");
        }
        if let Err(error) = lease_reaper.reap(&shared, &context).await {
            warn!("the locks could not be looked after: {error}");
        }
        if let Err(error) = retirements.raise(&shared, &context).await {
            warn!("nobody could be told yet of a checkout that was retired: {error}");
        }
        let rest = chores.rest(pause);
        tokio::select! {
            () = ending.cancelled() => break,
            _ = bell.changed() => pause = FIRST_PAUSE,
            committed = feed.next() => {
                if committed.is_none() {
                    break;
                }
                pause = FIRST_PAUSE;
            }
            Some(ended) = chores.finished() => {
                chores.ended(&shared, &context, ended).await;
                pause = FIRST_PAUSE;
            }
            () = tokio::time::sleep(rest) => pause = (pause * 2).min(LONGEST_PAUSE),
        }
    }
}

async fn look(
    shared: &Arc<SharedState>,
    context: &Context,
    chores: &mut Chores,
) -> Result<(), BuilderError> {
    context.registry.suspects().reread(&context.store).await?;
    let builds = builds_in(&context.store, &LOOKED_AFTER).await?;
    end_unwanted(shared, context, &builds).await?;
    chores.look();
    for wish in branch::wishes(context).await? {
        chores.begin(shared, context, (wish.build, Work::Wish));
    }
    for build in &builds {
        match need(build) {
            Need::Nothing => {}
            // It begins on what still runs, whose end is a commit that wakes everybody.
            Need::Ground
                if builds
                    .iter()
                    .any(|one| one.spec == build.spec && one.gives_way()) => {}
            Need::Ground => chores.begin(shared, context, (build.id, Work::Ground)),
            Need::Check => chores.begin(shared, context, (build.id, Work::Check)),
            Need::Settling => {
                settle_one(shared, context, chores, build).await;
                if build.head != build.published {
                    chores.owe(build.id);
                }
            }
        }
    }
    for id in shared.signals.take_owed() {
        chores.owe(id);
    }
    for id in chores.due() {
        chores.begin(shared, context, (id, Work::Publication));
    }
    chores.looked(shared, context).await;
    Ok(())
}

/// Takes the next step of a build, unless the last try failed just now.
async fn settle_one(shared: &SharedState, context: &Context, chores: &mut Chores, build: &Build) {
    let piece = (build.id, Work::Settlement);
    if chores.want(piece) {
        return;
    }
    match settle::settle(shared, context, build.id).await {
        Ok(_) => chores.streaks.over(shared, context, piece).await,
        Err(error) => {
            let error = error.to_string();
            chores.streaks.failed(shared, context, piece, &error).await;
        }
    }
}

/// Ends the attempts of this process that the store knows as running no more: somebody interrupted the task, took its
/// locks, or stopped the build. That follows from what is stored alone, so nothing is lost by a crash after the commit.
async fn end_unwanted(
    shared: &SharedState,
    context: &Context,
    builds: &[Versioned<Build>],
) -> Result<(), BuilderError> {
    for (attempt, id, task) in shared.signals.going() {
        let build = builds.iter().find(|build| build.id == id);
        let reason = if build
            .is_some_and(|build| build.state == BuildState::Stopped && !build.gives_way())
        {
            "the build was stopped"
        } else {
            let task = context::task(&context.store, id, &task).await?;
            if task.is_some_and(|task| task.attempt == Some(attempt)) {
                continue;
            }
            "the task was taken away"
        };
        shared.signals.cancel(attempt, reason);
    }
    Ok(())
}

/// What a build needs next.
enum Need {
    Nothing,
    Ground,
    Check,
    Settling,
}

fn need(build: &Build) -> Need {
    match build.state {
        BuildState::Stopped if build.completed_at.is_some() => Need::Nothing,
        BuildState::Queued | BuildState::Priming => Need::Ground,
        BuildState::Running if build.head.is_none() => Need::Ground,
        BuildState::Verifying => Need::Check,
        _ => Need::Settling,
    }
}
