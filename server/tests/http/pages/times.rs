//! Times that stand in the midst of words.

use ropewalk_schemas::ContentHash;
use ropewalk_schemas::alert::Alert;
use ropewalk_schemas::outage::Outage;
use ropewalk_store::ChangeSet;
use serde_json::json;

use crate::browser::Browser;
use crate::world::ServerWorld;

#[tokio::test(flavor = "multi_thread")]
async fn a_time_in_the_midst_of_words_is_one_of_the_reader() {
    let world = ServerWorld::new().await;
    let begun = json!({ "text": "Walks", "slug": "walks" });
    let begun = world.send("/api/ideation/sessions", &begun).await;
    assert_eq!(begun.status, 201, "{}", begun.text);
    let build = world.built().await;
    let outage: Outage = serde_json::from_value(json!({
        "provider": "scripted", "class": { "kind": "unavailable" }, "since": "2026-03-01T08:00:00Z",
        "last_error": "nothing is heard", "probes": 1, "probe_at": "2026-03-01T08:05:00Z",
    }))
    .unwrap();
    let alert: Alert = serde_json::from_value(json!({
        "cause": "provider/scripted", "severity": "error", "message": outage.in_words(), "escalations": 0,
        "raised_at": world.services.clock.now(),
    }))
    .unwrap();
    let mut changes = ChangeSet::new();
    changes.insert(&outage).insert(&alert);
    world.services.store.commit(changes).await.unwrap();
    let browser = Browser::new(&world).await;
    let since = "is away since <time datetime=\"2026-03-01T08:00:00Z\">2026-03-01 08:00 UTC</time>";
    let again = "looked at again at <time datetime=\"2026-03-01T08:05:00Z\">";
    let path = format!("/builds/{build}");
    for (path, told) in [
        ("/", again),
        ("/builds", again),
        (&path, again),
        ("/running", since),
    ] {
        let page = browser.read(path).await.text;
        assert!(
            page.contains(since) && page.contains(told),
            "{path}: {page}"
        );
    }

    // A refusal tells them so, too.
    let proof = browser.proof().await;
    let spec = world.specification().await;
    let approve = format!("/specifications/{spec}/approve");
    let hash = ContentHash::of(b"new").to_string();
    let fields = [("hash", hash.as_str()), ("priority", "5")];
    let first = browser.send(&approve, &fields, Some(&proof)).await;
    assert_eq!(first.status, 303, "{}", first.text);
    let second = browser.send(&approve, &fields, Some(&proof)).await;
    assert_eq!(second.status, 409, "{}", second.text);
    for told in [
        "already approved by ada at <time datetime=",
        "/static/times.js",
    ] {
        assert!(second.text.contains(told), "no {told}: {}", second.text);
    }
    world.stop().await;
}
