//! What went wrong is seen, replayed and given up over requests as on a terminal.

use chrono::DateTime;
use ropewalk_schemas::ComponentName;
use ropewalk_schemas::alert::{Alert, Severity};
use ropewalk_store::{ChangeSet, DeliveryFilter, DeliveryState, Outcome, Subscription};
use serde_json::json;

use crate::browser::Browser;
use crate::world::{ADA, BOB, ServerWorld, answered};

#[tokio::test(flavor = "multi_thread")]
async fn who_saw_an_alert_first_is_kept_and_the_second_hears_so() {
    let world = ServerWorld::new().await;
    let mut changes = ChangeSet::new();
    changes.insert(&Alert {
        cause: "component/loop-1".to_owned(),
        severity: Severity::Error,
        message: "`loop-1` is silent".to_owned(),
        build: None,
        raised_at: DateTime::UNIX_EPOCH,
        escalations: 0,
        acknowledged: None,
        cleared_at: None,
    });
    world.services.store.commit(changes).await.unwrap();
    let ack = "/api/alerts/ack";
    let bob = answered(
        world
            .ask("POST", ack, BOB)
            .json(&json!({ "cause": "component/loop-1" })),
    )
    .await;
    assert_eq!(
        (bob.status, &bob.body["acknowledged"]["by"]),
        (200, &json!("bob")),
        "{}",
        bob.text
    );
    let ada = world
        .send(ack, &json!({ "cause": "component/loop-1" }))
        .await;
    assert_eq!((ada.status, &ada.body["code"]), (409, &json!("alert")));
    let none = world.send(ack, &json!({ "cause": "flood" })).await;
    assert_eq!(
        (none.status, &none.body["code"]),
        (404, &json!("unknown-id"))
    );
    let listed = world.read("/api/alerts").await;
    assert_eq!(listed["items"][0]["acknowledged"]["by"], "bob");
    world.stop().await;
}

/// Lets `waits` fail on the first event for good, and names its dead letter.
pub(crate) async fn dead_letter(world: &ServerWorld) -> String {
    let store = &world.services.store;
    let subscriber = ComponentName::parse("waits").unwrap();
    let subscription = Subscription::new(subscriber, ["ideation.message"]);
    store.subscribe(&subscription).await.unwrap();
    let begun = world
        .send("/api/ideation/sessions", &json!({ "text": "Walks" }))
        .await;
    assert_eq!(begun.status, 201, "{}", begun.text);
    die(world).await
}

/// Lets the delivery fail for good, and names it.
pub(crate) async fn die(world: &ServerWorld) -> String {
    let store = &world.services.store;
    let open = store.deliveries(&DeliveryFilter::default()).await.unwrap();
    let key = open[0].key.clone();
    let mut changes = ChangeSet::new();
    let error = "no such file".to_owned();
    changes.close(&key, Outcome::Dead { error });
    store.commit(changes).await.unwrap();
    key.to_string()
}

pub(crate) async fn state(world: &ServerWorld) -> DeliveryState {
    let store = &world.services.store;
    let rows = store.deliveries(&DeliveryFilter::default()).await.unwrap();
    rows[0].state
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_is_shown_handled_again_and_given_up() {
    let world = ServerWorld::new().await;
    let path = format!("/api/dead-letters/{}", dead_letter(&world).await);
    let listed = world.read("/api/dead-letters").await;
    assert_eq!(
        (&listed["items"][0]["state"], &listed["items"][0]["error"]),
        (&json!("dead"), &json!("no such file"))
    );
    let shown = world.read(&path).await;
    assert_eq!(shown["content"]["type"], "ideation.message");
    let replay = format!("{path}/replay");
    let replayed = answered(world.ask("POST", &replay, ADA)).await;
    assert_eq!(replayed.status, 204, "{}", replayed.text);
    assert_eq!(state(&world).await, DeliveryState::Open);
    let again = answered(world.ask("POST", &replay, ADA)).await;
    assert_eq!(
        (again.status, &again.body["code"]),
        (404, &json!("unknown-id"))
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_that_is_given_up_is_listed_no_more() {
    let world = ServerWorld::new().await;
    let path = format!("/api/dead-letters/{}", dead_letter(&world).await);
    for verb in ["replay", "discard"] {
        let refused = answered(world.ask("POST", &format!("{path}/{verb}"), BOB)).await;
        assert_eq!(refused.status, 403, "{}", refused.text);
        assert_eq!(state(&world).await, DeliveryState::Dead);
    }
    let given_up = answered(world.ask("POST", &format!("{path}/discard"), ADA)).await;
    assert_eq!(given_up.status, 204, "{}", given_up.text);
    assert_eq!(state(&world).await, DeliveryState::Discarded);
    let store = &world.services.store;
    let rows = store.deliveries(&DeliveryFilter::default()).await.unwrap();
    let error = rows[0].error.as_deref();
    assert_eq!(error, Some("given up by ada: no such file"));
    assert_eq!(world.read("/api/dead-letters").await["items"], json!([]));
    for path in [
        "/api/dead-letters/1/x/replay",
        "/api/dead-letters/x/y/discard",
    ] {
        let none = answered(world.ask("POST", path, ADA)).await;
        assert_eq!(none.status, 404, "{path}: {}", none.text);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_handled_is_told_where_people_look() {
    let world = ServerWorld::new().await;
    let key = dead_letter(&world).await;
    let browser = Browser::new(&world).await;
    let board = browser.read("/").await.text;
    assert!(board.contains("something could not be handled"), "{board}");
    assert!(!board.contains("goes on when you say more"), "{board}");
    let link = format!("href=\"/dead-letters/{key}\"");
    let idea = browser.read("/ideas/walks").await.text;
    assert!(
        idea.contains(&link) && idea.contains("no such file"),
        "{idea}"
    );
    let running = browser.read("/running").await.text;
    assert!(
        running.contains(&link) && !running.contains("Nothing is wrong"),
        "{running}"
    );
    let shown = world.read("/api/ideation/sessions/walks").await;
    assert_eq!(shown["unhandled"][0]["id"], json!(key));
    let replay = format!("/dead-letters/{key}/replay");
    let proof = browser.proof().await;
    let replayed = browser.send(&replay, &[], Some(&proof)).await;
    assert_eq!(replayed.status, 303, "{}", replayed.text);
    let idea = browser.read("/ideas/walks").await.text;
    assert!(!idea.contains(&link), "{idea}");
    let running = browser.read("/running").await.text;
    assert!(running.contains("Nothing is wrong"), "{running}");
    world.stop().await;
}
