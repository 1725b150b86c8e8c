//! Does the long work on builds, at most one piece per build: noted as in hand, and alone where the program may have died
//! of it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use ropewalk_orchestrator::Context;
use ropewalk_runtime::Supervisor;
use ropewalk_schemas::BuildId;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::warn;

use super::LONGEST_PAUSE;
use super::streaks::{FailureStreaks, Piece};
use super::work::Work;
use super::{branch, prime, publish, settle, verify};
use crate::SharedState;
use crate::error::BuilderError;
use crate::isolation::{WorkAdmission, WorkRight};
use crate::processes::Duty;

/// The pause while another process does the work on a build.
const DUTY_PAUSE: Duration = Duration::from_millis(200);
/// So soon after a publication the next one of the same build waits, and takes what landed meanwhile with it.
const BETWEEN_PUBLICATIONS: Duration = Duration::from_millis(250);

/// Long work on builds, at most one piece per build.
#[derive(Default)]
pub(super) struct Chores {
    running: JoinSet<(Piece, Outcome)>,
    busy: HashSet<BuildId>,
    /// What the last look wanted done, whether it could begin or not.
    wanted: HashSet<Piece>,
    /// Whether some of that waits to be tried alone.
    waits: bool,
    /// Builds whose branches are to follow their heads, whatever becomes of them meanwhile.
    owed: HashSet<BuildId>,
    /// When a publication last began, where that was not long ago.
    published: HashMap<BuildId, Instant>,
    pub(super) streaks: FailureStreaks,
}

/// What came of a piece of work.
pub(super) enum Outcome {
    /// It is done.
    Done,
    /// Another process is at it.
    Elsewhere,
    /// It waits for a person who needs nobody to ask them, and says for what.
    Waits(String),
    /// It failed.
    Failed(String),
}

impl Chores {
    /// Waits for the next piece of work to end; never, when there is none.
    pub(super) async fn finished(&mut self) -> Option<(Piece, Outcome)> {
        match self.running.join_next().await {
            Some(Ok(ended)) => Some(ended),
            Some(Err(error)) => {
                warn!("work on a build crashed: {error}");
                // Whose it was is not told, so everything may begin anew; every piece is safe to repeat.
                self.busy.clear();
                None
            }
            None => std::future::pending().await,
        }
    }

    /// Frees the build of a piece of work that has ended, and counts what failed.
    pub(super) async fn ended(
        &mut self,
        shared: &SharedState,
        context: &Context,
        (piece, outcome): (Piece, Outcome),
    ) {
        self.busy.remove(&piece.0);
        if piece.1 == Work::Publication && !matches!(outcome, Outcome::Done) {
            self.owe(piece.0);
        }
        match outcome {
            Outcome::Done => self.streaks.over(shared, context, piece).await,
            Outcome::Elsewhere => {}
            Outcome::Waits(reason) => {
                warn!(build.id = %piece.0, "work on build `{}` is tried again: {reason}", piece.0);
                self.streaks.wait(piece, LONGEST_PAUSE);
            }
            Outcome::Failed(error) => {
                self.streaks.failed(shared, context, piece, &error).await;
            }
        }
    }

    /// Begins a look at what is to be done.
    pub(super) fn look(&mut self) {
        self.wanted.clear();
        self.waits = false;
    }

    /// Ends a look: what nobody wants any more fails no more, and what is to be tried alone is waited for.
    pub(super) async fn looked(&mut self, shared: &SharedState, context: &Context) {
        let (wanted, busy, owed) = (&self.wanted, &self.busy, &self.owed);
        let is_wanted = |piece: &Piece| {
            let is_owed = piece.1 == Work::Publication && owed.contains(&piece.0);
            wanted.contains(piece) || busy.contains(&piece.0) || is_owed
        };
        self.streaks.forget_unless(shared, context, is_wanted).await;
        if shared.isolation.let_work_wait(self.waits) {
            shared.signals.wake_loops();
        }
    }

    /// Notes that something is to be done; returns whether that rests.
    pub(super) fn want(&mut self, piece: Piece) -> bool {
        self.wanted.insert(piece);
        self.streaks.rests(piece)
    }

    /// Notes that the branch of a build is to follow its head.
    pub(super) fn owe(&mut self, build: BuildId) {
        self.owed.insert(build);
    }

    /// Lists the builds whose branches are to follow now; they stay owed until that begins.
    pub(super) fn due(&mut self) -> Vec<BuildId> {
        self.published
            .retain(|_, at| at.elapsed() < BETWEEN_PUBLICATIONS);
        let may = |build: &BuildId| {
            !self.busy.contains(build)
                && !self.published.contains_key(build)
                && !self.streaks.rests((*build, Work::Publication))
        };
        self.owed.iter().copied().filter(may).collect()
    }

    /// Notes that the branch of a build follows its head now.
    fn follows(&mut self, build: BuildId) {
        self.owed.remove(&build);
        self.published.insert(build, Instant::now());
    }

    /// Shortens a pause to the time when the next branch is to follow, or something has rested.
    pub(super) fn rest(&self, pause: Duration) -> Duration {
        let owed = self
            .owed
            .iter()
            .filter(|build| !self.busy.contains(build))
            .filter_map(|build| self.published.get(build));
        let due = owed.map(|at| BETWEEN_PUBLICATIONS.saturating_sub(at.elapsed()));
        due.chain(self.streaks.due()).fold(pause, Duration::min)
    }

    /// Begins a piece of work, unless its build is busy, it rests, or it may not begin beside what runs.
    pub(super) fn begin(&mut self, shared: &Arc<SharedState>, context: &Context, piece: Piece) {
        let rests = self.want(piece);
        if rests || self.busy.contains(&piece.0) {
            return;
        }
        let right = match WorkRight::ask(shared, context, piece.1.suspect(piece.0)) {
            WorkAdmission::Granted(right) => right,
            WorkAdmission::Waits => {
                self.waits = true;
                return;
            }
            WorkAdmission::Refused => return,
        };
        self.busy.insert(piece.0);
        if piece.1 == Work::Publication {
            self.follows(piece.0);
        }
        let (shared, context) = (Arc::clone(shared), context.clone());
        self.running.spawn(async move {
            let outcome = on_duty(&shared, &context, piece).await;
            drop(right);
            (piece, outcome)
        });
    }
}

/// Does the work unless another process is at it; then there is another look a little later.
async fn on_duty(shared: &SharedState, context: &Context, piece: Piece) -> Outcome {
    let _duty = match shared.processes.duty(piece.0) {
        Ok(Duty::Ours(duty)) => duty,
        Ok(Duty::Theirs) => {
            tokio::time::sleep(DUTY_PAUSE).await;
            return Outcome::Elsewhere;
        }
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    match in_hand(context, piece, Box::pin(work(shared, context, piece))).await {
        Ok(()) => Outcome::Done,
        Err(error) if error.is_left_to_people() => Outcome::Waits(error.to_string()),
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

async fn work(
    shared: &SharedState,
    context: &Context,
    (build, what): Piece,
) -> Result<(), BuilderError> {
    match what {
        Work::Ground => prime::prime(shared, context, build).await,
        Work::Check => verify::verify(shared, context, build).await,
        Work::Wish => branch::fulfil(shared, context, build).await,
        Work::Publication => publish::publish(shared, context, build).await,
        Work::Settlement => settle::settle(shared, context, build).await.map(drop),
    }
}

/// Does a piece of work so that a death meanwhile is charged to it; a crash is a failure like any other.
pub(super) async fn in_hand(
    context: &Context,
    (build, what): Piece,
    work: impl Future<Output = Result<(), BuilderError>>,
) -> Result<(), BuilderError> {
    let suspects = context.registry.suspects();
    let suspect = what.suspect(build);
    let mark = suspects.hold(suspect.clone(), 0);
    let guarded = Supervisor::guard("work on a build", work);
    let outcome = mark.around(guarded).await;
    drop(mark);
    // However it ended, the program did not die of it.
    suspects.let_go(&suspect, &context.store).await;
    outcome.unwrap_or_else(|crash| Err(BuilderError::Missing(crash.to_string())))
}

#[cfg(test)]
mod tests {
    use ropewalk_orchestrator::Suspects;
    use ropewalk_runtime::{Clock, InHand};
    use ropewalk_world::Plan;

    use super::*;
    use crate::decide::fixture::noon;

    #[tokio::test]
    async fn a_piece_of_work_is_in_hand_while_it_runs_and_a_crash_of_it_is_a_failure() {
        let directory = tempfile::tempdir().unwrap();
        let notes = directory.path().join("in-hand");
        let (in_hand_now, left) = InHand::open(&notes).unwrap();
        in_hand_now.begin();
        let plan = Plan::at(&Clock::manual(noon())).counting(Suspects::new(in_hand_now, left));
        let world = plan.open(directory.path()).await.unwrap();
        let context = world.context("build-scheduler").unwrap();
        let piece = (BuildId(uuid::Uuid::from_u128(1)), Work::Check);
        let in_hand_now = || InHand::open(&notes).unwrap().1;
        let work = async {
            let entities = in_hand_now().into_iter().map(|item| item.entity);
            assert_eq!(entities.collect::<Vec<_>>(), [piece.1.suspect(piece.0)]);
            Ok(())
        };
        in_hand(&context, piece, work).await.unwrap();
        assert_eq!(in_hand_now(), []);
        let crash = async {
            assert!(in_hand_now().is_empty(), "broken");
            Ok(())
        };
        let failed = in_hand(&context, piece, crash).await.unwrap_err();
        assert!(failed.to_string().contains("broken"), "{failed}");
        assert_eq!(in_hand_now(), []);
        world.close().await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_branch_that_followed_just_now_follows_again_a_little_later() {
        let build = BuildId(uuid::Uuid::from_u128(1));
        let mut chores = Chores::default();
        chores.owed.insert(build);
        assert_eq!(chores.due(), [build]);
        chores.follows(build);
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
