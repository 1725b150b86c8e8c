//! A copy that leaves the machine: it holds what the database holds, whichever kind that is, and counts on from there.

use std::time::Duration;

use ropewalk_schemas::ContentHash;
use ropewalk_schemas::keyed_request::KeyedRequest;
use ropewalk_schemas::lease::Lease;
use ropewalk_schemas::notice::Notice;
use ropewalk_schemas::timer::Timer;
use ropewalk_store::{
    DeliveryFilter, DeliveryKey, EventFilter, Location, Query, Store, leave_behind,
};

use crate::support::{Bench, changes, name, subscription};

on_each_database!(
    a_copy_holds_all_of_it,
    what_runs_here_stays_behind,
    a_copy_counts_on_from_what_was_given
);

/// Opens a copy of what `store` is on.
async fn copied(bench: &Bench, store: &Store) -> Store {
    let folder = bench.directory.path().join("elsewhere");
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("ropewalk.db");
    store.copy_to(&path).await.unwrap();
    if bench.has_files() {
        let blobs = bench.directory.path().join("blobs");
        if blobs.exists() {
            std::fs::create_dir(folder.join("blobs")).unwrap();
        }
        for blob in std::fs::read_dir(blobs).into_iter().flatten().flatten() {
            std::fs::copy(blob.path(), folder.join("blobs").join(blob.file_name())).unwrap();
        }
    }
    leave_behind(&path).await.unwrap();
    Store::open(&Location::Sqlite(path), bench.clock.clone())
        .await
        .unwrap()
}

async fn a_copy_holds_all_of_it(bench: Bench) {
    let store = bench.open().await;
    let all = subscription("notify", &["task.*"]);
    store.subscribe(&all).await.unwrap();
    let timers: Vec<Timer> = (0..3)
        .map(|number| bench.timer(&format!("Zeit '{number}'")))
        .collect();
    let large = bench.skipped("task/b/T-1", &"ä".repeat(200_000));
    let (small, whole) = (bench.retry("task/b/T-2"), large.to_cloud_event().data);
    let id = large.id;
    let filled = changes(|c| {
        for timer in &timers {
            c.insert(timer);
        }
        c.emit(large).emit(small)
    });
    store.commit(filled).await.unwrap();
    let copy = copied(&bench, &store).await;

    let by_name = || Query::new().order_by("name");
    let before = store.list::<Timer>(by_name()).await.unwrap();
    let after = copy.list::<Timer>(by_name()).await.unwrap();
    assert_eq!((before.len(), before), (3, after));
    let events = |store: Store| async move { store.events(&EventFilter::default()).await.unwrap() };
    let (before, after) = (events(store.clone()).await, events(copy.clone()).await);
    assert_eq!((before.len(), before), (2, after));
    let found = copy.event(id).await.unwrap().unwrap();
    assert_eq!(found.event.data, whole);
    let deliveries = DeliveryFilter::default();
    let before = store.deliveries(&deliveries).await.unwrap();
    assert_eq!(before.len(), 2);
    assert_eq!(before, copy.deliveries(&deliveries).await.unwrap());
    assert_eq!(copy.subscriptions().await.unwrap().len(), 1);
    copy.close().await.unwrap();
}

async fn what_runs_here_stays_behind(bench: Bench) {
    const NONCE: &str = "nonce-of-a-button";
    const KEY: &str = "ada key-of-a-request";
    const PROCESS: &str = "process-that-claims";
    let store = bench.open().await;
    let all = subscription("notify", &["task.*"]);
    store.subscribe(&all).await.unwrap();
    let event = bench.retry("task/b/T-1");
    let (at, lease) = (bench.clock.now(), bench.lease("src/a.rs", &bench.holder()));
    let asked = KeyedRequest {
        key: KEY.to_owned(),
        hash: ContentHash::of(b"asked"),
        answer: None,
        at,
    };
    let told = bench.notice(NONCE);
    let filled = changes(|c| c.emit(event).grant(lease).insert(&told).insert(&asked));
    let sequence = store.commit(filled).await.unwrap().events[0].sequence;
    let key = DeliveryKey {
        sequence,
        subscriber: name("notify"),
    };
    let claims = store.claims(PROCESS, Duration::from_mins(10));
    assert_eq!(claims.take(&key).await.unwrap(), Some(0));

    let copy = copied(&bench, &store).await;
    assert_eq!(counts(&store).await, [1, 1, 1]);
    assert_eq!(counts(&copy).await, [0, 0, 0]);
    // The delivery itself came along, for whoever runs there.
    let there = copy.claims("another", Duration::from_mins(10));
    let seen = there.look(&key.subscriber, &[sequence]).await.unwrap();
    assert_eq!((seen.len(), seen[0].held), (1, None));
    assert_eq!(there.take(&key).await.unwrap(), Some(0));
    copy.close().await.unwrap();
    let files = std::fs::read_dir(bench.directory.path().join("elsewhere")).unwrap();
    let files = files.flatten().map(|file| file.path());
    for file in files.filter(|path| path.is_file()) {
        let held = std::fs::read(&file).unwrap();
        for word in [NONCE, KEY, PROCESS] {
            let mut parts = held.windows(word.len());
            let is_there = parts.any(|part| part == word.as_bytes());
            assert!(!is_there, "{word} is in {}", file.display());
        }
    }
}

/// Counts the locks, the notices and the requests under a key.
async fn counts(store: &Store) -> [u64; 3] {
    [
        store.count::<Lease>(Query::new()).await.unwrap(),
        store.count::<Notice>(Query::new()).await.unwrap(),
        store.count::<KeyedRequest>(Query::new()).await.unwrap(),
    ]
}

async fn a_copy_counts_on_from_what_was_given(bench: Bench) {
    let store = bench.open().await;
    for _ in 0..3 {
        let event = bench.retry("task/b/T-1");
        store.commit(changes(|c| c.emit(event))).await.unwrap();
    }
    // The newest are gone, and their sequences are not given again.
    bench.run("DELETE FROM events WHERE sequence > 1").await;
    let copy = copied(&bench, &store).await;
    let event = bench.retry("task/b/T-1");
    let committed = copy.commit(changes(|c| c.emit(event))).await.unwrap();
    assert_eq!(committed.events[0].sequence, 4);
    copy.close().await.unwrap();
}
