//! Looks for a cycle when somebody begins to wait, and says what breaks it.
//!
//! Only what can be reached from the new edges is read. The edges and the answer to a cycle go into one change set; since
//! another process may add its half of a cycle at the same moment, [`wait`] looks once more after its commit.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use ropewalk_schemas::alert::{Alert, Severity};
use ropewalk_schemas::attempt::{Attempt, AttemptState};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::lease::{Lease, LeaseState};
use ropewalk_schemas::payload::DeadlockDetected;
use ropewalk_schemas::task::Task;
use ropewalk_schemas::wait::{Party, Resource, Wait};
use ropewalk_schemas::{Payload, Priority, Subject};
use ropewalk_store::{
    ChangeSet, CommitError, Query, ReadError, Store, Versioned, path_key, task_key, wait_key,
};

use crate::graph::{Cycle, Facts, WaitGraph, victim};
use crate::locks::{self, Announce};

/// How often adding waits is tried again when others change the same rows. It is no `retry_on_conflict`: a conflict over the rows of
/// the caller goes to the caller, who alone can read them anew.
const CONFLICTS: u32 = 16;
/// How many names one query takes.
const NAMES: usize = 200;

/// A cycle of waits, and what is needed to break it.
#[derive(Debug, Clone, PartialEq)]
pub struct Deadlock {
    /// The cycle.
    pub cycle: Cycle,
    /// Who gives way; `None` when no member holds a lock that the cycle waits for.
    pub victim: Option<Party>,
    /// The locks that the cycle waits for, as they were when it was found.
    held: Vec<Versioned<Lease>>,
    /// What the victim loses.
    leases: Vec<Versioned<Lease>>,
    waits: Vec<Versioned<Wait>>,
    alert: Option<Versioned<Alert>>,
}

/// Says why waits could not be added.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    /// The store could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The change set was not committed.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl Deadlock {
    /// Breaks the cycle: takes the victim's locks and ends its waits, and says so in one resolved alert.
    ///
    /// Without a victim it is only reported. The victim's attempt is told by `lock.revoked`. Refused as `Fenced` when
    /// a lock of the cycle has ended meanwhile: somebody else was faster, and there is no cycle any more.
    pub fn resolve(&self, changes: &mut ChangeSet, now: DateTime<Utc>, announce: Announce<'_>) {
        if self.victim.is_none() {
            self.report(changes, now, announce);
            return;
        }
        let reason = format!(
            "gave way to break a deadlock: {}",
            self.cycle.names().join(", ")
        );
        let revoked = |lease: &Lease| self.leases.iter().any(|taken| taken.path == lease.path);
        for lease in self.held.iter().filter(|lease| !revoked(lease)) {
            changes.fence(&lease.path, lease.token);
        }
        locks::revoke(changes, &self.leases, &reason, announce);
        locks::stop_waiting(changes, &self.waits);
        self.raise(changes, now, true, announce);
    }

    /// Reports the cycle without breaking it, once.
    pub fn report(&self, changes: &mut ChangeSet, now: DateTime<Utc>, announce: Announce<'_>) {
        self.raise(changes, now, false, announce);
    }

    /// Returns the cause that its alert names.
    pub fn cause(&self) -> String {
        format!("deadlock/{}", self.cycle.names().join(" "))
    }

    fn raise(
        &self,
        changes: &mut ChangeSet,
        now: DateTime<Utc>,
        resolved: bool,
        announce: Announce<'_>,
    ) {
        let open = self
            .alert
            .as_ref()
            .filter(|alert| alert.cleared_at.is_none());
        let alert = Alert {
            cause: self.cause(),
            severity: Severity::Critical,
            message: self.message(resolved),
            build: self.cycle.links.first().map(|link| build_of(&link.waiter)),
            raised_at: open.map_or(now, |alert| alert.raised_at),
            escalations: open.map_or(0, |alert| alert.escalations),
            acknowledged: open.and_then(|alert| alert.acknowledged.clone()),
            cleared_at: resolved.then_some(now),
        };
        match &self.alert {
            // Reported already, and nothing has changed.
            Some(_) if open.is_some() && !resolved => return,
            Some(before) => changes.update(before, &alert),
            None => changes.insert(&alert),
        };
        if open.is_some() {
            return;
        }
        let payload = Payload::DeadlockDetected(DeadlockDetected {
            cycle: self.cycle.names(),
            victim: self
                .victim
                .as_ref()
                .filter(|_| resolved)
                .map(ToString::to_string),
            resolved,
            severity: Some(alert.severity),
        });
        let first = self.cycle.links.first().map(|link| &link.waiter);
        if let Some(party) = self.victim.as_ref().or(first) {
            changes.emit(announce(subject_of(party), payload));
        }
    }

    fn message(&self, resolved: bool) -> String {
        let cycle = self.cycle.names().join(" → ");
        match &self.victim {
            Some(victim) if resolved => format!("{victim} gave way to break the cycle {cycle}"),
            _ => format!("these wait for each other and cannot go on: {cycle}"),
        }
    }
}

/// Commits `changes` with new waits, and with what breaks the cycle if they close one; answers that cycle.
///
/// When the waiter itself gives way, its waits are not written.
pub async fn wait(
    store: &Store,
    changes: &ChangeSet,
    new_waits: &[Wait],
    now: DateTime<Utc>,
    announce: Announce<'_>,
) -> Result<Option<Deadlock>, WaitError> {
    let mut found = None;
    let mut changes = changes.clone();
    let mut new_waits = new_waits.to_vec();
    for attempt in 0.. {
        let deadlock = find(store, &new_waits, now).await?;
        if attempt > 0 && deadlock.is_none() && changes.is_empty() {
            break;
        }
        let all = with_waits(
            store,
            &changes,
            &new_waits,
            deadlock.as_ref(),
            now,
            announce,
        )
        .await?;
        match store.commit(all).await {
            Ok(_) => {
                // What was asked for is written; from now on only cycles are looked for.
                changes = ChangeSet::new();
                let Some(deadlock) = deadlock else { continue };
                new_waits.retain(|wait| deadlock.victim.as_ref() != Some(&wait.waiter));
                let unbreakable = deadlock.victim.is_none();
                found = Some(deadlock);
                if unbreakable || new_waits.is_empty() {
                    break;
                }
            }
            // Waits and alerts are read again by the next round; the caller's own rows are not.
            Err(error) if attempt < CONFLICTS && is_ours(&error, &new_waits) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

/// Commits `changes` with new waits and looks for no cycle: the sweep over all waits finds it.
pub async fn wait_unchecked(
    store: &Store,
    changes: &ChangeSet,
    new_waits: &[Wait],
    now: DateTime<Utc>,
    announce: Announce<'_>,
) -> Result<(), WaitError> {
    let all = with_waits(store, changes, new_waits, None, now, announce).await?;
    store.commit(all).await?;
    Ok(())
}

/// Adds the waits that are not written yet, and what breaks a cycle.
async fn with_waits(
    store: &Store,
    changes: &ChangeSet,
    new_waits: &[Wait],
    deadlock: Option<&Deadlock>,
    now: DateTime<Utc>,
    announce: Announce<'_>,
) -> Result<ChangeSet, ReadError> {
    let mut changes = changes.clone();
    let victim = deadlock.and_then(|deadlock| deadlock.victim.as_ref());
    for wait in new_waits {
        let key = wait_key(&wait.waiter, &wait.resource);
        if victim == Some(&wait.waiter) {
            continue;
        }
        match store.get::<Wait>(&key).await? {
            Some(known) if known.holder == wait.holder => {}
            Some(known) => {
                // Its place in the queue rests on since when it waits.
                let after = Wait {
                    since: known.since,
                    ..wait.clone()
                };
                changes.update(&known, &after);
            }
            None => {
                changes.insert(wait);
            }
        }
    }
    if let Some(deadlock) = deadlock {
        deadlock.resolve(&mut changes, now, announce);
    }
    Ok(changes)
}

/// Returns whether somebody else was faster with a row that this module writes.
fn is_ours(error: &CommitError, new_waits: &[Wait]) -> bool {
    match error {
        CommitError::Conflict { table, key } => {
            let is_new = |wait: &Wait| wait_key(&wait.waiter, &wait.resource) == *key;
            *table == "alerts" || (*table == "waits" && new_waits.iter().any(is_new))
        }
        // A lock of the cycle ended meanwhile.
        CommitError::Fenced { .. } => true,
        _ => false,
    }
}

/// Looks for a cycle that `new_waits` close together with what is stored.
pub async fn find(
    store: &Store,
    new_waits: &[Wait],
    now: DateTime<Utc>,
) -> Result<Option<Deadlock>, ReadError> {
    let waits = reachable(store, new_waits).await?;
    let mut graph = WaitGraph::new(waits.iter().chain(new_waits));
    let mut edges = new_waits.to_vec();
    while let Some(cycle) = graph.cycle_with(&edges) {
        match standing(store, &cycle).await? {
            CycleState::Held(held) => return Ok(Some(describe(store, cycle, held, now).await?)),
            CycleState::Outlived(waiter, resource) => {
                graph.remove(&waiter, &resource);
                edges.retain(|wait| wait.waiter != waiter || wait.resource != resource);
            }
        }
    }
    Ok(None)
}

/// Whether a cycle of stored waits is one.
enum CycleState {
    /// Every lock that it waits for is held by the next member.
    Held(Vec<Versioned<Lease>>),
    /// The holder of a lock that it waits for has lost it meanwhile: who waits for it is about to be woken.
    Outlived(Party, Resource),
}

async fn standing(store: &Store, cycle: &Cycle) -> Result<CycleState, ReadError> {
    let mut held = Vec::new();
    let holders = cycle.links.iter().cycle().skip(1);
    for (link, holder) in cycle.links.iter().zip(holders) {
        let Some(resource @ Resource::Lease { path }) = &link.resource else {
            continue;
        };
        let lease = store.get::<Lease>(&path_key(path)).await?;
        let lease = lease.filter(|lease| {
            lease.state == LeaseState::Granted && locks::party(&lease.holder) == holder.waiter
        });
        match lease {
            Some(lease) => held.push(lease),
            None => return Ok(CycleState::Outlived(link.waiter.clone(), resource.clone())),
        }
    }
    Ok(CycleState::Held(held))
}

/// Looks at all waits, as the second net; one cycle per group that waits for each other.
pub async fn find_all(store: &Store, now: DateTime<Utc>) -> Result<Vec<Deadlock>, ReadError> {
    let mut graph = graph(store).await?;
    loop {
        let (mut found, mut stale) = (Vec::new(), Vec::new());
        for cycle in graph.cycles() {
            match standing(store, &cycle).await? {
                CycleState::Outlived(waiter, resource) => stale.push((waiter, resource)),
                CycleState::Held(held) => found.push(describe(store, cycle, held, now).await?),
            }
        }
        if stale.is_empty() {
            return Ok(found);
        }
        for (waiter, resource) in stale {
            graph.remove(&waiter, &resource);
        }
    }
}

/// Reads the whole wait-for graph.
pub async fn graph(store: &Store) -> Result<WaitGraph, ReadError> {
    let waits = store.list::<Wait>(Query::new()).await?;
    Ok(WaitGraph::new(waits.iter().map(|wait| &wait.record)))
}

/// Reads the waits that can be reached from the holders of `from`.
async fn reachable(store: &Store, from: &[Wait]) -> Result<Vec<Wait>, ReadError> {
    let mut waits = Vec::new();
    let mut seen = HashSet::new();
    let mut open: Vec<Party> = from
        .iter()
        .filter_map(|wait| wait.holder.clone())
        .filter(|party| seen.insert(party.clone()))
        .collect();
    while !open.is_empty() {
        let mut found = Vec::new();
        for parties in open.chunks(NAMES) {
            for query in queries(parties) {
                found.extend(store.list::<Wait>(query).await?);
            }
        }
        open = found
            .iter()
            .filter_map(|wait| wait.holder.clone())
            .filter(|party| seen.insert(party.clone()))
            .collect();
        waits.extend(found.into_iter().map(Versioned::into_inner));
    }
    Ok(waits)
}

/// Returns what reads the waits of these parties; a build waits with all its tasks. Waits are indexed by build.
fn queries(parties: &[Party]) -> Vec<Query> {
    let (builds, tasks): (Vec<&Party>, Vec<&Party>) = parties
        .iter()
        .partition(|party| matches!(party, Party::Build { .. }));
    let ids = |parties: &[&Party]| -> HashSet<String> {
        let ids = parties.iter().map(|party| build_of(party).to_string());
        ids.collect()
    };
    let mut queries = Vec::new();
    if !builds.is_empty() {
        queries.push(Query::new().one_of("build", ids(&builds)));
    }
    if !tasks.is_empty() {
        let names = tasks.iter().map(ToString::to_string);
        let of_builds = Query::new().one_of("build", ids(&tasks));
        queries.push(of_builds.one_of("waiter", names));
    }
    queries
}

async fn describe(
    store: &Store,
    cycle: Cycle,
    held: Vec<Versioned<Lease>>,
    now: DateTime<Utc>,
) -> Result<Deadlock, ReadError> {
    let mut facts = HashMap::new();
    for party in cycle.candidates() {
        facts.insert(party.clone(), facts_of(store, party, now).await?);
    }
    let victim = victim(&cycle, |party| {
        facts.get(party).copied().unwrap_or(UNKNOWN_PARTY)
    });
    let mut deadlock = Deadlock {
        cycle,
        victim,
        held,
        leases: Vec::new(),
        waits: Vec::new(),
        alert: None,
    };
    deadlock.alert = store.get(&deadlock.cause()).await?;
    if let Some(victim @ Party::Task { build, task }) = &deadlock.victim {
        let query = Query::new()
            .equal("build", *build)
            .equal("task", task)
            .equal("state", "granted");
        deadlock.leases = store.list(query).await?;
        deadlock.waits = locks::waits_of(store, victim).await?;
    }
    Ok(deadlock)
}

/// What is assumed of a party that the store does not know: it gives way before anybody else.
const UNKNOWN_PARTY: Facts = Facts {
    yielded: 0,
    priority: u32::MAX,
    work_done: 0,
    age: 0,
};

async fn facts_of(store: &Store, party: &Party, now: DateTime<Utc>) -> Result<Facts, ReadError> {
    let Party::Task { build, task } = party else {
        return Ok(UNKNOWN_PARTY);
    };
    let Some(record) = store.get::<Task>(&task_key(*build, task)).await? else {
        return Ok(UNKNOWN_PARTY);
    };
    let build_priority = store
        .get::<Build>(&build.to_string())
        .await?
        .map_or(Priority::DEFAULT, |build| build.priority);
    let attempt = match record.attempt {
        Some(attempt) => store.get::<Attempt>(&attempt.to_string()).await?,
        None => None,
    };
    let interrupted = Query::new()
        .equal("build", *build)
        .equal("task", task)
        .equal("state", AttemptState::Interrupted);
    let yielded = store.count::<Attempt>(interrupted).await?;
    let age = |since: DateTime<Utc>| u64::try_from((now - since).num_milliseconds()).unwrap_or(0);
    let task_priority = record.block.priority.unwrap_or(Priority::DEFAULT.get());
    Ok(Facts {
        yielded: u32::try_from(yielded).unwrap_or(u32::MAX),
        // The build decides first, its tasks among themselves.
        priority: u32::from(build_priority.get()) * 100 + u32::from(task_priority),
        work_done: attempt.as_ref().map_or(0, |attempt| attempt.tokens),
        age: attempt.map_or(0, |attempt| age(attempt.started_at)),
    })
}

fn build_of(party: &Party) -> ropewalk_schemas::BuildId {
    match party {
        Party::Task { build, .. } | Party::Build { build } => *build,
    }
}

fn subject_of(party: &Party) -> Subject {
    match party {
        Party::Task { build, task } => Subject::task(*build, task),
        Party::Build { build } => Subject::build(*build),
    }
}
