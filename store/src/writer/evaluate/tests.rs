//! Tables of single verdicts, and properties of whole batches.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use ropewalk_schemas::lease::{Holder, Lease, LeaseState};
use ropewalk_schemas::timer::Timer;
use ropewalk_schemas::{AttemptId, BuildId, CorrelationId, RepoPath, TaskId, TimerId};
use uuid::Uuid;

use super::*;
use crate::change_set::{ChangeSet, Outcome};
use crate::record::{Record, Versioned};

fn now() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH
}

fn timer(number: u128, name: &str) -> Timer {
    Timer {
        id: TimerId(Uuid::from_u128(number)),
        name: name.to_owned(),
        target: String::new(),
        due: now(),
        cron: None,
        correlation_id: CorrelationId(Uuid::nil()),
    }
}

fn seen(number: u128, version: i64) -> Versioned<Timer> {
    Versioned {
        version,
        record: timer(number, "seen"),
    }
}

fn lease(attempt: u128, state: LeaseState, token: i64) -> Lease {
    Lease {
        path: RepoPath::parse("src/lib.rs").unwrap(),
        holder: Holder {
            build: BuildId(Uuid::nil()),
            task: TaskId::parse("T-1").unwrap(),
            attempt: AttemptId(Uuid::from_u128(attempt)),
            loop_name: ComponentName::parse("loop-1").unwrap(),
        },
        state,
        token,
        renewals: 0,
        ttl_ms: 1_000,
        reason: "declared".to_owned(),
        granted_at: now(),
    }
}

fn key() -> DeliveryKey {
    DeliveryKey {
        sequence: 7,
        subscriber: ComponentName::parse("pm").unwrap(),
    }
}

/// A database with timer 1 at version 3, a delivery, a lease granted to attempt 1 with token 5, and counters.
fn loaded(delivery: DeliveryState, leased: LeaseState) -> LoadedState {
    let held = lease(1, leased, 5);
    let row = |version, body| LoadedRow { version, body };
    LoadedState {
        rows: HashMap::from([
            (("timers", timer(1, "").key()), row(3, None)),
            (
                ("leases", held.key()),
                row(2, Some(serde_json::to_string(&held).unwrap())),
            ),
        ]),
        deliveries: HashMap::from([(
            key(),
            LoadedDelivery {
                state: delivery,
                attempts: 2,
            },
        )]),
        last_sequence: 40,
        token: 5,
        floor: 1,
        ..LoadedState::default()
    }
}

/// Evaluates one change set and names the verdict.
fn verdict(
    loaded: &LoadedState,
    fill: impl FnOnce(&mut ChangeSet) -> &mut ChangeSet,
) -> &'static str {
    let mut changes = ChangeSet::new();
    fill(&mut changes);
    let submission = Submission::prepare(changes).unwrap();
    let evaluated = evaluate(loaded, &Routing::unknown(), &[submission], now());
    match &evaluated.answers[0] {
        Ok(_) => "ok",
        Err(_) if !evaluated.writes.is_empty() => "a loser left a trace",
        Err(CommitError::Conflict { .. }) => "conflict",
        Err(CommitError::Twice { .. }) => "twice",
        Err(CommitError::Held { .. }) => "held",
        Err(CommitError::Fenced { .. }) => "fenced",
        Err(CommitError::Closed { .. }) => "closed",
        Err(CommitError::NotDead { .. }) => "not dead",
        Err(_) => "other",
    }
}

#[test]
fn a_row_is_written_only_over_the_version_that_was_seen() {
    type Fill = fn(&mut ChangeSet) -> &mut ChangeSet;
    let cases: [(Fill, &str); 11] = [
        (|c| c.insert(&timer(2, "new")), "ok"),
        (|c| c.insert(&timer(1, "there")), "conflict"),
        (|c| c.update(&seen(1, 3), &timer(1, "x")), "ok"),
        (|c| c.update(&seen(1, 2), &timer(1, "x")), "conflict"),
        (|c| c.update(&seen(2, 1), &timer(2, "x")), "conflict"),
        (|c| c.delete(&seen(1, 3)), "ok"),
        (|c| c.delete(&seen(1, 4)), "conflict"),
        (|c| c.put(&timer(1, "x")).put(&timer(2, "x")), "ok"),
        (
            |c| c.require(&seen(1, 3)).update(&seen(1, 3), &timer(1, "x")),
            "ok",
        ),
        (
            |c| c.update(&seen(1, 3), &timer(1, "x")).require(&seen(1, 3)),
            "ok",
        ),
        (
            |c| {
                c.update(&seen(1, 3), &timer(1, "x"))
                    .update(&seen(1, 3), &timer(1, "y"))
            },
            "twice",
        ),
    ];
    let loaded = loaded(DeliveryState::Open, LeaseState::Granted);
    for (number, (fill, expected)) in cases.into_iter().enumerate() {
        assert_eq!(verdict(&loaded, fill), expected, "case {number}");
    }
}

#[test]
fn an_outcome_fits_only_the_states_it_is_for() {
    let retry = Outcome::Retry {
        due: now() + TimeDelta::seconds(1),
        error: "busy".to_owned(),
    };
    let open = [DeliveryState::Open].as_slice();
    let kept = [
        DeliveryState::Parked,
        DeliveryState::Dead,
        DeliveryState::Discarded,
    ];
    let discardable = [
        DeliveryState::Open,
        DeliveryState::Parked,
        DeliveryState::Dead,
        DeliveryState::Discarded,
    ];
    let cases = [
        (Outcome::Done, open, "closed"),
        (retry, open, "closed"),
        (
            Outcome::Dead {
                error: String::new(),
            },
            open,
            "closed",
        ),
        (
            Outcome::Parked {
                reason: String::new(),
            },
            open,
            "closed",
        ),
        (
            Outcome::Discarded {
                reason: String::new(),
            },
            discardable.as_slice(),
            "closed",
        ),
        (Outcome::Replay, kept.as_slice(), "not dead"),
    ];
    for (outcome, fitting, refusal) in cases {
        for state in DeliveryState::ALL {
            let loaded = loaded(*state, LeaseState::Granted);
            let expected = if fitting.contains(state) {
                "ok"
            } else {
                refusal
            };
            let seen = verdict(&loaded, |c| c.close(&key(), outcome.clone()));
            assert_eq!(seen, expected, "{outcome:?} of {state}");
        }
    }
    let twice = verdict(&loaded(DeliveryState::Open, LeaseState::Granted), |c| {
        c.close(&key(), Outcome::Done).close(&key(), Outcome::Done)
    });
    assert_eq!(twice, "closed");
}

#[test]
fn only_the_live_token_moves_a_lease() {
    let file = RepoPath::parse("SRC/lib.rs").unwrap();
    for state in LeaseState::ALL {
        let loaded = loaded(DeliveryState::Open, *state);
        let live = *state == LeaseState::Granted;
        for token in [4, 5, 6] {
            let expected = if live && token == 5 { "ok" } else { "fenced" };
            for act in [
                ChangeSet::renew,
                ChangeSet::release,
                ChangeSet::expire,
                ChangeSet::revoke,
                ChangeSet::fence,
            ] {
                assert_eq!(verdict(&loaded, |c| act(c, &file, token)), expected);
            }
        }
        let stranger = if live { "held" } else { "ok" };
        let asked = lease(2, LeaseState::Granted, 0);
        assert_eq!(verdict(&loaded, |c| c.grant(asked)), stranger);
        let asked = lease(1, LeaseState::Granted, 0);
        assert_eq!(verdict(&loaded, |c| c.grant(asked)), "ok");
    }
    let loaded = loaded(DeliveryState::Open, LeaseState::Granted);
    let handed_over = verdict(&loaded, |c| {
        c.release(&file, 5).grant(lease(2, LeaseState::Granted, 0))
    });
    assert_eq!(handed_over, "ok");
}

/// One step of a random batch on three timers.
#[derive(Debug, Clone)]
enum Step {
    Insert(u128),
    Update(u128, i64),
    Delete(u128, i64),
    Put(u128),
}

fn step() -> impl Strategy<Value = Step> {
    let row = 1..4_u128;
    prop_oneof![
        row.clone().prop_map(Step::Insert),
        (row.clone(), 1..6_i64).prop_map(|(row, version)| Step::Update(row, version)),
        (row.clone(), 1..6_i64).prop_map(|(row, version)| Step::Delete(row, version)),
        row.prop_map(Step::Put),
    ]
}

fn submission(steps: &[Step]) -> Submission {
    let mut changes = ChangeSet::new();
    for step in steps {
        match step {
            Step::Insert(row) => changes.insert(&timer(*row, "inserted")),
            Step::Update(row, version) => {
                changes.update(&seen(*row, *version), &timer(*row, "updated"))
            }
            Step::Delete(row, version) => changes.delete(&seen(*row, *version)),
            Step::Put(row) => changes.put(&timer(*row, "put")),
        };
    }
    Submission::prepare(changes).unwrap()
}

/// Brings what is loaded to where `writes` leave the database.
fn store(mut loaded: LoadedState, writes: &Writes) -> LoadedState {
    for (id, row) in &writes.rows {
        match row {
            FinalRow::Written { version, .. } => {
                let row = LoadedRow {
                    version: *version,
                    body: None,
                };
                loaded.rows.insert(id.clone(), row);
            }
            FinalRow::Deleted => {
                loaded.rows.remove(id);
            }
        }
    }
    loaded.floor = writes.floor.unwrap_or(loaded.floor);
    loaded
}

proptest! {
    #[test]
    fn a_batch_ends_as_its_change_sets_one_by_one_would(
        batch in prop::collection::vec(prop::collection::vec(step(), 1..4), 1..12)
    ) {
        let batch: Vec<Submission> = batch.iter().map(|steps| submission(steps)).collect();
        let together = evaluate(&LoadedState::default(), &Routing::unknown(), &batch, now());
        let mut alone = LoadedState::default();
        let mut highest: HashMap<RowId, i64> = HashMap::new();
        for (submission, answer) in batch.iter().zip(&together.answers) {
            let one = std::slice::from_ref(submission);
            let evaluated = evaluate(&alone, &Routing::unknown(), one, now());
            prop_assert_eq!(evaluated.answers[0].is_ok(), answer.is_ok());
            for (id, row) in &evaluated.writes.rows {
                if let FinalRow::Written { version, .. } = row {
                    let before = highest.insert(id.clone(), *version);
                    prop_assert!(before.is_none_or(|before| before < *version), "a version came back");
                }
            }
            alone = store(alone, &evaluated.writes);
        }
        let end = store(LoadedState::default(), &together.writes);
        prop_assert_eq!(end.rows, alone.rows);
        prop_assert_eq!(end.floor, alone.floor);
    }
}
