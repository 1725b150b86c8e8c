//! Looks after builds: does what people want of their branches, settles them, lays their ground, checks them as a whole,
//! publishes what is not published.

pub(crate) mod adopt;
mod branch;
mod lease_reaper;
mod prime;
pub(crate) mod publish;
pub(crate) mod recover;
pub(crate) mod resolve;
mod retirements;
mod settle;
pub(crate) mod tasks_file;
mod traced;
pub(crate) mod verdicts;
mod verify;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use ropewalk_orchestrator::Context;
use ropewalk_schemas::BuildId;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_store::Versioned;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::SharedState;
use super::context::{self, builds_in};
use super::error::BuilderError;
use super::processes::Duty;
use lease_reaper::LeaseReaper;
use retirements::UntoldRetirements;

/// The first pause after a call. A call may come just before the commit that it speaks of, so the next look is soon.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The pause when nothing has called for long.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The pause while another process does the work on a build.
const DUTY_PAUSE: Duration = Duration::from_millis(200);
/// So soon after a publication the next one of the same build waits, and takes what landed meanwhile with it.
const BETWEEN_PUBLICATIONS: Duration = Duration::from_millis(250);
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
            Some(build) = chores.finished() => {
                chores.busy.remove(&build);
                pause = FIRST_PAUSE;
            }
            () = tokio::time::sleep(rest) => pause = (pause * 2).min(LONGEST_PAUSE),
        }
    }
}

/// Long work on builds, at most one piece per build.
#[derive(Default)]
struct Chores {
    running: JoinSet<BuildId>,
    busy: HashSet<BuildId>,
    /// Builds whose branches are to follow their heads, whatever becomes of them meanwhile.
    owed: HashSet<BuildId>,
    /// When a publication last began, where that was not long ago.
    published: HashMap<BuildId, Instant>,
}

impl Chores {
    /// Waits for the next piece of work to end; never, when there is none.
    async fn finished(&mut self) -> Option<BuildId> {
        match self.running.join_next().await {
            Some(Ok(build)) => Some(build),
            Some(Err(error)) => {
                warn!("work on a build crashed: {error}");
                // Whose it was is not told, so everything may begin anew; every piece is safe to repeat.
                self.busy.clear();
                None
            }
            None => std::future::pending().await,
        }
    }

    /// Takes the builds whose branches are to follow now; the others stay owed.
    fn due(&mut self) -> Vec<BuildId> {
        self.published
            .retain(|_, at| at.elapsed() < BETWEEN_PUBLICATIONS);
        let may =
            |build: &BuildId| !self.busy.contains(build) && !self.published.contains_key(build);
        let due: Vec<BuildId> = self.owed.iter().copied().filter(may).collect();
        for build in &due {
            self.owed.remove(build);
            self.published.insert(*build, Instant::now());
        }
        due
    }

    /// Shortens a pause to the time when the next branch is to follow.
    fn rest(&self, pause: Duration) -> Duration {
        let owed = self
            .owed
            .iter()
            .filter(|build| !self.busy.contains(build))
            .filter_map(|build| self.published.get(build));
        let due = owed.map(|at| BETWEEN_PUBLICATIONS.saturating_sub(at.elapsed()));
        due.fold(pause, Duration::min)
    }

    fn begin(
        &mut self,
        shared: &Arc<SharedState>,
        build: BuildId,
        work: impl Future<Output = Result<(), BuilderError>> + Send + 'static,
    ) {
        if self.busy.insert(build) {
            let shared = Arc::clone(shared);
            self.running.spawn(async move {
                if let Err(error) = on_duty(&shared, build, work).await {
                    warn!(build.id = %build, "work on build `{build}` failed and is tried again: {error}");
                    tokio::time::sleep(LONGEST_PAUSE).await;
                }
                build
            });
        }
    }
}

/// Does the work unless another process is at it; then there is another look a little later.
async fn on_duty(
    shared: &SharedState,
    build: BuildId,
    work: impl Future<Output = Result<(), BuilderError>>,
) -> Result<(), BuilderError> {
    match shared.processes.duty(build)? {
        Duty::Ours(_duty) => work.await,
        Duty::Theirs => {
            tokio::time::sleep(DUTY_PAUSE).await;
            Ok(())
        }
    }
}

async fn look(
    shared: &Arc<SharedState>,
    context: &Context,
    chores: &mut Chores,
) -> Result<(), BuilderError> {
    let builds = builds_in(&context.store, &LOOKED_AFTER).await?;
    end_unwanted(shared, context, &builds).await?;
    for wish in branch::wishes(context).await? {
        let (work, shared, context) = (shared, Arc::clone(shared), context.clone());
        let id = wish.build;
        chores.begin(work, id, async move {
            branch::fulfil(&shared, &context, id).await
        });
    }
    for build in &builds {
        match need(build) {
            Need::Nothing => {}
            // It begins on what still runs, whose end is a commit that wakes everybody.
            Need::Ground
                if builds
                    .iter()
                    .any(|one| one.spec == build.spec && one.gives_way()) => {}
            Need::Ground => {
                let (work, shared, context) = (shared, Arc::clone(shared), context.clone());
                let id = build.id;
                chores.begin(work, id, async move {
                    prime::prime(&shared, &context, id).await
                });
            }
            Need::Check => {
                let (work, shared, context) = (shared, Arc::clone(shared), context.clone());
                let id = build.id;
                chores.begin(work, id, async move {
                    verify::verify(&shared, &context, id).await
                });
            }
            Need::Settling => {
                if let Err(error) = settle::settle(shared, context, build.id).await {
                    warn!(build.id = %build.id, "build `{}` could not be settled: {error}", build.id);
                }
                if build.head != build.published {
                    chores.owed.insert(build.id);
                }
            }
        }
    }
    for id in chores.due() {
        let (work, shared, context) = (shared, Arc::clone(shared), context.clone());
        chores.begin(work, id, async move {
            publish::publish(&shared, &context, id).await
        });
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_branch_that_followed_just_now_follows_again_a_little_later() {
        let build = BuildId(uuid::Uuid::from_u128(1));
        let mut chores = Chores::default();
        chores.owed.insert(build);
        assert_eq!(chores.due(), [build]);
        assert_eq!(chores.rest(LONGEST_PAUSE), LONGEST_PAUSE, "nothing is owed");
        chores.owed.insert(build);
        assert!(chores.due().is_empty());
        assert_eq!(chores.rest(LONGEST_PAUSE), BETWEEN_PUBLICATIONS);
        chores.busy.insert(build);
        tokio::time::advance(BETWEEN_PUBLICATIONS).await;
        assert!(
            chores.due().is_empty(),
            "another piece of work on it is under way"
        );
        assert_eq!(chores.rest(LONGEST_PAUSE), LONGEST_PAUSE);
        chores.busy.clear();
        assert_eq!(chores.due(), [build]);
    }
}
