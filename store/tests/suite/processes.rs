//! Several stores on one database stand for several processes: they see one truth.

use futures::future::join_all;
use ropewalk_schemas::timer::Timer;
use ropewalk_store::{CommitError, EventFilter, Query, Record};

use crate::support::{Bench, changes, name, subscription};

async fn stores_that_open_a_new_database_at_once_make_its_tables_once(bench: Bench) {
    let stores = join_all((0..6).map(|_| bench.open())).await;
    let timer = bench.timer("t");
    stores[0]
        .commit(changes(|c| c.insert(&timer)))
        .await
        .unwrap();
    assert!(
        stores[5]
            .get::<Timer>(&timer.key())
            .await
            .unwrap()
            .is_some()
    );
}

async fn a_subscription_made_elsewhere_routes_the_next_event_here(bench: Bench) {
    let (here, there) = (bench.open().await, bench.open().await);
    let subscribers = async || {
        let event = bench.skipped("task/b/T-1", "routed");
        let committed = here.commit(changes(|c| c.emit(event))).await.unwrap();
        committed.events[0].subscribers.clone()
    };
    assert!(subscribers().await.is_empty());
    there
        .subscribe(&subscription("pm", &["task.*"]))
        .await
        .unwrap();
    assert_eq!(subscribers().await, [name("pm")]);
    there.unsubscribe(&name("pm")).await.unwrap();
    assert!(subscribers().await.is_empty());
}

async fn two_processes_that_write_at_once_lose_nothing_and_share_one_sequence(bench: Bench) {
    const EACH: usize = 300;
    let stores = [bench.open().await, bench.open().await];
    stores[0]
        .subscribe(&subscription("pm", &["task.*"]))
        .await
        .unwrap();
    let commits = (0..2 * EACH).map(|number| {
        let event = bench.skipped(&format!("task/b/T-{}", number % 7), "shared");
        let timer = bench.timer("t");
        stores[number % 2].commit(changes(|c| c.insert(&timer).emit(event)))
    });
    for outcome in join_all(commits).await {
        outcome.unwrap();
    }
    let events = stores[0].events(&EventFilter::default()).await.unwrap();
    let sequences: Vec<i64> = events.iter().map(|event| event.sequence).collect();
    let expected: Vec<i64> = (1..).take(2 * EACH).collect();
    assert_eq!(sequences, expected);
    assert_eq!(stores[1].count::<Timer>(Query::new()).await.unwrap(), 600);
    assert_eq!(stores[1].statistics().await.unwrap().open_deliveries, 600);
}

async fn a_version_read_here_conflicts_with_a_write_there(bench: Bench) {
    let (here, there) = (bench.open().await, bench.open().await);
    let timer = bench.timer("t");
    here.commit(changes(|c| c.insert(&timer))).await.unwrap();
    let read = here.get::<Timer>(&timer.key()).await.unwrap().unwrap();
    there.commit(changes(|c| c.put(&timer))).await.unwrap();
    let stale = here
        .commit(changes(|c| c.require(&read)))
        .await
        .unwrap_err();
    assert!(matches!(stale, CommitError::Conflict { .. }), "{stale}");
}

on_each_database! {
    two_processes_that_write_at_once_lose_nothing_and_share_one_sequence,
    stores_that_open_a_new_database_at_once_make_its_tables_once,
    a_subscription_made_elsewhere_routes_the_next_event_here,
    a_version_read_here_conflicts_with_a_write_there,
}
