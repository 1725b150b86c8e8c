//! Lines over the API: shown with what they are of, and commented on as of that alone.

use ropewalk_schemas::CommitId;
use ropewalk_schemas::build::BuildState;
use serde_json::{Value, json};

use crate::world::{ADA, ServerWorld, answered};

/// A comment on the line that is new in the difference, and one on the line that is gone.
fn said() -> Value {
    json!([
        { "file": "walks.txt", "side": "new", "line": 4, "text": "say which" },
        { "file": "walks.txt", "side": "old", "line": 4, "text": "why did it go?" },
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn comments_on_lines_of_a_build_are_one_request_for_a_revision() {
    let world = ServerWorld::new().await;
    let (spec, _) = world.specified().await;
    let build = world.built().await;
    let head = CommitId::parse(&"a".repeat(40)).unwrap();
    let now = world.services.clock.now();
    world
        .change(build, |build| {
            build.spec = spec;
            build.head = Some(head.clone());
            build.state = BuildState::Succeeded;
            build.completed_at = Some(now);
        })
        .await;
    let lines = world.read(&format!("/api/builds/{build}/lines")).await;
    assert_eq!(lines["of"], json!(head));
    assert_eq!(lines["files"][0]["file"], "walks.txt");
    let path = format!("/api/builds/{build}/comments");
    let before = world.rows().await;
    let refusals = [
        (json!({ "of": "b".repeat(40), "comments": said() }), 409),
        (json!({ "of": "b", "comments": said() }), 400),
        (json!({ "of": head, "comments": [] }), 400),
        (
            json!({ "of": head, "comments": [{ "file": "walks.txt", "side": "new", "line": 40, "text": "x" }] }),
            400,
        ),
        (json!({ "of": head, "comments": said(), "more": 1 }), 400),
    ];
    for (body, status) in refusals {
        let refused = world.send(&path, &body).await;
        assert_eq!(refused.status, status, "{body}: {}", refused.text);
    }
    let nobody = answered(world.ask("POST", &path, "unknown").json(&json!({}))).await;
    assert_eq!(nobody.status, 401, "{}", nobody.text);
    assert_eq!(world.rows().await, before);
    let body = json!({ "of": head, "comments": said() });
    let sent = world.send(&path, &body).await;
    assert_eq!((sent.status, &sent.body["spec"]), (202, &json!(spec)));
    let asked = world.read(&format!("/api/specifications/{spec}")).await;
    assert_eq!(asked["state"], "draft");
    let told = asked["feedback"][0].as_str().unwrap();
    assert!(told.contains("- `walks.txt`, removed line 4"), "{told}");
    assert_eq!(world.events("spec.revision_requested").await.len(), 1);
    let missing = answered(world.ask("GET", "/api/specifications/x/lines", ADA)).await;
    assert_eq!(missing.status, 404, "{}", missing.text);
    world.stop().await;
}
