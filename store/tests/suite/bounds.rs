//! Large data lies apart, a backlog stops what is new, and what is old and needed by nobody is forgotten.

use std::path::PathBuf;

use chrono::TimeDelta;
use ropewalk_schemas::payload::IdeationMessage;
use ropewalk_schemas::question::{About, Question, QuestionKind, QuestionState};
use ropewalk_schemas::{CorrelationId, Event, EventId, Payload, Slug, UserSlug};
use ropewalk_store::{
    ChangeSet, CommitError, DeliveryKey, EventFilter, Outcome, ReadError, RetentionReport, Store,
};
use serde_json::{Value, json};

use crate::support::{Bench, changes, name, subscription};

/// Lists the files of blobs.
fn blobs(bench: &Bench) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(bench.directory.path().join("blobs")) else {
        return Vec::new();
    };
    entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().len() == 64)
        .collect()
}

async fn emit(store: &Store, event: Event) -> EventId {
    let id = event.id;
    store.commit(changes(|c| c.emit(event))).await.unwrap();
    id
}

async fn kept(store: &Store) -> Vec<EventId> {
    let events = store.events(&EventFilter::default()).await.unwrap();
    events.iter().map(|stored| stored.event.id).collect()
}

async fn large_data_lies_apart_and_is_read_back_whole(bench: Bench) {
    let store = bench.open().await;
    store
        .subscribe(&subscription("notify", &["task.*"]))
        .await
        .unwrap();
    let large = bench.skipped("task/b/T-1", &"ä".repeat(200_000));
    let whole = large.to_cloud_event().data;
    let id = emit(&store, large.clone()).await;
    let small = emit(&store, bench.skipped("task/b/T-1", "small")).await;

    let stored = store.event(id).await.unwrap().unwrap();
    assert_eq!(stored.event.data, whole);
    assert_eq!(Event::try_from(stored.event.as_ref()).unwrap(), large);
    let listed = store.events(&EventFilter::default()).await.unwrap();
    assert_eq!((listed[0].event.id, listed[1].event.id), (id, small));
    assert_eq!(listed[0].event.data, Value::Null);
    let open = store.open_deliveries(None, 0, 9).await.unwrap();
    assert!(open[0].event.dataref.is_some() && open[1].event.dataref.is_none());
    let files = blobs(&bench);
    if bench.location.starts_with("sqlite") {
        let text = std::fs::read_to_string(&files[0]).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), whole);
        std::fs::remove_file(&files[0]).unwrap();
        let gone = store.event(id).await.unwrap_err();
        assert!(
            matches!(gone, ReadError::Blob { event, .. } if event == id),
            "{gone}"
        );
    } else {
        assert_eq!(files, Vec::<PathBuf>::new());
    }
}

async fn one_byte_beyond_a_mebibyte_is_refused_and_leaves_nothing(bench: Bench) {
    let store = bench.open().await;
    let frame = bench.skipped("task/b/T-1", "").to_cloud_event();
    let room = 1024 * 1024 - frame.data.to_string().len();
    let fits = bench.skipped("task/b/T-1", &"x".repeat(room));
    let beyond = bench.skipped("task/b/T-1", &"x".repeat(room + 1));
    let refused = store.commit(changes(|c| c.emit(beyond))).await.unwrap_err();
    assert!(
        matches!(
            refused,
            CommitError::Oversized {
                size_bytes: 1_048_577,
                limit_bytes: 1_048_576,
                ..
            }
        ),
        "{refused}"
    );
    assert!(!refused.to_string().contains('\n'));
    assert_eq!(store.count_events().await.unwrap(), 0);
    assert_eq!(blobs(&bench), Vec::<PathBuf>::new());
    let id = emit(&store, fits).await;
    assert!(store.event(id).await.unwrap().is_some());
}

fn message(bench: &Bench) -> Event {
    let payload = Payload::IdeationMessage(IdeationMessage {
        session_id: bench.ids.next().into(),
        idea_slug: Slug::parse("habits").unwrap(),
        message_id: bench.ids.next().into(),
        user_slug: UserSlug::parse("ada").unwrap(),
        ends: false,
    });
    Event {
        payload,
        ..bench.skipped("idea/habits", "")
    }
}

async fn a_full_backlog_refuses_what_is_new_and_nothing_else(bench: Bench) {
    const SUBSCRIBERS: usize = 100;
    let store = bench.open().await;
    for number in 0..SUBSCRIBERS {
        let subscriber = format!("s-{number}");
        let subscription = subscription(&subscriber, &["task.*"]);
        store.subscribe(&subscription).await.unwrap();
    }
    emit(&store, message(&bench)).await;
    for _ in 0..5 {
        let mut changes = ChangeSet::new();
        for _ in 0..10_000 / SUBSCRIBERS {
            changes.emit(bench.skipped("task/b/T-1", "waits"));
        }
        store.commit(changes).await.unwrap();
    }
    let refused = store.commit(changes(|c| c.emit(message(&bench)))).await;
    let refused = refused.unwrap_err();
    let full = CommitError::Backlog {
        open: 50_000,
        limit: 50_000,
    };
    assert_eq!(refused.to_string(), full.to_string());
    let done = DeliveryKey {
        sequence: 2,
        subscriber: name("s-7"),
    };
    // What is there goes on, whatever it emits.
    let handled = changes(|c| {
        c.close(&done, Outcome::Done)
            .emit(message(&bench))
            .emit(bench.retry("build/b"))
    });
    store.commit(handled).await.unwrap();
    let rest = changes(|c| {
        for number in 0..SUBSCRIBERS {
            let subscriber = name(&format!("s-{number}"));
            let sequence = 3;
            c.close(
                &DeliveryKey {
                    sequence,
                    subscriber,
                },
                Outcome::Done,
            );
        }
        c
    });
    store.commit(rest).await.unwrap();
    emit(&store, message(&bench)).await;
}

async fn only_what_is_old_and_needed_by_nobody_is_forgotten(bench: Bench) {
    let store = bench.open().await;
    let large = "x".repeat(100_000);
    let of = |reason: &str, chain: u128| Event {
        correlation_id: CorrelationId(uuid::Uuid::from_u128(chain)),
        ..bench.skipped("task/b/T-1", reason)
    };
    let gone = emit(&store, of(&large, 1)).await;
    let also_gone = emit(&store, of("small", 1)).await;
    let live_chain = emit(&store, of("old, of a chain that goes on", 2)).await;
    let asked = emit(&store, of("old, of a chain with an open question", 3)).await;
    store
        .subscribe(&subscription("notify", &["task.*"]))
        .await
        .unwrap();
    let open = emit(&store, of(&format!("{large}open"), 4)).await;
    let dead = emit(&store, of("dead", 5)).await;
    let done = emit(&store, of("done", 6)).await;
    for (id, outcome) in [
        (
            dead,
            Outcome::Dead {
                error: "e".to_owned(),
            },
        ),
        (done, Outcome::Done),
    ] {
        let sequence = store.event(id).await.unwrap().unwrap().sequence;
        let key = DeliveryKey {
            sequence,
            subscriber: name("notify"),
        };
        store
            .commit(changes(|c| c.close(&key, outcome)))
            .await
            .unwrap();
    }
    store
        .commit(changes(|c| c.put(&question(&bench, 3))))
        .await
        .unwrap();
    // One for each of the two that are large, where data lies in files.
    let files = if bench.has_files() { 2 } else { 0 };
    assert_eq!(blobs(&bench).len(), files);

    bench.clock.advance(TimeDelta::days(100).to_std().unwrap());
    let fresh = emit(&store, of("fresh", 2)).await;
    let before = bench.clock.now() - TimeDelta::days(90);
    let forgotten = store.forget(before).await.unwrap();

    let expected = RetentionReport {
        events: 3,
        blobs: u64::from(bench.has_files()),
    };
    assert_eq!(forgotten, expected);
    assert_eq!(kept(&store).await, [live_chain, asked, open, dead, fresh]);
    for id in [gone, also_gone, done] {
        assert_eq!(store.event(id).await.unwrap(), None);
    }
    let stored = store.event(open).await.unwrap().unwrap();
    assert!(stored.event.data.to_string().len() > 100_000);
    assert_eq!(blobs(&bench).len(), files.saturating_sub(1));
    assert_eq!(
        store.forget(before).await.unwrap(),
        RetentionReport::default()
    );
}

/// Makes a pending question of a chain.
fn question(bench: &Bench, chain: u128) -> Question {
    let question = json!({
        "id": bench.ids.next(),
        "kind": QuestionKind::Blocking.as_str(),
        "trigger": "t",
        "agent": "build",
        "text": "Which?",
        "context": "",
        "free_text": true,
        "consequential": false,
        "about": About::Nothing,
        "state": QuestionState::Pending.as_str(),
        "correlation_id": uuid::Uuid::from_u128(chain),
        "asked_at": bench.clock.now(),
    });
    serde_json::from_value(question).unwrap()
}

async fn forgetting_goes_on_past_the_events_that_stay(bench: Bench) {
    let store = bench.open().await;
    store
        .subscribe(&subscription("notify", &["task.skipped"]))
        .await
        .unwrap();
    for _ in 0..3 {
        let mut changes = ChangeSet::new();
        for _ in 0..400 {
            changes.emit(bench.skipped("task/b/T-1", "stays"));
            changes.emit(bench.retry("task/b/T-1"));
        }
        store.commit(changes).await.unwrap();
    }
    bench.clock.advance(TimeDelta::days(1).to_std().unwrap());
    let forgotten = store.forget(bench.clock.now()).await.unwrap();
    assert_eq!(forgotten.events, 1_200);
    assert_eq!(store.count_events().await.unwrap(), 1_200);
    // What was written stays written for who counts only that.
    let written = store.statistics().await.unwrap().written;
    assert!(written >= 2_400, "{written}");
}

on_each_database!(
    large_data_lies_apart_and_is_read_back_whole,
    one_byte_beyond_a_mebibyte_is_refused_and_leaves_nothing,
    a_full_backlog_refuses_what_is_new_and_nothing_else,
    only_what_is_old_and_needed_by_nobody_is_forgotten,
    forgetting_goes_on_past_the_events_that_stay,
);
