//! Times that stand in the midst of words, and who is named there.

use ropewalk_schemas::alert::Alert;
use ropewalk_schemas::outage::Outage;
use ropewalk_schemas::task::{Task, TaskState, WaitReason};
use ropewalk_schemas::{BuildId, ContentHash, TaskId};
use ropewalk_store::{ChangeSet, task_key};
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

/// Changes a task.
async fn change(world: &ServerWorld, build: BuildId, id: &str, change: impl FnOnce(&mut Task)) {
    let key = task_key(build, &TaskId::parse(id).unwrap());
    let found = world.services.store.get::<Task>(&key).await.unwrap();
    let mut after = found.unwrap().into_inner();
    change(&mut after);
    let mut changes = ChangeSet::new();
    changes.put(&after);
    world.services.store.commit(changes).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_tells_since_when_it_waits_and_who_left_it_out() {
    let world = ServerWorld::new().await;
    let build = world.built().await;
    let since = world.services.clock.now();
    world.task(build, "T-1", TaskState::Waiting).await;
    change(&world, build, "T-1", |task| {
        task.waiting_for = Some(WaitReason::Lock);
        task.waiting_since = Some(since);
        task.reason = Some("waits for `src/walks.rs`".to_owned());
    })
    .await;
    world.task(build, "T-2", TaskState::Skipped).await;
    change(&world, build, "T-2", |task| {
        task.skipped_by = Some("ada".to_owned());
        task.reason = Some("nobody wants it".to_owned());
    })
    .await;
    let browser = Browser::new(&world).await;
    let day = since.format("%Y-%m-%dT%H:%M:%SZ");
    let waits = format!("(waiting since <time datetime=\"{day}\">");
    let skipped = "skipped by ada: nobody wants it".to_owned();
    for (task, told) in [("T-1", &waits), ("T-2", &skipped)] {
        for path in [
            format!("/builds/{build}"),
            format!("/builds/{build}/tasks/{task}"),
        ] {
            let page = browser.read(&path).await.text;
            assert!(page.contains(told), "{path}: {page}");
        }
    }
    let shown = world.read(&format!("/api/tasks/{build}/T-1")).await;
    assert_eq!(shown["waiting_since"], json!(since), "{shown}");
    let shown = world.read(&format!("/api/tasks/{build}/T-2")).await;
    assert_eq!(shown["skipped_by"], "ada", "{shown}");
    world.stop().await;
}
