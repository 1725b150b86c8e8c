//! What came of builds is listed, and read one by one.

use chrono::TimeDelta;
use ropewalk_schemas::review::Review;
use ropewalk_store::ChangeSet;
use serde_json::{Value, json};

use crate::world::{ADA, ServerWorld, answered};

/// Stores the review of a build of `idea`, made so many hours from now; returns it as it is written.
async fn reviewed(world: &ServerWorld, idea: &str, hours: i64) -> Value {
    let ids = &world.services.ids;
    let at = world.services.clock.now() + TimeDelta::hours(hours);
    let review: Review = serde_json::from_value(json!({
        "id": ids.next(), "kind": "build", "idea": idea, "build": ids.next(), "at": at,
        "divergences": [{ "class": "missed-requirement", "requirement": "FR-6", "planned": "help names both",
            "actual": "it names one" }],
    }))
    .unwrap();
    let mut changes = ChangeSet::new();
    changes.insert(&review);
    world.services.store.commit(changes).await.unwrap();
    json!(review)
}

#[tokio::test(flavor = "multi_thread")]
async fn reviews_are_listed_the_newest_first_by_idea_and_page_by_page() {
    let world = ServerWorld::new().await;
    let nothing = json!({ "items": [], "next": null });
    assert_eq!(world.read("/api/reviews").await, nothing);
    let oldest = reviewed(&world, "walks", 0).await;
    let newest = reviewed(&world, "lakes", 2).await;
    let between = reviewed(&world, "walks", 1).await;
    for (query, items) in [
        ("", vec![&newest, &between, &oldest]),
        ("?idea=walks", vec![&between, &oldest]),
        ("?idea=rivers", Vec::new()),
    ] {
        let listed = world.read(&format!("/api/reviews{query}")).await;
        let expected = json!({ "items": items, "next": null });
        assert_eq!(listed, expected, "{query}");
    }
    let first = world.read("/api/reviews?limit=2").await;
    let expected = json!({ "items": [newest, between], "next": between["id"] });
    assert_eq!(first, expected);
    let cursor = first["next"].as_str().unwrap();
    let second = world.read(&format!("/api/reviews?cursor={cursor}")).await;
    assert_eq!(second, json!({ "items": [oldest], "next": null }));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_is_shown_by_its_id_to_who_is_logged_in_and_what_is_none_leads_to_the_list() {
    let world = ServerWorld::new().await;
    let review = reviewed(&world, "walks", 0).await;
    let path = format!("/api/reviews/{}", review["id"].as_str().unwrap());
    let shown = world.read(&path).await;
    assert_eq!(
        (&shown["id"], &shown["divergences"], &shown["lessons"]),
        (&review["id"], &review["divergences"], &json!([]))
    );
    for path in ["/api/reviews", path.as_str()] {
        let stranger = answered(world.ask("GET", path, "")).await;
        assert_eq!(stranger.status, 401, "{path}: {}", stranger.text);
    }
    let other = format!("/api/reviews/{}", uuid::Uuid::nil());
    let none = answered(world.ask("GET", &other, ADA)).await;
    assert_eq!(
        (none.status, &none.body["next"]),
        (404, &json!("`GET /api/reviews` shows what there is"))
    );
    for query in ["idea=../x", "limit=0", "cursor=x", "state=open"] {
        let refused = answered(world.ask("GET", &format!("/api/reviews?{query}"), ADA)).await;
        assert_eq!(
            (refused.status, &refused.body["code"]),
            (400, &json!("usage")),
            "{query}: {}",
            refused.text
        );
    }
    world.stop().await;
}
