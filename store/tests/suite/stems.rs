//! The search finds other forms of a word, also in what an earlier version of the program knew.

use ropewalk_schemas::knowledge::KnowledgeItem;
use ropewalk_store::Record;

use crate::reading::{item, search};
use crate::support::{Bench, changes};

/// The last change of the tables before words had stems.
const BEFORE_STEMS: i64 = 11;

const LOCK: &str = "Take the lock before the indexes are created";
const OTHER: &str = "The manifest names every dependency";

fn known(bench: &Bench, content: &str) -> KnowledgeItem {
    KnowledgeItem {
        topics: Vec::new(),
        ..item(bench, content)
    }
}

async fn other_forms_of_a_word_are_found(bench: Bench) {
    let store = bench.open().await;
    let (lock, other) = (known(&bench, LOCK), known(&bench, OTHER));
    store
        .commit(changes(|c| c.insert(&lock).insert(&other)))
        .await
        .unwrap();
    for (asked, expected) in [
        ("locking", vec![LOCK]),
        ("LOCKED", vec![LOCK]),
        ("index", vec![LOCK]),
        ("creating", vec![LOCK]),
        ("dependencies", vec![OTHER]),
        ("named manifests", vec![OTHER]),
        // No word is too frequent to be looked for.
        ("the", vec![LOCK, OTHER]),
        ("block", Vec::new()),
        ("independent", Vec::new()),
    ] {
        let mut found = search(&store, asked).await;
        found.sort();
        assert_eq!(found, expected, "{asked}");
    }
}

/// Makes the tables of the version before, with an item in them.
async fn make_as_before(bench: &Bench, item: &KnowledgeItem) {
    bench.make_tables(BEFORE_STEMS).await;
    let columns = [
        ("kind", "gotcha"),
        ("state", "candidate"),
        ("updated_at", "0"),
    ];
    let body = serde_json::to_string(item).unwrap();
    bench.lay("knowledge", &item.key(), &columns, &body).await;
}

async fn what_was_known_before_is_found_by_its_stems_and_goes_on(bench: Bench) {
    let lock = known(&bench, LOCK);
    make_as_before(&bench, &lock).await;
    let store = bench.open().await;
    assert_eq!(search(&store, "locking").await, [LOCK]);
    let row = store.get::<KnowledgeItem>(&lock.key()).await.unwrap();
    let row = row.unwrap();
    assert_eq!((row.version, &row.record), (1, &lock));
    // It changes and goes as ever.
    let changed = KnowledgeItem {
        content: OTHER.to_owned(),
        ..lock
    };
    store
        .commit(changes(|c| c.update(&row, &changed)))
        .await
        .unwrap();
    assert_eq!(search(&store, "locking").await, Vec::<String>::new());
    assert_eq!(search(&store, "dependencies").await, [OTHER]);
    let row = store.get::<KnowledgeItem>(&changed.key()).await.unwrap();
    store
        .commit(changes(|c| c.delete(&row.unwrap())))
        .await
        .unwrap();
    assert_eq!(search(&store, "dependencies").await, Vec::<String>::new());
}

on_each_database! {
    other_forms_of_a_word_are_found,
    what_was_known_before_is_found_by_its_stems_and_goes_on,
}
