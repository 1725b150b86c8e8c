//! Names what may be what the program dies of: what it has in hand, and what earlier processes had when they died.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ropewalk_runtime::in_hand::{InHand, Mark, WorkItem};
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::deaths::Deaths;
use ropewalk_schemas::{BuildId, TaskId};
use ropewalk_store::{ChangeSet, DeliveryKey, Query, ReadError, Store};
use tracing::warn;

use super::DeathsError;
use super::decide::{self, Verdict};

/// How far apart two tries of a delivery are, so that the turns of one never reach the next.
const TRY_STEPS: u32 = 1_000;

/// What this process has in hand, and what earlier ones died of. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Suspects {
    pub(super) in_hand: InHand,
    /// What the process before had in hand when it died, until that is charged.
    pub(super) left: Arc<Mutex<Vec<WorkItem>>>,
    standing: Arc<Mutex<BTreeMap<String, Deaths>>>,
}

impl Suspects {
    /// Returns the suspects of a process that keeps its notes in `in_hand`, after one that died with `left` in hand.
    pub fn new(in_hand: InHand, left: Vec<WorkItem>) -> Self {
        Self {
            in_hand,
            left: Arc::new(Mutex::new(left)),
            standing: Arc::default(),
        }
    }

    /// Names a delivery.
    pub fn delivery(key: &DeliveryKey) -> String {
        format!("delivery/{key}")
    }

    /// Names a task.
    pub fn task(build: BuildId, task: &TaskId) -> String {
        format!("task/{build}/{task}")
    }

    /// Names a piece of work on a build.
    pub fn work(build: BuildId, what: &str) -> String {
        format!("build/{build}/{what}")
    }

    /// Takes `entity` in hand.
    pub fn hold(&self, entity: String, step: u32) -> Mark {
        self.in_hand.hold(entity, step)
    }

    /// Takes try number `attempt` of a delivery in hand.
    pub(crate) fn hold_delivery(&self, key: &DeliveryKey, attempt: u32) -> Mark {
        self.hold(Self::delivery(key), attempt.saturating_mul(TRY_STEPS))
    }

    /// Returns what the program died of that `entity` may be the cause of.
    pub fn deaths(&self, entity: &str) -> Option<Deaths> {
        self.standing().get(entity).cloned()
    }

    /// Returns what is to run alone, the one that is most likely innocent first.
    pub fn alone(&self) -> Vec<Deaths> {
        let mut alone = self.judged(Verdict::Alone);
        alone.sort_by_key(|deaths| deaths.count);
        alone
    }

    /// Returns what is not to run again by itself.
    pub fn parked(&self) -> Vec<Deaths> {
        self.judged(Verdict::Parked)
    }

    fn judged(&self, verdict: Verdict) -> Vec<Deaths> {
        let standing = self.standing();
        let judged = standing
            .values()
            .filter(|deaths| decide::verdict(deaths.count) == verdict);
        judged.cloned().collect()
    }

    /// Looks which of what is suspected was freed since, by an answer that this process or another one handled.
    pub async fn reread(&self, store: &Store) -> Result<(), ReadError> {
        if self.standing().is_empty() {
            return Ok(());
        }
        let rows = store.list::<Deaths>(Query::new()).await?;
        let is_counted = |entity: &String| rows.iter().any(|row| row.entity == *entity);
        self.standing().retain(|entity, _| is_counted(entity));
        Ok(())
    }

    /// Lets `entity` go: it ended, or came further. What cannot be stored now is let go at the next start.
    pub async fn let_go(&self, entity: &str, store: &Store) {
        if self.standing().remove(entity).is_none() {
            return;
        }
        let outcome = async {
            let mut changes = ChangeSet::new();
            if let Some(row) = store.get::<Deaths>(entity).await? {
                changes.delete(&row);
                store.commit(changes).await?;
            }
            Ok::<(), DeathsError>(())
        };
        if let Err(problem) = outcome.await {
            warn!(suspect = %entity, "`{entity}` is still counted as what the program died of: {}", Words::of(&problem));
        }
    }

    /// Notes that the program is asked to stop, so that nothing is charged for its end.
    pub fn stop(&self) {
        self.in_hand.stop();
    }

    pub(super) fn standing(&self) -> MutexGuard<'_, BTreeMap<String, Deaths>> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
