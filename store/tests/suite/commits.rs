//! A change set is committed as a whole or not at all.

use std::sync::Arc;

use futures::future::join_all;
use ropewalk_schemas::timer::Timer;
use ropewalk_store::{CommitError, EventFilter, Query, Record};

use crate::support::{Bench, changes, subscription};

async fn a_record_is_inserted_updated_and_deleted_under_its_version(bench: Bench) {
    let store = bench.open().await;
    let timer = bench.timer("question.default");
    store.commit(changes(|c| c.insert(&timer))).await.unwrap();
    let before = store.get::<Timer>(&timer.key()).await.unwrap().unwrap();
    assert_eq!((before.version, &before.record), (1, &timer));

    let later = Timer {
        name: "question.reminder".to_owned(),
        ..timer.clone()
    };
    store
        .commit(changes(|c| c.update(&before, &later)))
        .await
        .unwrap();
    let after = store.get::<Timer>(&timer.key()).await.unwrap().unwrap();
    assert_eq!((after.version, &after.record), (2, &later));

    let stale = store
        .commit(changes(|c| c.delete(&before)))
        .await
        .unwrap_err();
    assert!(matches!(
        stale,
        CommitError::Conflict {
            table: "timers",
            ..
        }
    ));
    store.commit(changes(|c| c.delete(&after))).await.unwrap();
    assert_eq!(store.get::<Timer>(&timer.key()).await.unwrap(), None);
}

async fn a_row_that_comes_back_has_a_version_that_nobody_has_seen(bench: Bench) {
    let store = bench.open().await;
    let timer = bench.timer("t");
    store.commit(changes(|c| c.put(&timer))).await.unwrap();
    store.commit(changes(|c| c.put(&timer))).await.unwrap();
    let seen = store.get::<Timer>(&timer.key()).await.unwrap().unwrap();
    store.commit(changes(|c| c.delete(&seen))).await.unwrap();
    store.commit(changes(|c| c.insert(&timer))).await.unwrap();
    let again = store.get::<Timer>(&timer.key()).await.unwrap().unwrap();
    assert!(again.version > seen.version);
    let stale = store
        .commit(changes(|c| c.delete(&seen)))
        .await
        .unwrap_err();
    assert!(matches!(stale, CommitError::Conflict { .. }), "{stale}");
}

async fn a_conflict_hits_the_loser_alone_and_leaves_nothing_of_it(bench: Bench) {
    let store = bench.open().await;
    let timer = bench.timer("contested");
    store.commit(changes(|c| c.insert(&timer))).await.unwrap();
    let before = store.get::<Timer>(&timer.key()).await.unwrap().unwrap();
    let contenders = (0..20).map(|number| {
        let after = Timer {
            name: format!("winner-{number}"),
            ..timer.clone()
        };
        let event = bench.skipped("task/b/T-1", &after.name);
        let bystander = bench.timer(&after.name);
        let store = store.clone();
        let contested = changes(|c| c.emit(event).update(&before, &after));
        let apart = changes(|c| c.insert(&bystander));
        async move { (store.commit(contested).await, store.commit(apart).await) }
    });
    let outcomes = join_all(contenders).await;
    let won = outcomes
        .iter()
        .filter(|(contested, _)| contested.is_ok())
        .count();
    assert_eq!(won, 1);
    assert!(outcomes.iter().all(|(contested, apart)| {
        apart.is_ok()
            && contested
                .as_ref()
                .err()
                .is_none_or(|lost| matches!(lost, CommitError::Conflict { .. }))
    }));
    let events = store.events(&EventFilter::default()).await.unwrap();
    assert_eq!(events.len(), 1, "an event of a loser was stored");
    assert_eq!(store.count::<Timer>(Query::new()).await.unwrap(), 21);
}

async fn one_event_is_stored_once(bench: Bench) {
    let store = bench.open().await;
    let event = bench.skipped("task/b/T-1", "twice");
    store
        .commit(changes(|c| c.emit(event.clone())))
        .await
        .unwrap();
    let again = store
        .commit(changes(|c| c.emit(event.clone())))
        .await
        .unwrap_err();
    assert!(matches!(
        again,
        CommitError::Conflict {
            table: "events",
            ..
        }
    ));
    assert_eq!(store.event(event.id).await.unwrap().unwrap().sequence, 1);
}

async fn what_is_too_large_or_too_far_is_refused_before_anything_is_written(bench: Bench) {
    let store = bench.open().await;
    let large = bench.skipped("task/b/T-1", &"x".repeat(1024 * 1024));
    let refused = store.commit(changes(|c| c.emit(large))).await.unwrap_err();
    assert!(
        matches!(
            refused,
            CommitError::Oversized {
                limit_bytes: 1_048_576,
                ..
            }
        ),
        "{refused}"
    );

    let mut far = bench.skipped("task/b/T-1", "far");
    far.hop = 33;
    let refused = store.commit(changes(|c| c.emit(far))).await.unwrap_err();
    assert!(matches!(refused, CommitError::HopLimit { hop: 33, .. }));

    let fat = bench.timer(&"x".repeat(1024 * 1024));
    let event = bench.skipped("task/b/T-1", "fits");
    let refused = store
        .commit(changes(|c| c.emit(event).insert(&fat)))
        .await
        .unwrap_err();
    assert!(matches!(
        refused,
        CommitError::Oversized {
            limit_bytes: 1_048_576,
            ..
        }
    ));
    assert_eq!(store.count_events().await.unwrap(), 0);
}

async fn the_feed_tells_every_commit_with_an_event_in_commit_order(bench: Bench) {
    let store = bench.open().await;
    store
        .subscribe(&subscription("pm", &["task.*"]))
        .await
        .unwrap();
    let mut feed = store.feed();
    let silent = bench.timer("silent");
    store.commit(changes(|c| c.insert(&silent))).await.unwrap();
    let emitters = (0..200).map(|number| {
        let event = bench.skipped(&format!("task/b/T-{number}"), "fed");
        store.commit(changes(|c| c.emit(event)))
    });
    let committed = join_all(emitters).await;
    let mut told = Vec::new();
    for _ in 0..200 {
        told.push(Arc::unwrap_or_clone(feed.next().await.unwrap().unwrap()));
    }
    let sequences: Vec<i64> = told
        .iter()
        .map(|commit| commit.events[0].sequence)
        .collect();
    assert_eq!(sequences, (1..=200).collect::<Vec<i64>>());
    assert!(
        committed
            .into_iter()
            .all(|commit| told.contains(&commit.unwrap()))
    );
    store.close().await.unwrap();
    assert!(feed.next().await.is_none());
}

async fn a_slow_reader_of_the_feed_is_told_to_read_again(bench: Bench) {
    let store = bench.open().await;
    let mut feed = store.feed();
    let emitters = (0..4_200).map(|_| {
        let event = bench.retry("task/b/T-1");
        store.commit(changes(|c| c.emit(event)))
    });
    join_all(emitters).await;
    assert!(feed.next().await.unwrap().is_err());
    assert!(feed.next().await.unwrap().is_ok());
}

async fn a_closed_store_commits_what_was_queued_and_refuses_the_rest(bench: Bench) {
    let store = bench.open().await;
    let timer = bench.timer("last");
    let other = store.clone();
    let (queued, closed) = tokio::join!(
        store.commit(changes(|c| c.insert(&timer))),
        other.clone().close(),
    );
    queued.unwrap();
    closed.unwrap();
    let refused = other.commit(changes(|c| c.put(&timer))).await;
    assert!(matches!(refused, Err(CommitError::Closing)));
    let store = bench.open().await;
    assert!(store.get::<Timer>(&timer.key()).await.unwrap().is_some());
}

on_each_database! {
    a_record_is_inserted_updated_and_deleted_under_its_version,
    a_row_that_comes_back_has_a_version_that_nobody_has_seen,
    a_conflict_hits_the_loser_alone_and_leaves_nothing_of_it,
    one_event_is_stored_once,
    what_is_too_large_or_too_far_is_refused_before_anything_is_written,
    the_feed_tells_every_commit_with_an_event_in_commit_order,
    a_slow_reader_of_the_feed_is_told_to_read_again,
    a_closed_store_commits_what_was_queued_and_refuses_the_rest,
}
