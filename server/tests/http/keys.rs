//! What is asked again under the same key is done once.

use serde_json::json;

use crate::house::{ADA, BOB, House, answered};

const IDEAS: &str = "/api/ideation/sessions";

#[tokio::test(flavor = "multi_thread")]
async fn a_key_used_again_is_answered_as_before_and_with_another_body_refused() {
    let house = House::new().await;
    let ask = |token: &str, key: &str, text: &str| {
        house
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
    let before = house.rows().await;
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
    assert_eq!(house.rows().await, before);
    // A key belongs to the person.
    assert_eq!(answered(ask(BOB, "one", "Lakes")).await.status, 201);
    assert_eq!(house.rows().await.0.len(), before.0.len() + 2);
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_the_same_asked_twice_at_once_one_thing_comes() {
    let house = House::new().await;
    let ask = || {
        let request = house.ask("POST", IDEAS, ADA);
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
    let ideas = house.read(IDEAS).await;
    assert_eq!(ideas["items"].as_array().unwrap().len(), 1);
    house.stop().await;
}
