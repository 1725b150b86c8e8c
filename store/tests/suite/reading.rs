//! Lists, events and the search find what their filters say.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use ropewalk_schemas::knowledge::{KnowledgeItem, KnowledgeKind, KnowledgeState};
use ropewalk_schemas::timer::Timer;
use ropewalk_schemas::{Event, EventPattern, KnowledgeId, Subject};
use ropewalk_store::{EventFilter, EventKey, Query, ReadError, Store};

use crate::support::{Bench, changes, name};

pub(crate) fn item(bench: &Bench, content: &str) -> KnowledgeItem {
    KnowledgeItem {
        id: KnowledgeId(bench.ids.next()),
        kind: KnowledgeKind::Gotcha,
        content: content.to_owned(),
        globs: Vec::new(),
        action: None,
        topics: vec!["locking".to_owned()],
        confidence: 0.7,
        executions: BTreeSet::new(),
        ideas: BTreeSet::new(),
        evidence: Vec::new(),
        discovered_by: name("build"),
        state: KnowledgeState::Candidate,
        superseded_by: None,
        injections: 0,
        created_at: bench.clock.now(),
        updated_at: bench.clock.now(),
    }
}

async fn a_list_is_filtered_ordered_and_limited(bench: Bench) {
    let store = bench.open().await;
    let timers: Vec<Timer> = (0..5)
        .map(|minute| Timer {
            due: bench.clock.now() + TimeDelta::minutes(minute),
            ..bench.timer("t")
        })
        .collect();
    store
        .commit(changes(|c| {
            timers.iter().fold(c, |c, timer| c.insert(timer))
        }))
        .await
        .unwrap();
    let due = Query::new()
        .at_most("due", timers[3].due)
        .order_by("due")
        .descending();
    assert_eq!(store.count::<Timer>(due.clone()).await.unwrap(), 4);
    let found = store.list::<Timer>(due.limit(2)).await.unwrap();
    let found: Vec<Timer> = found.into_iter().map(|timer| timer.record).collect();
    assert_eq!(found, [timers[3].clone(), timers[2].clone()]);
    let pages = [0, 1, 2, u32::MAX].map(|page| Query::new().order_by("due").page(page, 3));
    let mut lengths = Vec::new();
    let mut together = Vec::new();
    for page in pages {
        let found = store.list::<Timer>(page).await.unwrap();
        lengths.push(found.len());
        together.extend(found.into_iter().map(|timer| timer.record));
    }
    assert_eq!((lengths, together), (vec![3, 2, 0, 0], timers.clone()));
    let all = Query::new().at_most("due", timers[3].due);
    let mut counted = store.count_by::<Timer>(all, ["name", "due"]).await.unwrap();
    counted.sort();
    let counts = timers[..4].iter().map(|timer| {
        let due = timer.due.timestamp_millis().to_string();
        ([Some("t".to_owned()), Some(due)], 1)
    });
    assert_eq!(counted, counts.collect::<Vec<_>>());
    let one = Query::new()
        .one_of("key", [timers[0].id, timers[4].id])
        .equal("name", "t");
    assert_eq!(store.list::<Timer>(one).await.unwrap().len(), 2);
    let unknown = store
        .list::<Timer>(Query::new().equal("colour", "red"))
        .await
        .unwrap_err();
    assert!(matches!(unknown, ReadError::UnknownColumn { .. }));
}

async fn a_value_with_quotes_is_only_a_value(bench: Bench) {
    let store = bench.open().await;
    let hostile = bench.timer("'; DROP TABLE timers; -- \" \\ \u{1F600}\n");
    store.commit(changes(|c| c.insert(&hostile))).await.unwrap();
    let found = store
        .list::<Timer>(Query::new().equal("name", hostile.name.as_str()))
        .await
        .unwrap();
    assert_eq!(found[0].record, hostile);
}

async fn a_zero_byte_is_kept_in_a_record_and_looked_for_as_another_letter(bench: Bench) {
    let store = bench.open().await;
    let (odd, known) = (bench.timer("a\0b"), item(&bench, "zero\0byte"));
    store
        .commit(changes(|c| c.insert(&odd).insert(&known)))
        .await
        .unwrap();
    let by_name = Query::new().equal("name", "a\0b");
    let found = store.list::<Timer>(by_name).await.unwrap();
    assert_eq!(found[0].record, odd);
    let items = store.list::<KnowledgeItem>(Query::new()).await.unwrap();
    assert_eq!(items[0].record, known);
}

fn filter(fill: impl FnOnce(&mut EventFilter)) -> EventFilter {
    let mut filter = EventFilter::default();
    fill(&mut filter);
    filter
}

async fn events_are_found_by_each_filter(bench: Bench) {
    let store = bench.open().await;
    for number in 0..6 {
        let event = if number < 3 {
            bench.skipped("task/b/T-1", "e")
        } else {
            bench.retry("task/b/T-2")
        };
        bench.clock.advance(std::time::Duration::from_secs(1));
        store.commit(changes(|c| c.emit(event))).await.unwrap();
    }
    let third = filter(|f| (f.after_sequence, f.limit) = (Some(2), Some(1)));
    let third = store.events(&third).await.unwrap().remove(0).event;
    let subject = Subject::parse("task/b/T-1").unwrap();
    let until = third.time + TimeDelta::seconds(2);
    let cases = [
        (filter(|f| f.after_sequence = Some(4)), vec![5, 6]),
        (filter(|f| f.before_sequence = Some(3)), vec![1, 2]),
        (
            filter(|f| (f.newest_first, f.limit) = (true, Some(2))),
            vec![6, 5],
        ),
        (
            filter(|f| f.pattern = Some(EventPattern::of("task.re*"))),
            vec![4, 5, 6],
        ),
        (filter(|f| f.subject = Some(subject)), vec![1, 2, 3]),
        (
            filter(|f| f.correlation = Some(third.correlationid)),
            vec![3],
        ),
        (
            filter(|f| (f.from, f.until) = (Some(third.time), Some(until))),
            vec![3, 4],
        ),
        (filter(|f| f.source = Some(name("nobody"))), vec![]),
    ];
    for (filter, expected) in cases {
        let found: Vec<i64> = store
            .events(&filter)
            .await
            .unwrap()
            .iter()
            .map(|event| event.sequence)
            .collect();
        assert_eq!(found, expected, "{filter:?}");
    }
    assert_eq!(store.last_sequence().await.unwrap(), 6);
}

async fn the_ids_of_events_and_chains_are_found_by_how_they_begin_or_end(bench: Bench) {
    let store = bench.open().await;
    let (first, second) = (bench.retry("task/b/T-1"), bench.retry("task/b/T-2"));
    let of_one_chain = Event {
        correlation_id: first.correlation_id,
        ..bench.retry("task/b/T-3")
    };
    let ids = [first.id, second.id, of_one_chain.id].map(|id| id.to_string());
    let chain = first.correlation_id.to_string();
    store
        .commit(changes(|c| c.emit(first).emit(second).emit(of_one_chain)))
        .await
        .unwrap();
    let found = async |key, part: &str| store.event_keys(key, part).await.unwrap();
    let (whole, end) = (ids[1].as_str(), &ids[1][28..]);
    for part in [whole, end] {
        assert_eq!(found(EventKey::Id, part).await, [whole], "{part}");
    }
    assert_eq!(found(EventKey::Id, &ids[0][..6]).await.len(), 3);
    assert_eq!(
        found(EventKey::Correlation, &chain[28..]).await,
        [chain.as_str()]
    );
    for absent in [&end[..7], "%", "_", "g"] {
        let named = found(EventKey::Id, absent).await;
        assert_eq!(named, [""; 0], "{absent}");
    }
}

pub(crate) async fn search(store: &Store, text: &str) -> Vec<String> {
    let found = store.search_knowledge(text, 10).await.unwrap();
    found.into_iter().map(|item| item.record.content).collect()
}

async fn the_search_follows_inserts_updates_and_deletes(bench: Bench) {
    let store = bench.open().await;
    let first = item(&bench, "Run migrations before the seed data");
    let second = item(&bench, "The lock file belongs to the manifest");
    store
        .commit(changes(|c| c.insert(&first).insert(&second)))
        .await
        .unwrap();
    assert_eq!(search(&store, "seed").await, [first.content.as_str()]);
    assert_eq!(
        search(&store, "MANIFEST nothing-else").await,
        [second.content.as_str()]
    );
    assert_eq!(
        search(&store, "locking").await.len(),
        2,
        "topics are searched too"
    );
    for hostile in [
        "\"",
        "AND OR NOT",
        "content:",
        "* ( ) ^",
        "a\" OR \"b",
        "NEAR(",
        "",
    ] {
        search(&store, hostile).await;
    }
    let changed = KnowledgeItem {
        content: "Seed last".to_owned(),
        ..first.clone()
    };
    store.commit(changes(|c| c.put(&changed))).await.unwrap();
    assert!(search(&store, "migrations").await.is_empty());
    assert_eq!(search(&store, "last").await, ["Seed last"]);
    let gone = store
        .list::<KnowledgeItem>(Query::new().equal("key", first.id))
        .await
        .unwrap()
        .remove(0);
    store.commit(changes(|c| c.delete(&gone))).await.unwrap();
    assert!(search(&store, "last").await.is_empty());
}

on_each_database! {
    a_zero_byte_is_kept_in_a_record_and_looked_for_as_another_letter,
    a_list_is_filtered_ordered_and_limited,
    a_value_with_quotes_is_only_a_value,
    events_are_found_by_each_filter,
    the_ids_of_events_and_chains_are_found_by_how_they_begin_or_end,
    the_search_follows_inserts_updates_and_deletes,
}
