//! What the models of a build said and did, and what that cost.

use ropewalk_schemas::attempt::Attempt;
use ropewalk_schemas::job_event::Passage;
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::task::TaskState;
use ropewalk_schemas::{AttemptId, BuildId, CommitId};
use ropewalk_store::ChangeSet;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::world::{ADA, ServerWorld, answered};

/// Records a call that a build made.
fn call(build: BuildId, turn: u32, provider: &str, micro_usd: Option<u64>) -> ModelCall {
    let call = json!({
        "key": format!("attempt/{build}/T-1/1/{turn}"), "role": "build", "model": "m", "provider": provider,
        "build": build, "task": "T-1", "idea": "walks", "at": "2026-03-01T08:00:00Z",
        "reply": { "blocks": [{ "text": "Words." }], "stop": "end_turn", "usage": {}, "model": "m" },
        "input_tokens": 100, "output_tokens": 10, "cache_read_tokens": 25, "micro_usd": micro_usd,
    });
    serde_json::from_value(call).unwrap()
}

fn attempt(build: BuildId, id: AttemptId) -> Attempt {
    let attempt = json!({
        "id": id, "build": build, "task": "T-1", "number": 1, "loop_name": "loop-1", "state": "working",
        "token": 1, "base": CommitId::parse(&"a".repeat(40)).unwrap(), "tokens": 0,
        "started_at": "2026-03-01T08:00:00Z",
    });
    serde_json::from_value(attempt).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_say_what_the_use_of_models_says() {
    let world = ServerWorld::new().await;
    let build = world.built().await;
    let mut changes = ChangeSet::new();
    changes.insert(&call(build, 1, "first", Some(7)));
    changes.insert(&call(build, 2, "first", None));
    changes.insert(&call(build, 3, "a \"quoted\" one", Some(1)));
    world.services.store.commit(changes).await.unwrap();
    let usage = world.read("/api/usage").await;
    let metrics = answered(world.bare("GET", "/metrics")).await;
    assert_eq!(metrics.status, 200);
    let rows = usage["items"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        let model = row["key"].as_str().unwrap().replace('"', "\\\"");
        for (name, field) in [
            ("calls", "calls"),
            ("input_tokens", "input_tokens"),
            ("output_tokens", "output_tokens"),
            ("cache_read_tokens", "cache_read_tokens"),
            ("cache_write_tokens", "cache_write_tokens"),
        ] {
            let line = format!(
                "\nropewalk_model_{name}_total{{model=\"{model}\"}} {}\n",
                row[field]
            );
            assert!(metrics.text.contains(&line), "{line}{}", metrics.text);
        }
    }
    for line in [
        "ropewalk_model_cost_micro_usd_total{model=\"first/m\"} 7",
        "ropewalk_model_unpriced_calls_total{model=\"first/m\"} 1",
    ] {
        assert!(metrics.text.contains(line), "{line}\n{}", metrics.text);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_models_used_is_summed_by_what_is_asked_for() {
    let world = ServerWorld::new().await;
    let build = world.built().await;
    let mut changes = ChangeSet::new();
    changes.insert(&call(build, 1, "first", Some(7)));
    changes.insert(&call(build, 2, "second", None));
    world.services.store.commit(changes).await.unwrap();
    let rows = |list: &Value| -> Vec<Value> {
        let rows = list["items"].as_array().unwrap().iter();
        rows.map(|row| {
            json!([
                row["key"],
                row["calls"],
                row["cache_hit_rate"],
                row["micro_usd"]
            ])
        })
        .collect()
    };
    assert_eq!(
        rows(&world.read("/api/usage").await),
        [
            json!(["first/m", 1, 0.25, 7]),
            json!(["second/m", 1, 0.25, null])
        ]
    );
    for (by, key) in [
        ("idea", json!("walks")),
        ("build", json!(build)),
        ("day", json!("2026-03-01")),
    ] {
        let sums = world.read(&format!("/api/usage?by={by}")).await;
        assert_eq!(rows(&sums), [json!([key, 2, 0.25, null])], "{by}");
    }
    let other = world.read("/api/usage?idea=rivers").await;
    assert_eq!(other["items"], json!([]));
    for wrong in ["by=week", "build=x", "idea=X", "whose=mine"] {
        let asked = world.ask("GET", &format!("/api/usage?{wrong}"), ADA);
        let refused = answered(asked).await;
        assert_eq!(
            (refused.status, &refused.body["code"]),
            (400, &json!("usage")),
            "{wrong}"
        );
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_transcript_of_a_build_is_read_page_by_page() {
    let world = ServerWorld::new().await;
    let build = world.built().await;
    let path = format!("/api/builds/{build}/transcript");
    assert_eq!(world.read(&path).await["items"], json!([]));
    let attempt = attempt(build, AttemptId(world.services.ids.next()));
    let mut changes = ChangeSet::new();
    changes.insert(&attempt);
    world.services.store.commit(changes).await.unwrap();
    let passage = |turn: u32| json!({ "attempt": attempt.id, "task": "T-1", "at": "2026-03-01T08:00:01Z", "kind": "turn_started", "turn": turn });
    let file = world.state().join(Passage::file(attempt.id));
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    // The last line is still being written.
    let lines = format!("{}\n{}\n{{\"att", passage(1), passage(2));
    std::fs::write(&file, lines).unwrap();
    let first = world.read(&format!("{path}?limit=1")).await;
    assert_eq!(first["items"], json!([passage(1)]));
    let next = first["next"].as_str().unwrap();
    let second = world.read(&format!("{path}?limit=1&cursor={next}")).await;
    assert_eq!(second, json!({ "items": [passage(2)], "next": null }));
    let nowhere = format!("/api/builds/{}/transcript", world.services.ids.next());
    assert_eq!(answered(world.ask("GET", &nowhere, ADA)).await.status, 404);
    assert_eq!(answered(world.bare("GET", &path)).await.status, 401);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_and_done_last_stands_on_the_page_of_its_task_and_all_of_it_on_its_own() {
    let world = ServerWorld::new().await;
    let build = world.built().await;
    world.task(build, "T-1", TaskState::Ready).await;
    let attempt = attempt(build, AttemptId(world.services.ids.next()));
    let mut changes = ChangeSet::new();
    changes.insert(&attempt);
    world.services.store.commit(changes).await.unwrap();
    let file = world.state().join(Passage::file(attempt.id));
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let line = |event: Value| {
        let mut passage =
            json!({ "attempt": attempt.id, "task": "T-1", "at": "2026-03-01T08:00:01Z" });
        let fields = passage.as_object_mut().unwrap();
        fields.extend(event.as_object().unwrap().clone());
        format!("{passage}\n")
    };
    let call = |number: u32| {
        line(
            json!({ "kind": "tool_started", "item": format!("call-{number}"), "name": "bash",
            "input": { "command": format!("echo <b>{number}</b>") } }),
        )
    };
    let calls: Vec<String> = (1..=50).map(call).collect();
    let edited = json!({ "kind": "file_changed", "item": "call-50", "path": "a.txt", "difference": "@@ -1 +1 @@\n-old\n+<i>new" });
    std::fs::write(&file, calls.concat() + &line(edited)).unwrap();
    let browser = Browser::new(&world).await;
    let path = format!("/builds/{build}/tasks/T-1");
    let page = browser.read(&path).await.text;
    let all = format!("{path}/attempts/{}", attempt.id);
    for shown in [
        "echo &#60;b&#62;50&#60;/b&#62;",
        "changed a.txt",
        "<span class=\"added\">+&#60;i&#62;new</span>",
        &format!("href=\"{all}\""),
        &format!("data-step=\"{}/call-50\"", attempt.id),
    ] {
        assert!(page.contains(shown), "no {shown}: {page}");
    }
    // The last forty of them.
    assert!(page.contains("echo &#60;b&#62;11&#60;") && !page.contains("echo &#60;b&#62;10&#60;"));
    let page = browser.read(&all).await.text;
    assert!(page.contains("echo &#60;b&#62;1&#60;") && page.contains("changed a.txt"));
    let page = browser.read(&format!("/builds/{build}")).await.text;
    assert!(
        !page.contains("data-now"),
        "nobody is at a task that is ready: {page}"
    );
    world.task(build, "T-1", TaskState::Working).await;
    let page = browser.read(&format!("/builds/{build}")).await.text;
    assert!(page.contains(">changed a.txt</span>"), "{page}");
    let nowhere = format!("{path}/attempts/{}", world.services.ids.next());
    assert_eq!(browser.read(&nowhere).await.status, 404);
    world.stop().await;
}
