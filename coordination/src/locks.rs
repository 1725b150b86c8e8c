//! Adds to a change set what happens to file locks.
//!
//! A set of files is taken all or none; a lock is a lease with a fencing token, renewed by its holder, and a landing
//! checks the token in its own transaction. Who waits is written as a [`Wait`] in the same change set as the refusal.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use ropewalk_schemas::lease::{Holder, Lease, LeaseState};
use ropewalk_schemas::payload::{LockReleased, LockRevoked};
use ropewalk_schemas::wait::{Party, Resource, Wait};
use ropewalk_schemas::{AttemptId, Event, Payload, RepoPath, Subject};
use ropewalk_store::{ChangeSet, Query, ReadError, Store, Versioned, path_key};

/// Makes an event about a subject, with everything else filled in.
pub type Announce<'a> = &'a (dyn Fn(Subject, Payload) -> Event + Sync);

/// Asks for the locks on a set of files.
#[derive(Debug, Clone, PartialEq)]
pub struct LockRequest {
    /// Who asks.
    pub holder: Holder,
    /// The files, in any order and spelling.
    pub files: Vec<RepoPath>,
    /// How long a lease holds without renewal.
    pub ttl: Duration,
    /// What it is for.
    pub reason: String,
    /// Since when the holder waits for them; now if it does not.
    pub since: DateTime<Utc>,
}

/// Says why a set of files cannot be taken now.
#[derive(Debug, Clone, PartialEq)]
pub struct LockConflict {
    /// The first file that is not free, in canonical order.
    pub file: RepoPath,
    /// Who holds it, or waits for it for longer.
    pub by: Party,
}

impl LockConflict {
    /// Returns the wait of `waiter` for what blocks it.
    pub fn wait(&self, waiter: Party, since: DateTime<Utc>) -> Wait {
        Wait {
            waiter,
            resource: Resource::Lease {
                path: self.file.clone(),
            },
            holder: Some(self.by.clone()),
            since,
        }
    }
}

/// Returns the task that a holder works on, as the wait-for graph names it.
pub fn party(holder: &Holder) -> Party {
    Party::Task {
        build: holder.build,
        task: holder.task.clone(),
    }
}

/// Lists everything that stands in the way of a claim: files that others hold, or have waited for longer.
///
/// Empty means that the set is free. Pure: looks at `leases` and `waits` only.
pub fn blocked_claim(
    request: &LockRequest,
    leases: &[Versioned<Lease>],
    waits: &[Versioned<Wait>],
) -> Vec<LockConflict> {
    let claimant = party(&request.holder);
    canonical(&request.files)
        .into_iter()
        .filter_map(|file| {
            let by = holder_of(&file, &request.holder, leases)
                .or_else(|| elder(&file, &claimant, request.since, waits))?;
            Some(LockConflict { file, by })
        })
        .collect()
}

/// Lists what stands in the way of an extension in mid-attempt: files that others hold.
///
/// It does not queue behind those who wait for longer: they may wait for what the asker holds.
pub fn blocked_extension(request: &LockRequest, leases: &[Versioned<Lease>]) -> Vec<LockConflict> {
    canonical(&request.files)
        .into_iter()
        .filter_map(|file| {
            let by = holder_of(&file, &request.holder, leases)?;
            Some(LockConflict { file, by })
        })
        .collect()
}

/// Returns the waits of a claim that is blocked: for every file of the set, so that nobody who came later takes the
/// others meanwhile. A file that is free has no holder.
pub fn claim_waits(request: &LockRequest, blocked: &[LockConflict]) -> Vec<Wait> {
    let waiter = party(&request.holder);
    canonical(&request.files)
        .into_iter()
        .map(|file| {
            let key = path_key(&file);
            let by = blocked.iter().find(|each| path_key(&each.file) == key);
            Wait {
                waiter: waiter.clone(),
                resource: Resource::Lease { path: file },
                holder: by.map(|each| each.by.clone()),
                since: request.since,
            }
        })
        .collect()
}

/// Takes the files, all or none: the commit fails with `Held` when one of them was taken meanwhile.
///
/// All get the token that the commit answers.
pub fn acquire(changes: &mut ChangeSet, request: &LockRequest, now: DateTime<Utc>) {
    for file in canonical(&request.files) {
        changes.grant(Lease {
            path: file,
            holder: request.holder.clone(),
            state: LeaseState::Granted,
            token: 0,
            renewals: 0,
            ttl_ms: u64::try_from(request.ttl.as_millis()).unwrap_or(u64::MAX),
            reason: request.reason.clone(),
            granted_at: now,
        });
    }
}

/// Counts a renewal of every lease; due at a third of the time to live.
pub fn renew(changes: &mut ChangeSet, leases: &[Versioned<Lease>]) {
    for lease in granted(leases) {
        changes.renew(&lease.path, lease.token);
    }
}

/// Demands that every lease still holds, in the transaction that lands the work.
pub fn fence(changes: &mut ChangeSet, leases: &[Versioned<Lease>]) {
    for lease in leases {
        changes.fence(&lease.path, lease.token);
    }
}

/// Gives leases back and announces it, so that those who wait wake up.
pub fn release(changes: &mut ChangeSet, leases: &[Versioned<Lease>], announce: Announce<'_>) {
    for lease in granted(leases) {
        changes.release(&lease.path, lease.token);
    }
    for (holder, files) in by_holder(granted(leases)) {
        let payload = Payload::LockReleased(LockReleased {
            build_id: holder.build,
            task_id: holder.task.clone(),
            attempt_id: holder.attempt,
            files,
        });
        let subject = Subject::task(holder.build, &holder.task);
        changes.emit(announce(subject, payload));
    }
}

/// Ends leases that a [`Judge`](crate::judge::Judge) found dead; the commit conflicts when one was renewed after all.
pub fn expire(changes: &mut ChangeSet, dead: &[&Versioned<Lease>], announce: Announce<'_>) {
    for lease in dead {
        changes.require(*lease).expire(&lease.path, lease.token);
    }
    let reason = "the holder did not renew it in time";
    announce_revoked(changes, dead.iter().copied(), reason, announce);
}

/// Takes leases away from their holders.
pub fn revoke(
    changes: &mut ChangeSet,
    leases: &[Versioned<Lease>],
    reason: &str,
    announce: Announce<'_>,
) {
    for lease in granted(leases) {
        changes.revoke(&lease.path, lease.token);
    }
    announce_revoked(changes, granted(leases), reason, announce);
}

/// Lets the waits of one waiter be what they are now; each keeps its place, which rests on since when it waits.
pub fn renew_waits(changes: &mut ChangeSet, known: &[Versioned<Wait>], waits: &[Wait]) {
    for old in known {
        if !waits.iter().any(|wait| wait.resource == old.resource) {
            changes.delete(old);
        }
    }
    for wait in waits {
        match known.iter().find(|old| old.resource == wait.resource) {
            None => {
                changes.insert(wait);
            }
            Some(old) if old.holder != wait.holder => {
                let after = Wait {
                    since: old.since,
                    ..wait.clone()
                };
                changes.update(old, &after);
            }
            Some(_) => {}
        }
    }
}

/// Ends waits: granted, or given up.
pub fn stop_waiting(changes: &mut ChangeSet, waits: &[Versioned<Wait>]) {
    for wait in waits {
        changes.delete(wait);
    }
}

/// Reads the leases that an attempt holds.
pub async fn held_by(
    store: &Store,
    attempt: AttemptId,
) -> Result<Vec<Versioned<Lease>>, ReadError> {
    let query = Query::new()
        .equal("attempt", attempt)
        .equal("state", LeaseState::Granted);
    store.list(query).await
}

/// Reads the leases that hold on any of `files`.
pub async fn held_on(
    store: &Store,
    files: &[RepoPath],
) -> Result<Vec<Versioned<Lease>>, ReadError> {
    let mut held = Vec::new();
    for file in canonical(files) {
        let lease = store.get::<Lease>(&path_key(&file)).await?;
        held.extend(lease.filter(|lease| lease.state == LeaseState::Granted));
    }
    Ok(held)
}

/// Reads all leases that hold.
pub async fn all_held(store: &Store) -> Result<Vec<Versioned<Lease>>, ReadError> {
    let query = Query::new().equal("state", LeaseState::Granted);
    store.list(query).await
}

/// Reads what `waiter` waits for.
pub async fn waits_of(store: &Store, waiter: &Party) -> Result<Vec<Versioned<Wait>>, ReadError> {
    let (Party::Task { build, .. } | Party::Build { build }) = waiter;
    let query = Query::new()
        .equal("build", *build)
        .equal("waiter", waiter.to_string());
    store.list(query).await
}

/// Reads who waits for file locks.
pub async fn lease_waits(store: &Store) -> Result<Vec<Versioned<Wait>>, ReadError> {
    store.list(Query::new().equal("kind", "lease")).await
}

/// Sorts files by their key and drops the spellings of one file but the first.
fn canonical(files: &[RepoPath]) -> Vec<RepoPath> {
    let mut by_key = BTreeMap::new();
    for file in files {
        by_key.entry(path_key(file)).or_insert_with(|| file.clone());
    }
    by_key.into_values().collect()
}

fn holder_of(file: &RepoPath, asker: &Holder, leases: &[Versioned<Lease>]) -> Option<Party> {
    let key = path_key(file);
    leases
        .iter()
        .filter(|lease| lease.state == LeaseState::Granted && path_key(&lease.path) == key)
        .find(|lease| lease.holder.attempt != asker.attempt)
        .map(|lease| party(&lease.holder))
}

/// Finds who waits for `file` for longer than `since`; the name decides between two who came at once.
fn elder(
    file: &RepoPath,
    claimant: &Party,
    since: DateTime<Utc>,
    waits: &[Versioned<Wait>],
) -> Option<Party> {
    let key = path_key(file);
    waits
        .iter()
        .filter(|wait| {
            matches!(&wait.resource, Resource::Lease { path } if path_key(path) == key)
                && (wait.since, &wait.waiter) < (since, claimant)
                && wait.waiter != *claimant
        })
        .min_by_key(|wait| (wait.since, wait.waiter.clone()))
        .map(|wait| wait.waiter.clone())
}

fn granted(leases: &[Versioned<Lease>]) -> impl Iterator<Item = &Versioned<Lease>> {
    leases
        .iter()
        .filter(|lease| lease.state == LeaseState::Granted)
}

/// Groups leases by attempt, in the order of the attempts.
fn by_holder<'a>(
    leases: impl Iterator<Item = &'a Versioned<Lease>>,
) -> Vec<(&'a Holder, Vec<RepoPath>)> {
    let mut groups: BTreeMap<AttemptId, (&Holder, Vec<RepoPath>)> = BTreeMap::new();
    for lease in leases {
        groups
            .entry(lease.holder.attempt)
            .or_insert_with(|| (&lease.holder, Vec::new()))
            .1
            .push(lease.path.clone());
    }
    groups.into_values().collect()
}

fn announce_revoked<'a>(
    changes: &mut ChangeSet,
    leases: impl Iterator<Item = &'a Versioned<Lease>>,
    reason: &str,
    announce: Announce<'_>,
) {
    for (holder, files) in by_holder(leases) {
        let payload = Payload::LockRevoked(LockRevoked {
            build_id: holder.build,
            task_id: holder.task.clone(),
            attempt_id: holder.attempt,
            files,
            reason: reason.to_owned(),
        });
        let subject = Subject::task(holder.build, &holder.task);
        changes.emit(announce(subject, payload));
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use ropewalk_schemas::{ComponentName, TaskId};
    use uuid::Uuid;

    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    fn holder(number: u128) -> Holder {
        Holder {
            build: Uuid::from_u128(1).into(),
            task: TaskId::parse(&format!("T-{number:03}")).unwrap(),
            attempt: Uuid::from_u128(number).into(),
            loop_name: ComponentName::parse("loop-1").unwrap(),
        }
    }

    fn file(text: &str) -> RepoPath {
        RepoPath::parse(text).unwrap()
    }

    fn request(number: u128, files: &[&str], since: i64) -> LockRequest {
        LockRequest {
            holder: holder(number),
            files: files.iter().map(|path| file(path)).collect(),
            ttl: Duration::from_mins(1),
            reason: "test".to_owned(),
            since: at(since),
        }
    }

    fn lease(number: u128, path: &str, state: LeaseState) -> Versioned<Lease> {
        Versioned {
            version: 1,
            record: Lease {
                path: file(path),
                holder: holder(number),
                state,
                token: 7,
                renewals: 0,
                ttl_ms: 60_000,
                reason: String::new(),
                granted_at: at(0),
            },
        }
    }

    fn wait(number: u128, path: &str, since: i64) -> Versioned<Wait> {
        let blocked = LockConflict {
            file: file(path),
            by: party(&holder(99)),
        };
        Versioned {
            version: 1,
            record: blocked.wait(party(&holder(number)), at(since)),
        }
    }

    #[test]
    fn a_claim_waits_for_holders_and_elders_and_an_extension_for_holders_only() {
        let leases = [
            lease(1, "src/a.rs", LeaseState::Granted),
            lease(1, "src/b.rs", LeaseState::Released),
            lease(5, "src/own.rs", LeaseState::Granted),
        ];
        let waits = [wait(2, "src/c.rs", 10), wait(5, "src/c.rs", 20)];
        let asked = |since| {
            request(
                5,
                &["src/own.rs", "src/C.rs", "src/b.rs", "src/a.rs"],
                since,
            )
        };
        let shown = |blocked: Vec<LockConflict>| -> Vec<(String, Party)> {
            blocked
                .into_iter()
                .map(|each| (each.file.to_string(), each.by))
                .collect()
        };
        let held = ("src/a.rs".to_owned(), party(&holder(1)));
        let queued = ("src/C.rs".to_owned(), party(&holder(2)));
        assert_eq!(
            shown(blocked_claim(&asked(20), &leases, &waits)),
            [held.clone(), queued]
        );
        let only_held = [held];
        assert_eq!(shown(blocked_claim(&asked(9), &leases, &waits)), only_held);
        assert_eq!(shown(blocked_extension(&asked(20), &leases)), only_held);
    }

    #[test]
    fn a_blocked_claim_waits_for_its_whole_set_and_so_keeps_later_ones_from_it() {
        let leases = [lease(1, "src/a.rs", LeaseState::Granted)];
        let first = request(2, &["src/b.rs", "src/a.rs"], 10);
        let waits = claim_waits(&first, &blocked_claim(&first, &leases, &[]));
        let shown: Vec<(String, Option<Party>)> = waits
            .iter()
            .map(|wait| (wait.resource.to_string(), wait.holder.clone()))
            .collect();
        assert_eq!(
            shown,
            [
                ("lease/src/a.rs".to_owned(), Some(party(&holder(1)))),
                ("lease/src/b.rs".to_owned(), None),
            ]
        );
        let waits: Vec<Versioned<Wait>> = waits
            .into_iter()
            .map(|record| Versioned { version: 1, record })
            .collect();
        let later = request(3, &["src/b.rs"], 20);
        assert_eq!(blocked_claim(&later, &leases, &waits).len(), 1);
        let earlier = request(3, &["src/b.rs"], 5);
        assert!(blocked_claim(&earlier, &leases, &waits).is_empty());
    }

    #[test]
    fn of_two_who_came_at_once_exactly_one_goes_first() {
        let waits = [wait(1, "a", 10), wait(2, "a", 10)];
        assert!(blocked_claim(&request(1, &["a"], 10), &[], &waits).is_empty());
        assert_eq!(blocked_claim(&request(2, &["a"], 10), &[], &waits).len(), 1);
    }

    #[test]
    fn files_are_taken_in_one_order_and_once_per_file() {
        let files = [file("src/b.rs"), file("SRC/B.rs"), file("src/a.rs")];
        let reversed: Vec<RepoPath> = files.iter().rev().cloned().collect();
        let keys =
            |files: &[RepoPath]| -> Vec<String> { canonical(files).iter().map(path_key).collect() };
        assert_eq!(keys(&files), ["src/a.rs", "src/b.rs"]);
        assert_eq!(keys(&reversed), keys(&files));
    }
}
