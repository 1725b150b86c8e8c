//! Several processes on one database: each delivery is with one of them at a time.

use std::time::Duration;

use chrono::TimeDelta;
use ropewalk_store::{CommitError, DeliveryKey, DeliveryPosition, Outcome, Store};

use crate::support::{Bench, changes, name, subscription};

/// Longer than a test.
const LONG: Duration = Duration::from_mins(10);

on_each_database!(
    one_process_at_a_time_has_a_delivery,
    a_claim_that_is_over_or_given_back_is_another_s_to_take,
    the_deliveries_of_an_entity_go_in_order_over_all_processes,
    a_delivery_that_failed_or_is_closed_is_claimed_by_nobody,
);

fn key(sequence: i64) -> DeliveryKey {
    DeliveryKey {
        sequence,
        subscriber: name("build"),
    }
}

/// Opens the store and commits an event about each of `subjects` for the subscriber `build`.
async fn store(bench: &Bench, subjects: &[&str]) -> Store {
    let store = bench.open().await;
    let subscribed = store.subscribe(&subscription("build", &["task.*"])).await;
    subscribed.unwrap();
    for subject in subjects {
        let event = bench.retry(subject);
        store.commit(changes(|c| c.emit(event))).await.unwrap();
    }
    store
}

async fn close(store: &Store, sequence: i64, outcome: Outcome) -> Result<(), CommitError> {
    let closing = changes(|c| c.close(&key(sequence), outcome));
    store.commit(closing).await.map(drop)
}

async fn one_process_at_a_time_has_a_delivery(bench: Bench) {
    let (here, there) = (store(&bench, &["task/b/T-1"]).await, bench.open().await);
    let (ours, theirs) = (here.claims("p1", LONG), there.claims("p2", LONG));
    assert_eq!(ours.take(&key(1)).await.unwrap(), Some(0));
    assert_eq!(theirs.take(&key(1)).await.unwrap(), None);
    let again = here.claims("p1", LONG);
    assert_eq!(again.take(&key(1)).await.unwrap(), Some(0), "it is its own");

    let seen = theirs.look(&name("build"), &[1, 2]).await.unwrap();
    let held = seen[0].held.unwrap();
    assert!(held <= LONG && held > LONG / 2);
    let expected = DeliveryPosition {
        sequence: 1,
        attempts: 0,
        due: bench.clock.now(),
        behind: false,
        held: Some(held),
    };
    assert_eq!(seen, [expected]);
    let own = ours.look(&name("build"), &[1]).await.unwrap();
    assert_eq!(
        own,
        [DeliveryPosition {
            held: None,
            ..expected
        }]
    );
}

async fn a_claim_that_is_over_or_given_back_is_another_s_to_take(bench: Bench) {
    let subjects = ["task/b/T-1", "task/b/T-2", "task/b/T-3"];
    let (here, there) = (store(&bench, &subjects).await, bench.open().await);
    let soon = Duration::from_millis(400);
    let (ours, theirs) = (here.claims("p1", soon), there.claims("p2", LONG));
    for sequence in 1..=3 {
        assert!(ours.take(&key(sequence)).await.unwrap().is_some());
    }
    // For longer than a busy machine may take until somebody looks.
    let longer = here.claims("p1", LONG);
    longer.renew(&[key(1), key(3)]).await.unwrap();
    tokio::time::sleep(soon * 2).await;
    assert!(theirs.take(&key(1)).await.unwrap().is_none(), "renewed");
    assert!(theirs.take(&key(2)).await.unwrap().is_some(), "over");
    ours.renew(&[key(2)]).await.unwrap();
    assert!(ours.take(&key(2)).await.unwrap().is_none(), "lost for good");

    let mut feed = there.feed();
    ours.give_back().await.unwrap();
    if bench.location.starts_with("postgres") {
        assert!(feed.next().await.unwrap().is_err(), "it is told");
    }
    assert!(theirs.take(&key(3)).await.unwrap().is_some());
    assert!(ours.take(&key(2)).await.unwrap().is_none());
}

async fn the_deliveries_of_an_entity_go_in_order_over_all_processes(bench: Bench) {
    let subjects = ["task/b/T-1", "task/b/T-1", "task/b/T-2"];
    let (here, there) = (store(&bench, &subjects).await, bench.open().await);
    let (ours, theirs) = (here.claims("p1", LONG), there.claims("p2", LONG));
    assert!(theirs.take(&key(2)).await.unwrap().is_none());
    assert!(ours.take(&key(1)).await.unwrap().is_some());
    assert!(ours.take(&key(2)).await.unwrap().is_none());
    assert!(theirs.take(&key(3)).await.unwrap().is_some());
    let seen = theirs.look(&name("build"), &[2]).await.unwrap();
    assert!(seen[0].behind && seen[0].held.is_none());

    let mut feed = there.feed();
    close(&here, 1, Outcome::Done).await.unwrap();
    if bench.location.starts_with("postgres") {
        // The end of a delivery lets another one go, so others hear of it though it emits nothing.
        assert!(feed.next().await.unwrap().is_err());
    }
    assert!(theirs.take(&key(2)).await.unwrap().is_some());
}

async fn a_delivery_that_failed_or_is_closed_is_claimed_by_nobody(bench: Bench) {
    let (here, there) = (store(&bench, &["task/b/T-1"]).await, bench.open().await);
    let (ours, theirs) = (here.claims("p1", LONG), there.claims("p2", LONG));
    assert!(ours.take(&key(1)).await.unwrap().is_some());
    let retry = Outcome::Retry {
        due: bench.clock.now() + TimeDelta::seconds(1),
        error: "no".to_owned(),
    };
    close(&here, 1, retry).await.unwrap();
    assert!(theirs.take(&key(1)).await.unwrap().is_none(), "not due");
    bench.clock.advance(Duration::from_secs(1));
    assert_eq!(theirs.take(&key(1)).await.unwrap(), Some(1));
    // Who comes first closes it, whoever has the claim.
    close(&here, 1, Outcome::Done).await.unwrap();
    let late = close(&there, 1, Outcome::Done).await.unwrap_err();
    assert!(matches!(late, CommitError::Closed { .. }), "{late}");
    assert!(theirs.take(&key(1)).await.unwrap().is_none());
    assert!(theirs.look(&name("build"), &[1]).await.unwrap().is_empty());
}
