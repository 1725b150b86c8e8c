//! What is asked again under the same key is done once.

use std::time::Duration;

use ropewalk_runtime::Clock;
use ropewalk_schemas::ComponentName;
use ropewalk_schemas::idea::Idea;
use ropewalk_schemas::keyed_request::KeyedRequest;
use ropewalk_store::{ChangeSet, Query, Subscription};
use serde_json::json;

use crate::troubles::die;
use crate::world::{ADA, Answer, BOB, ServerWorld, answered};

const IDEAS: &str = "/api/ideation/sessions";

/// Begins an idea as ada, under `key`.
async fn begin(world: &ServerWorld, key: &str, text: &str) -> Answer {
    let request = world.ask("POST", IDEAS, ADA).header("Idempotency-Key", key);
    answered(request.json(&json!({ "text": text }))).await
}

async fn ideas(world: &ServerWorld) -> usize {
    let ideas = world.services.store.list::<Idea>(Query::new()).await;
    ideas.unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_stands_for_a_day_and_through_a_start_and_no_longer() {
    let clock = Clock::manual(Clock::system().now());
    let world = ServerWorld::at(&clock).await;
    let first = begin(&world, "one", "Walks").await;
    assert_eq!(first.status, 201, "{}", first.text);
    let world = world.again().await;
    let again = begin(&world, "one", "Walks").await;
    assert_eq!((again.status, &again.body), (201, &first.body));
    assert_eq!(again.headers["idempotency-replayed"], "true");
    clock.advance(Duration::from_secs(24 * 60 * 60 - 1));
    let late = begin(&world, "one", "Walks").await;
    assert_eq!((late.status, &late.body), (201, &first.body));
    assert_eq!(ideas(&world).await, 1);
    clock.advance(Duration::from_secs(2));
    let new = begin(&world, "one", "Rivers").await;
    assert_eq!(
        (new.status, &new.body["slug"]),
        (201, &json!("rivers")),
        "{}",
        new.text
    );
    assert!(!new.headers.contains_key("idempotency-replayed"));
    assert_eq!(ideas(&world).await, 2);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_whose_request_died_in_between_says_so_and_does_nothing_again() {
    let clock = Clock::manual(Clock::system().now());
    let world = ServerWorld::at(&clock).await;
    assert_eq!(begin(&world, "one", "Walks").await.status, 201);
    // What a program leaves that dies before it has kept the answer.
    let store = &world.services.store;
    let known = store.list::<KeyedRequest>(Query::new()).await.unwrap();
    let mut open = known[0].record.clone();
    open.answer = None;
    let mut changes = ChangeSet::new();
    changes.update(&known[0], &open);
    store.commit(changes).await.unwrap();
    let world = world.again().await;
    let before = world.rows().await;
    for (text, told) in [
        ("Walks", "how it ended is not known"),
        ("Rivers", "something else was asked under the same key"),
    ] {
        let refused = begin(&world, "one", text).await;
        assert_eq!(
            (refused.status, refused.body["code"].as_str()),
            (409, Some("idempotency"))
        );
        assert!(refused.text.contains(told), "{}", refused.text);
    }
    assert_eq!(world.rows().await, before);
    // Nobody is kept from it for ever.
    clock.advance(Duration::from_hours(25));
    assert_eq!(begin(&world, "one", "Rivers").await.status, 201);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_under_which_the_store_took_nothing_is_free_again() {
    let world = ServerWorld::new().await;
    let store = &world.services.store;
    for number in 0..100 {
        let subscriber = ComponentName::parse(&format!("waits-{number}")).unwrap();
        let subscription = Subscription::new(subscriber, ["ideation.message"]);
        store.subscribe(&subscription).await.unwrap();
    }
    // As many deliveries are open as may be.
    world.many(500, "waits").await;
    for _ in 0..2 {
        let refused = begin(&world, "one", "Walks").await;
        assert_eq!(
            (refused.status, &refused.body["code"]),
            (503, &json!("store")),
            "{}",
            refused.text
        );
    }
    die(&world).await;
    let begun = begin(&world, "one", "Walks").await;
    assert_eq!(begun.status, 201, "{}", begun.text);
    let again = begin(&world, "one", "Walks").await;
    assert_eq!((again.status, &again.body), (201, &begun.body));
    assert_eq!(ideas(&world).await, 1);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_used_again_is_answered_as_before_and_with_another_body_refused() {
    let world = ServerWorld::new().await;
    let ask = |token: &str, key: &str, text: &str| {
        world
            .ask("POST", IDEAS, token)
            .header("Idempotency-Key", key)
            .json(&json!({ "text": text }))
    };
    let first = answered(ask(ADA, "one", "Walks")).await;
    let again = answered(ask(ADA, "one", "Walks")).await;
    assert_eq!((first.status, again.status), (201, 201), "{}", again.text);
    assert_eq!(first.body, again.body);
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert!(!first.headers.contains_key("idempotency-replayed"));
    let before = world.rows().await;
    let other = answered(ask(ADA, "one", "Rivers")).await;
    assert_eq!(
        (other.status, other.body["code"].as_str()),
        (409, Some("idempotency"))
    );
    // A refusal is an answer too.
    let refused = answered(ask(ADA, "two", " ")).await;
    let still = answered(ask(ADA, "two", " ")).await;
    assert_eq!((refused.status, &refused.body), (400, &still.body));
    assert_eq!(still.headers["content-type"], "application/problem+json");
    for key in ["", &"k".repeat(256)] {
        assert_eq!(answered(ask(ADA, key, "Walks")).await.status, 400, "{key}");
    }
    assert_eq!(world.rows().await, before);
    // A key belongs to the person.
    assert_eq!(answered(ask(BOB, "one", "Lakes")).await.status, 201);
    let after = world.rows().await;
    for table in ["ideas", "sessions", "messages"] {
        assert_eq!(after[table].len(), before[table].len() + 1, "{table}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_the_same_asked_twice_at_once_one_thing_comes() {
    let world = ServerWorld::new().await;
    let ask = || {
        let request = world.ask("POST", IDEAS, ADA);
        answered(
            request
                .header("Idempotency-Key", "once")
                .json(&json!({ "text": "Walks" })),
        )
    };
    let answers = futures::future::join_all((0..8).map(|_| ask())).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    statuses.dedup();
    assert!(statuses == [201] || statuses == [201, 409], "{statuses:?}");
    let ideas = world.read(IDEAS).await;
    assert_eq!(ideas["items"].as_array().unwrap().len(), 1);
    world.stop().await;
}
