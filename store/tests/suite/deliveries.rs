//! An event and its delivery rows exist together; a delivery is handled once.

use chrono::TimeDelta;
use ropewalk_schemas::Subject;
use ropewalk_schemas::timer::Timer;
use ropewalk_store::{
    CommitError, DeliveryFilter, DeliveryKey, DeliveryState, Outcome, Query, StartAt, Subscription,
};

use crate::support::{Bench, changes, name, subscription};

fn key(sequence: i64, subscriber: &str) -> DeliveryKey {
    DeliveryKey {
        sequence,
        subscriber: name(subscriber),
    }
}

async fn each_routed_subscriber_gets_one_delivery_about_the_events_subject(bench: Bench) {
    let store = bench.open().await;
    store
        .subscribe(&subscription("improvement", &["task.skipped", "alert.*"]))
        .await
        .unwrap();
    store
        .subscribe(&subscription("notify", &["task.*"]))
        .await
        .unwrap();
    store
        .subscribe(&subscription("build", &["task.retry"]))
        .await
        .unwrap();
    let event = bench.skipped("task/b/T-7", "routed");
    let committed = store
        .commit(changes(|c| c.emit(event.clone())))
        .await
        .unwrap();
    assert_eq!(
        committed.events[0].subscribers,
        [name("improvement"), name("notify")]
    );

    let rows = store.deliveries(&DeliveryFilter::default()).await.unwrap();
    let seen: Vec<_> = rows
        .iter()
        .map(|row| (row.key.subscriber.as_str(), row.state))
        .collect();
    assert_eq!(
        seen,
        [
            ("improvement", DeliveryState::Open),
            ("notify", DeliveryState::Open)
        ]
    );
    assert!(
        rows.iter()
            .all(|row| row.subject == Subject::parse("task/b/T-7").unwrap())
    );
    let stored = store.event(event.id).await.unwrap().unwrap();
    assert_eq!(stored, committed.events[0]);
}

async fn a_second_close_is_refused_and_changes_nothing(bench: Bench) {
    let store = bench.open().await;
    store
        .subscribe(&subscription("pm", &["task.*"]))
        .await
        .unwrap();
    let event = bench.skipped("task/b/T-1", "once");
    store.commit(changes(|c| c.emit(event))).await.unwrap();
    let (first, second) = (bench.timer("effect"), bench.timer("effect"));
    let handle = |effect: &Timer| changes(|c| c.insert(effect).close(&key(1, "pm"), Outcome::Done));
    let (one, two) = tokio::join!(store.commit(handle(&first)), store.commit(handle(&second)));
    one.unwrap();
    assert!(matches!(two, Err(CommitError::Closed { sequence: 1, .. })));
    assert_eq!(store.count::<Timer>(Query::new()).await.unwrap(), 1);
    let late = store.commit(handle(&second)).await.unwrap_err();
    assert!(matches!(late, CommitError::Closed { sequence: 1, .. }));
    assert!(store.open_deliveries(None, 0, 10).await.unwrap().is_empty());
}

async fn a_retry_counts_and_a_dead_letter_can_be_replayed_or_discarded(bench: Bench) {
    let store = bench.open().await;
    store
        .subscribe(&subscription("pm", &["task.*"]))
        .await
        .unwrap();
    let event = bench.skipped("task/b/T-1", "poison");
    store.commit(changes(|c| c.emit(event))).await.unwrap();
    let close = |outcome: Outcome| store.commit(changes(|c| c.close(&key(1, "pm"), outcome)));
    let due = bench.clock.now() + TimeDelta::seconds(3);

    close(Outcome::Retry {
        due,
        error: "busy\0".to_owned(),
    })
    .await
    .unwrap();
    let open = store
        .open_deliveries(Some(&name("pm")), 0, 10)
        .await
        .unwrap();
    assert_eq!(
        (open[0].attempts, open[0].due, open[0].last_error.as_deref()),
        (1, due, Some("busy"))
    );
    let early = close(Outcome::Replay).await.unwrap_err();
    assert!(matches!(early, CommitError::NotDead { .. }));

    close(Outcome::Dead {
        error: "poison".to_owned(),
    })
    .await
    .unwrap();
    let dead = DeliveryFilter {
        states: vec![DeliveryState::Dead],
        ..DeliveryFilter::default()
    };
    let rows = store.deliveries(&dead).await.unwrap();
    assert_eq!(
        (rows[0].attempts, rows[0].error.as_deref()),
        (2, Some("poison"))
    );
    assert_eq!(rows[0].closed_at, Some(bench.clock.now()));
    assert_eq!(store.statistics().await.unwrap().dead_letters, 1);

    close(Outcome::Replay).await.unwrap();
    let open = store.open_deliveries(None, 0, 10).await.unwrap();
    assert_eq!((open[0].attempts, open[0].last_error.as_deref()), (0, None));
    close(Outcome::Parked {
        reason: "newer".to_owned(),
    })
    .await
    .unwrap();
    close(Outcome::Discarded {
        reason: "given up by ada".to_owned(),
    })
    .await
    .unwrap();
    let given_up = DeliveryFilter {
        states: vec![DeliveryState::Discarded],
        ..DeliveryFilter::default()
    };
    let rows = store.deliveries(&given_up).await.unwrap();
    assert_eq!(rows[0].error.as_deref(), Some("given up by ada"));
    assert!(store.open_deliveries(None, 0, 10).await.unwrap().is_empty());
}

async fn a_new_subscriber_begins_where_it_asks_and_only_once(bench: Bench) {
    let store = bench.open().await;
    for number in 0..4 {
        let event = if number % 2 == 0 {
            bench.skipped("task/b/T-1", "past")
        } else {
            bench.retry("task/b/T-1")
        };
        store.commit(changes(|c| c.emit(event))).await.unwrap();
    }
    let sequences = async |subscriber: &str| -> Vec<i64> {
        let open = store
            .open_deliveries(Some(&name(subscriber)), 0, 100)
            .await
            .unwrap();
        open.iter().map(|delivery| delivery.key.sequence).collect()
    };
    store
        .subscribe(&subscription("now", &["task.*"]))
        .await
        .unwrap();
    assert_eq!(sequences("now").await, Vec::<i64>::new());
    let third = Subscription {
        from: StartAt::Sequence(3),
        ..subscription("third", &["task.*"])
    };
    store.subscribe(&third).await.unwrap();
    assert_eq!(sequences("third").await, [3, 4]);
    let all = Subscription {
        from: StartAt::Beginning,
        ..subscription("all", &["task.skip*", "task.skipped"])
    };
    store.subscribe(&all).await.unwrap();
    assert_eq!(sequences("all").await, [1, 3]);
    store
        .commit(changes(|c| c.close(&key(1, "all"), Outcome::Done)))
        .await
        .unwrap();
    store.subscribe(&all).await.unwrap();
    let wider = Subscription {
        from: StartAt::Beginning,
        ..subscription("all", &["*"])
    };
    store.subscribe(&wider).await.unwrap();
    assert_eq!(
        sequences("all").await,
        [3],
        "a known subscriber was given the past again"
    );
    let event = bench.retry("task/b/T-1");
    store.commit(changes(|c| c.emit(event))).await.unwrap();
    assert_eq!(
        sequences("all").await,
        [3, 5],
        "changed patterns take effect"
    );
}

async fn open_deliveries_of_an_unsubscribed_name_are_closed(bench: Bench) {
    let store = bench.open().await;
    store
        .subscribe(&subscription("pm", &["task.*"]))
        .await
        .unwrap();
    let event = bench.skipped("task/b/T-1", "left");
    store.commit(changes(|c| c.emit(event))).await.unwrap();
    store.unsubscribe(&name("pm")).await.unwrap();
    store.unsubscribe(&name("nobody")).await.unwrap();
    let rows = store.deliveries(&DeliveryFilter::default()).await.unwrap();
    assert_eq!(rows[0].state, DeliveryState::Unsubscribed);
    let event = bench.skipped("task/b/T-1", "unheard");
    let committed = store.commit(changes(|c| c.emit(event))).await.unwrap();
    assert!(committed.events[0].subscribers.is_empty());
    assert!(store.subscriptions().await.unwrap().is_empty());
}

async fn what_a_subscriber_has_not_got_is_replayed_and_nothing_twice(bench: Bench) {
    let store = bench.open().await;
    for text in ["before", "meant", "also meant"] {
        let event = bench.skipped("task/b/T-1", text);
        store.commit(changes(|c| c.emit(event))).await.unwrap();
    }
    let late = subscription("late", &["task.*"]);
    store.subscribe(&late).await.unwrap();
    let event = bench.skipped("task/b/T-1", "heard");
    store.commit(changes(|c| c.emit(event))).await.unwrap();
    let key = DeliveryKey {
        sequence: 4,
        subscriber: late.name.clone(),
    };
    let done = changes(|c| c.close(&key, Outcome::Done));
    store.commit(done).await.unwrap();
    assert_eq!(store.replay(&late.name, 2).await.unwrap(), Some(2));
    assert_eq!(store.replay(&late.name, 2).await.unwrap(), Some(0));
    assert_eq!(store.replay(&name("nobody"), 1).await.unwrap(), None);
    let open = store.open_deliveries(Some(&late.name), 0, 10).await;
    let open: Vec<i64> = open.unwrap().iter().map(|row| row.key.sequence).collect();
    assert_eq!(open, [2, 3], "what it has handled is not delivered again");
}

async fn a_long_past_is_replayed_in_portions_that_keep_nothing_new_out(bench: Bench) {
    let store = bench.open().await;
    for _ in 0..10 {
        let portion = changes(|c| {
            for _ in 0..1_001 {
                c.emit(bench.skipped("task/b/T-1", "long ago"));
            }
            c
        });
        store.commit(portion).await.unwrap();
    }
    let late = subscription("late", &["task.*"]);
    store.subscribe(&late).await.unwrap();
    assert_eq!(store.replay(&late.name, 1).await.unwrap(), Some(10_000));
    assert_eq!(store.replay(&late.name, 1).await.unwrap(), Some(10));
    assert_eq!(store.replay(&late.name, 1).await.unwrap(), Some(0));
    let open = store.open_deliveries(Some(&late.name), 0, 20_000).await;
    assert_eq!(open.unwrap().len(), 10_010);
}

async fn a_subscription_without_a_pattern_is_refused(bench: Bench) {
    let store = bench.open().await;
    let refused = store.subscribe(&subscription("pm", &[])).await.unwrap_err();
    assert!(matches!(refused, CommitError::NoPattern(_)));
}

on_each_database! {
    each_routed_subscriber_gets_one_delivery_about_the_events_subject,
    a_second_close_is_refused_and_changes_nothing,
    a_retry_counts_and_a_dead_letter_can_be_replayed_or_discarded,
    a_new_subscriber_begins_where_it_asks_and_only_once,
    open_deliveries_of_an_unsubscribed_name_are_closed,
    what_a_subscriber_has_not_got_is_replayed_and_nothing_twice,
    a_long_past_is_replayed_in_portions_that_keep_nothing_new_out,
    a_subscription_without_a_pattern_is_refused,
}
