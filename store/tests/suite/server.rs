//! What only a server does: it is restarted, it breaks connections, it tells one process of another.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use ropewalk_schemas::timer::Timer;
use ropewalk_store::{
    BackupError, CommitError, EventFilter, Instance, InstanceLock, InstanceLockError, Location,
    OpenError, Query, Store,
};
use ropewalk_tests::servers::PostgresServer;
use tempfile::TempDir;

use crate::support::{Bench, changes};

/// Long enough for anything that is going to happen.
const PATIENCE: Duration = Duration::from_mins(1);

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_of_another_process_wakes_the_feed() {
    let bench = Bench::postgres().await;
    let (here, there) = (bench.open().await, bench.open().await);
    let (mut own, mut foreign) = (here.feed(), there.feed());
    let event = bench.retry("task/b/T-1");
    here.commit(changes(|c| c.emit(event))).await.unwrap();
    assert!(own.next().await.unwrap().is_ok());
    let told = tokio::time::timeout(PATIENCE, foreign.next()).await;
    assert!(told.unwrap().unwrap().is_err(), "it is to read the store");

    let (elsewhere, timer) = (Bench::postgres().await, bench.timer("silent"));
    let apart = elsewhere.open().await;
    let event = bench.retry("task/b/T-2");
    apart.commit(changes(|c| c.emit(event))).await.unwrap();
    here.commit(changes(|c| c.insert(&timer))).await.unwrap();
    let event = bench.retry("task/b/T-3");
    there.commit(changes(|c| c.emit(event))).await.unwrap();
    // Neither the other schema nor a commit without an event was told before this.
    let committed = foreign.next().await.unwrap().unwrap();
    assert_eq!(committed.events[0].sequence, 2);
    let told = tokio::time::timeout(PATIENCE, own.next()).await;
    assert!(told.unwrap().unwrap().is_err());
}

/// Commits one event and one row, under one id, until `count` are answered; an answer must be a success.
async fn write(bench: &Bench, store: &Store, count: usize) {
    for _ in 0..count {
        let event = bench.retry("task/b/T-1");
        let timer = bench.timer(&event.id.to_string());
        let both = changes(|c| c.emit(event).insert(&timer));
        store.commit(both).await.unwrap();
    }
}

/// Asserts that there are `count` events, each once and in an order without a gap, each with its row.
async fn assert_written(store: &Store, count: usize) {
    let events = store.events(&EventFilter::default()).await.unwrap();
    let sequences: Vec<i64> = events.iter().map(|event| event.sequence).collect();
    let expected: Vec<i64> = (1..).take(count).collect();
    assert_eq!(sequences, expected);
    let timers = store.list::<Timer>(Query::new()).await.unwrap();
    let mut named: Vec<String> = timers.iter().map(|timer| timer.name.clone()).collect();
    let mut ids: Vec<String> = events.iter().map(|e| e.event.id.to_string()).collect();
    named.sort_unstable();
    ids.sort_unstable();
    assert_eq!(named, ids);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_crashes_and_comes_back_loses_nothing_and_repeats_nothing() {
    const CRASHES: usize = 4;
    let mut server = PostgresServer::start().unwrap();
    let bench = Bench::on(&server.url()).await;
    let stores = [bench.open().await, bench.open().await];
    let (written, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let crashes = async {
        for crash in 1..=CRASHES {
            // Each crash meets commits on their way.
            while written.load(Ordering::Relaxed) < crash * 200 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let restart = tokio::task::spawn_blocking(move || {
                server.restart().unwrap();
                server
            });
            server = restart.await.unwrap();
        }
        over.store(true, Ordering::Relaxed);
        server
    };
    let writing = join_all((0..16).map(async |number| {
        while !over.load(Ordering::Relaxed) {
            write(&bench, &stores[number % 2], 1).await;
            written.fetch_add(1, Ordering::Relaxed);
        }
    }));
    let (_server, _) = tokio::join!(crashes, writing);
    let written = written.into_inner();
    assert!(written > CRASHES * 200);
    assert_written(&stores[1], written).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stays_away_is_named_and_what_comes_later_is_answered() {
    let mut server = PostgresServer::start().unwrap();
    let bench = Bench::on(&server.url()).await;
    let store = bench.open().await;
    server.kill();
    let refused = Store::open(&bench.location(), bench.clock.clone())
        .await
        .unwrap_err();
    assert!(matches!(refused, OpenError::Storage { .. }), "{refused}");
    let event = bench.retry("task/b/T-1");
    let refused = store.commit(changes(|c| c.emit(event))).await.unwrap_err();
    assert!(matches!(refused, CommitError::Unreachable(_)), "{refused}");
    server.restart().unwrap();
    write(&bench, &store, 3).await;
    assert_written(&store, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_an_administrator_ends_are_made_again() {
    let server = PostgresServer::start().unwrap();
    let bench = Bench::on(&server.url()).await;
    let (here, there) = (bench.open().await, bench.open().await);
    write(&bench, &here, 1).await;
    assert_written(&there, 1).await;
    let mut feed = there.feed();
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE application_name LIKE 'ropewalk%'";
    bench.run(end).await;
    let told = tokio::time::timeout(PATIENCE, feed.next()).await;
    assert!(
        told.unwrap().unwrap().is_err(),
        "it may have missed something"
    );
    write(&bench, &here, 1).await;
    let told = tokio::time::timeout(PATIENCE, feed.next()).await;
    assert!(told.unwrap().unwrap().is_err(), "it listens again");
    assert_written(&there, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_instance_consumes_from_a_database_wherever_it_runs() {
    let bench = Bench::postgres().await;
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let location = bench.location();
    let take = async |location: &Location, state: &TempDir| {
        InstanceLock::acquire_for(location, state.path(), Instance::Alone).await
    };
    let first = take(&location, &here).await.unwrap();
    let again = take(&location, &here).await;
    assert!(matches!(again, Err(InstanceLockError::Held { .. })));
    let apart = take(&location, &there).await.unwrap_err();
    let process = format!("ropewalk {}", std::process::id());
    assert!(
        matches!(&apart, InstanceLockError::Taken { holder, .. } if holder.contains(&process)),
        "{apart}"
    );
    let other = Bench::postgres().await;
    let elsewhere = tempfile::tempdir().unwrap();
    take(&other.location(), &elsewhere).await.unwrap();
    drop(first);
    let free = async {
        loop {
            let taken = take(&location, &there).await;
            if let Ok(lock) = taken {
                break lock;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    drop(tokio::time::timeout(PATIENCE, free).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn several_share_a_database_and_a_state_directory_or_one_has_them_alone() {
    let bench = Bench::postgres().await;
    let states = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let location = bench.location();
    let take = async |number: usize, instance| {
        InstanceLock::acquire_for(&location, states[number].path(), instance).await
    };
    let sharing = [
        take(0, Instance::Sharing).await.unwrap(),
        take(0, Instance::Sharing).await.unwrap(),
    ];
    let apart = take(1, Instance::Sharing).await.unwrap_err();
    let process = format!("ropewalk {} on 127.0.0.1", std::process::id());
    assert!(
        matches!(&apart, InstanceLockError::Apart { holder, .. } if *holder == process),
        "{apart}"
    );
    let refused = take(0, Instance::Alone).await.unwrap_err();
    assert!(matches!(refused, InstanceLockError::Shared), "{refused}");
    let refused = take(2, Instance::Alone).await.unwrap_err();
    assert!(
        matches!(refused, InstanceLockError::Taken { .. }),
        "{refused}"
    );
    drop(sharing);
    let alone = async {
        loop {
            if let Ok(lock) = take(2, Instance::Alone).await {
                break lock;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let alone = tokio::time::timeout(PATIENCE, alone).await.unwrap();
    let refused = take(0, Instance::Sharing).await.unwrap_err();
    assert!(
        matches!(refused, InstanceLockError::Taken { .. }),
        "{refused}"
    );
    drop(alone);
    // Whoever had a state directory of its own was kept out by those who are gone, and by nothing that they left.
    let sharing = async {
        loop {
            if let Ok(lock) = take(1, Instance::Sharing).await {
                break lock;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    drop(tokio::time::timeout(PATIENCE, sharing).await.unwrap());
}

#[tokio::test]
async fn a_newer_or_missing_schema_is_refused() {
    let bench = Bench::postgres().await;
    bench.open().await.close().await.unwrap();
    bench.run("INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
         VALUES (9999, 'future', TRUE, '', 0)",
    )
    .await;
    let refused = Store::open(&bench.location(), bench.clock.clone())
        .await
        .unwrap_err();
    assert!(
        matches!(refused, OpenError::Newer { found: 9_999, .. }),
        "{refused}"
    );
    bench
        .run("DO $$ BEGIN EXECUTE 'DROP SCHEMA ' || current_schema() || ' CASCADE'; END $$")
        .await;
    let refused = Store::open(&bench.location(), bench.clock.clone())
        .await
        .unwrap_err();
    assert!(matches!(refused, OpenError::Unfit { .. }), "{refused}");
}

#[tokio::test]
async fn a_sequence_is_not_given_again_when_the_newest_events_are_gone() {
    let bench = Bench::postgres().await;
    let store = bench.open().await;
    write(&bench, &store, 3).await;
    bench.run("DELETE FROM events WHERE sequence > 1").await;
    let event = bench.retry("task/b/T-1");
    let committed = store.commit(changes(|c| c.emit(event))).await.unwrap();
    assert_eq!(committed.events[0].sequence, 4);
}

#[tokio::test]
async fn a_server_is_backed_up_by_its_own_tools() {
    let bench = Bench::postgres().await;
    let store = bench.open().await;
    let refused = store.backup(bench.directory.path(), 3).await.unwrap_err();
    assert!(matches!(refused, BackupError::Elsewhere));
    assert!(store.statistics().await.unwrap().size_bytes > 0);
}
