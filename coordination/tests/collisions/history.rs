//! The history of locks, taken by many at once, is one that a single lock could have had.
//!
//! Every operation is noted with the moments between which it took effect. The checker looks for an order: of each file
//! one holder after the other, tokens that only grow, refusals only while somebody holds it. It is tried on locks that
//! do not lock.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result, ensure};
use ropewalk_coordination::locks;
use ropewalk_schemas::RepoPath;
use ropewalk_schemas::lease::{Lease, LeaseState};
use ropewalk_store::{ChangeSet, CommitError};

use crate::world::{World, at, request};

const FILES: [&str; 5] = ["a.ts", "b.ts", "c.ts", "d.ts", "e.ts"];
const WORKERS: u128 = 64;

/// One operation on one file, and the moments between which it took effect.
#[derive(Debug, Clone, PartialEq)]
struct Operation {
    file: usize,
    did: LockOutcome,
    from: u64,
    to: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum LockOutcome {
    /// Got the lock.
    Took { token: i64 },
    /// Was refused, because somebody held it.
    Refused,
    /// Gave it back.
    GaveBack { token: i64 },
    /// Tried to give back what it no longer held.
    TooLate { token: i64 },
}

/// What an operation takes effect between, in the history of one file.
type Span = (u64, u64);

/// Says what is wrong with a history; nothing when some order of its operations explains it.
fn check(history: &[Operation]) -> Result<(), String> {
    (0..FILES.len()).try_for_each(|file| {
        let of_file: Vec<&Operation> = history.iter().filter(|each| each.file == file).collect();
        check_file(&of_file).map_err(|fault| format!("{}: {fault}", FILES[file]))
    })
}

fn check_file(history: &[&Operation]) -> Result<(), String> {
    let (mut grants, mut ends) = (BTreeMap::new(), BTreeMap::new());
    for each in history {
        let span = (each.from, each.to);
        let known = match each.did {
            LockOutcome::Took { token } => grants.insert(token, span),
            LockOutcome::GaveBack { token } => ends.insert(token, span),
            LockOutcome::Refused | LockOutcome::TooLate { .. } => None,
        };
        if known.is_some() {
            return Err(format!("the same token twice: {each:?}"));
        }
    }
    let holds = order(&grants, &ends)?;
    for each in history {
        let explained = match each.did {
            LockOutcome::Refused => holds
                .values()
                .any(|hold| meets(*hold, (each.from, each.to))),
            // Whoever is too late has given it back before.
            LockOutcome::TooLate { token } => ends.get(&token).is_some_and(|end| end.0 < each.to),
            LockOutcome::Took { .. } | LockOutcome::GaveBack { .. } => true,
        };
        if !explained {
            return Err(format!("nothing explains {each:?}"));
        }
    }
    Ok(())
}

/// Lays grants and ends on a line in the order of their tokens, each as early as it can be; answers the longest time
/// that each token can have held.
fn order(
    grants: &BTreeMap<i64, Span>,
    ends: &BTreeMap<i64, Span>,
) -> Result<BTreeMap<i64, Span>, String> {
    let mut now = 0;
    let mut holds = BTreeMap::new();
    let last = grants.keys().next_back();
    for (token, grant) in grants {
        let taken = now.max(grant.0);
        if taken > grant.1 {
            return Err(format!("token {token} was granted while another held"));
        }
        let Some(end) = ends.get(token) else {
            if last == Some(token) {
                holds.insert(*token, (taken, u64::MAX));
                continue;
            }
            return Err(format!("token {token} never ended, and others followed"));
        };
        now = taken.max(end.0);
        if now > end.1 {
            return Err(format!("token {token} ended before it began"));
        }
        holds.insert(*token, (taken, end.1));
    }
    Ok(holds)
}

const fn meets(one: Span, other: Span) -> bool {
    one.0 <= other.1 && other.0 <= one.1
}

/// Notes what the workers do.
#[derive(Default)]
struct Notes {
    clock: AtomicU64,
    operations: Mutex<Vec<Operation>>,
}

impl Notes {
    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn add(&self, file: usize, did: LockOutcome, from: u64) {
        let to = self.tick();
        if let Ok(mut operations) = self.operations.lock() {
            operations.push(Operation {
                file,
                did,
                from,
                to,
            });
        }
    }

    fn take(self) -> Vec<Operation> {
        self.operations.into_inner().unwrap_or_default()
    }
}

/// How the workers take locks.
#[derive(Debug, Clone, Copy, PartialEq)]
enum TakeMode {
    Checked,
    /// Writes the lease whatever is there: the planted bug.
    Unchecked,
}

async fn take(
    world: &World,
    taking: TakeMode,
    attempt: u128,
    file: &str,
    notes: &Notes,
) -> Result<Option<i64>> {
    let request = request(attempt, &[file])?;
    let mut changes = ChangeSet::new();
    locks::acquire(&mut changes, &request, at(0));
    match world.store.commit(changes).await {
        Ok(committed) => Ok(committed.token),
        Err(CommitError::Held { .. }) if taking == TakeMode::Unchecked => {
            let token = 1_000_000 + i64::try_from(notes.tick())?;
            let mut changes = ChangeSet::new();
            changes.put(&Lease {
                path: RepoPath::parse(file)?,
                holder: request.holder,
                state: LeaseState::Granted,
                token,
                renewals: 0,
                ttl_ms: 300,
                reason: "planted".to_owned(),
                granted_at: at(0),
            });
            world.store.commit(changes).await?;
            Ok(Some(token))
        }
        Err(CommitError::Held { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn give_back(world: &World, path: &RepoPath, token: i64) -> Result<LockOutcome> {
    let mut changes = ChangeSet::new();
    changes.release(path, token);
    match world.store.commit(changes).await {
        Ok(_) => Ok(LockOutcome::GaveBack { token }),
        Err(CommitError::Fenced { .. }) => Ok(LockOutcome::TooLate { token }),
        Err(error) => Err(error.into()),
    }
}

/// Takes and gives back in turn; every fourth time it gives back twice.
async fn worker(
    world: &World,
    taking: TakeMode,
    number: u128,
    operations: usize,
    notes: &Notes,
) -> Result<()> {
    let mut done = 0;
    let mut turn = usize::try_from(number)?;
    while done < operations {
        turn += 1;
        let file = (turn * 7 + turn / 5) % FILES.len();
        let path = RepoPath::parse(FILES[file])?;
        let from = notes.tick();
        let attempt = u128::from(from) + 1;
        let token = take(world, taking, attempt, FILES[file], notes).await?;
        done += 1;
        let Some(token) = token else {
            notes.add(file, LockOutcome::Refused, from);
            continue;
        };
        notes.add(file, LockOutcome::Took { token }, from);
        for _ in 0..=usize::from(turn.is_multiple_of(4)) {
            let from = notes.tick();
            let did = give_back(world, &path, token).await?;
            notes.add(file, did, from);
            done += 1;
        }
    }
    Ok(())
}

async fn history(taking: TakeMode, operations: usize) -> Result<Vec<Operation>> {
    let world = World::new().await?;
    let notes = Notes::default();
    let each = operations / usize::try_from(WORKERS)?;
    let workers = (1..=WORKERS).map(|number| worker(&world, taking, number, each, &notes));
    futures::future::try_join_all(workers).await?;
    Ok(notes.take())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_operations_on_locks_have_an_order_that_explains_them() -> Result<()> {
    let history = history(TakeMode::Checked, 10_048).await?;
    ensure!(history.len() >= 10_000, "{}", history.len());
    let count =
        |wanted: fn(&LockOutcome) -> bool| history.iter().filter(|each| wanted(&each.did)).count();
    let taken = count(|did| matches!(did, LockOutcome::Took { .. }));
    let refused = count(|did| matches!(did, LockOutcome::Refused));
    let late = count(|did| matches!(did, LockOutcome::TooLate { .. }));
    ensure!(
        taken > 500 && refused > 500 && late > 50,
        "{taken} {refused} {late}"
    );
    check(&history).map_err(anyhow::Error::msg)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_checker_finds_locks_that_do_not_lock() -> Result<()> {
    let history = history(TakeMode::Unchecked, 1_024).await?;
    let fault = check(&history)
        .err()
        .context("two held one file, and nobody noticed")?;
    ensure!(fault.contains(".ts: "), "{fault}");
    Ok(())
}

#[test]
fn the_checker_knows_good_histories_from_bad_ones() {
    let operation = |did, from, to| Operation {
        file: 0,
        did,
        from,
        to,
    };
    let (one, two) = (1, 2);
    let took = |token, from, to| operation(LockOutcome::Took { token }, from, to);
    let gave = |token, from, to| operation(LockOutcome::GaveBack { token }, from, to);
    let refused = |from, to| operation(LockOutcome::Refused, from, to);
    let good = [
        vec![took(one, 0, 1), gave(one, 2, 3), took(two, 4, 5)],
        // The second may have come in when the first was given back, although it was asked for earlier.
        vec![
            took(one, 0, 1),
            took(two, 2, 9),
            gave(one, 3, 4),
            gave(two, 10, 11),
        ],
        vec![took(one, 0, 5), refused(1, 2), gave(one, 6, 7)],
    ];
    for history in good {
        assert_eq!(check(&history), Ok(()), "{history:?}");
    }
    let bad = [
        vec![took(one, 0, 1), took(two, 2, 3), gave(one, 4, 5)],
        vec![
            took(two, 0, 1),
            gave(two, 2, 3),
            took(one, 4, 5),
            gave(one, 6, 7),
        ],
        vec![took(one, 0, 1), gave(one, 2, 3), refused(4, 5)],
        vec![took(one, 0, 1), gave(one, 2, 3), gave(one, 4, 5)],
        vec![
            took(one, 0, 1),
            operation(LockOutcome::TooLate { token: one }, 2, 3),
        ],
    ];
    for history in bad {
        assert!(check(&history).is_err(), "{history:?}");
    }
}
