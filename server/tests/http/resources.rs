//! What the terminal shows and does, requests show and do.

mod reviews;
mod verbs;

use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::question::{Answer, Question, QuestionKind, QuestionState};
use ropewalk_schemas::task::TaskState;
use ropewalk_schemas::wish::{BranchWish, Wish};
use ropewalk_schemas::{ChoiceId, ContentHash};
use ropewalk_store::ChangeSet;
use serde_json::{Value, json};

use crate::world::{ADA, BOB, ServerWorld, answered};

#[tokio::test(flavor = "multi_thread")]
async fn an_idea_is_begun_talked_about_and_given_up_by_who_may() {
    let world = ServerWorld::new().await;
    let begun = world
        .send(
            "/api/ideation/sessions",
            &json!({ "text": "Walks of mine", "slug": "walks", "kind": "tool" }),
        )
        .await;
    assert_eq!((begun.status, &begun.body["slug"]), (201, &json!("walks")));
    let taken = world
        .send(
            "/api/ideation/sessions",
            &json!({ "text": "Other walks", "slug": "walks" }),
        )
        .await;
    assert_eq!((taken.status, &taken.body["code"]), (409, &json!("idea")));
    let said = world
        .send(
            "/api/ideation/sessions/walks/messages",
            &json!({ "text": "And rests." }),
        )
        .await;
    assert_eq!(said.status, 201, "{}", said.text);
    let shown = world.read("/api/ideation/sessions/walks").await;
    let folder = world.state().join("ideas/walks");
    assert_eq!(shown["folder"], json!(folder));
    assert_eq!(shown["messages"][1]["text"], "And rests.");
    let heard = world.events("ideation.message").await;
    assert_eq!(heard.len(), 2);
    assert_eq!(
        (&heard[1]["source"], &heard[1]["data"]["user_slug"]),
        (&json!("api"), &json!("ada"))
    );
    let abandon = "/api/ideation/sessions/walks/abandon";
    let bob = answered(world.ask("POST", abandon, BOB).json(&json!({}))).await;
    assert_eq!((bob.status, &bob.body["code"]), (403, &json!("forbidden")));
    let ada = world.send(abandon, &json!({ "reason": "done" })).await;
    assert_eq!(ada.status, 204, "{}", ada.text);
    let list = world.read("/api/ideation/sessions").await;
    assert_eq!(list["items"][0]["state"], "abandoned");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exactly_the_shown_hash_is_approved_once_and_by_name() {
    let world = ServerWorld::new().await;
    let (spec, _) = world.specified().await;
    let path = format!("/api/specifications/{spec}");
    let shown = world.read(&path).await;
    let hash = ContentHash::of(b"new");
    assert_eq!(shown["hash"], json!(hash));
    let approve = format!("{path}/approve");
    let body = json!({ "hash": hash, "priority": 2 });
    let (one, other) = tokio::join!(world.send(&approve, &body), world.send(&approve, &body));
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409], "{} {}", one.text, other.text);
    let second = if one.status == 409 { one } else { other };
    assert!(
        second.body["message"]
            .as_str()
            .unwrap()
            .contains("already approved by ada")
    );
    let approvals = world.events("spec.approved").await;
    assert_eq!(approvals.len(), 1);
    assert_eq!(
        (
            &approvals[0]["data"]["approved_by"],
            &approvals[0]["data"]["priority"]
        ),
        (&json!("ada"), &json!(2))
    );
    assert_eq!(
        world.read("/api/specifications").await["items"][0]["state"],
        "approved"
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_once_and_the_second_hears_who_was_first() {
    let world = ServerWorld::new().await;
    // Whoever likes may answer it.
    let question = world.asked("missing_context", ["merge", "leave"]).await;
    let open = world.read("/api/questions").await;
    assert_eq!(open["items"][0]["id"], json!(question));
    let waits = world.read("/api/waits").await;
    assert_eq!(waits["items"].as_array().unwrap().len(), 1, "{waits}");
    let answer = format!("/api/questions/{question}/answer");
    let form = world.read(&answer).await;
    let ways = form["schema"]["anyOf"].as_array().unwrap();
    let choices: Vec<&Value> = ways
        .iter()
        .map(|way| &way["properties"]["choice"]["const"])
        .collect();
    assert!(choices.contains(&&json!("leave")), "{form}");
    let first = answered(
        world
            .ask("POST", &answer, BOB)
            .json(&json!({ "choice": "leave" })),
    )
    .await;
    assert_eq!(
        (first.status, &first.body["choice"]),
        (200, &json!("leave")),
        "{}",
        first.text
    );
    let second = world.send(&answer, &json!({ "choice": "merge" })).await;
    assert_eq!(second.status, 409);
    assert!(
        second.body["message"]
            .as_str()
            .unwrap()
            .contains("by bob over api")
    );
    assert_eq!(world.read("/api/questions").await["items"], json!([]));
    let kept = world.read(&format!("/api/questions/{question}")).await;
    assert_eq!(
        (&kept["answer"]["by"], &kept["late"][0]["by"]),
        (&json!("bob"), &json!("ada"))
    );
    assert_eq!(world.events("question.answered").await.len(), 1);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_after_the_default_is_kept_without_effect() {
    let world = ServerWorld::new().await;
    let (_, id) = world.specified().await;
    let store = &world.services.store;
    let asked = store.get::<Question>(&id.to_string()).await.unwrap();
    let asked = asked.unwrap();
    let leave = ChoiceId::parse("leave").unwrap();
    let taken = Answer {
        says_why: false,
        choice: Some(leave),
        text: "leave".to_owned(),
        by: "default".to_owned(),
        channel: "default".to_owned(),
        at: world.services.clock.now(),
    };
    let defaulted = Question {
        kind: QuestionKind::Clarifying,
        consequential: false,
        state: QuestionState::Defaulted,
        answer: Some(taken),
        ..asked.record.clone()
    };
    let mut changes = ChangeSet::new();
    changes.update(&asked, &defaulted);
    store.commit(changes).await.unwrap();
    let path = format!("/api/questions/{id}/answer");
    let late = world.send(&path, &json!({ "choice": "merge" })).await;
    assert_eq!(late.status, 409, "{}", late.text);
    let kept = world.read(&format!("/api/questions/{id}")).await;
    assert_eq!(
        (
            &kept["state"],
            &kept["answer"]["by"],
            &kept["answer"]["choice"]
        ),
        (&json!("defaulted"), &json!("default"), &json!("leave"))
    );
    assert_eq!(
        (&kept["late"][0]["by"], &kept["late"][0]["choice"]),
        (&json!("ada"), &json!("merge"))
    );
    assert!(world.events("question.answered").await.is_empty());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_and_what_waits_is_told_with_its_reasons_and_the_counts_of_the_store() {
    let world = ServerWorld::new().await;
    let (_, question) = world.specified().await;
    let build = world.built().await;
    for (id, state) in [
        ("T-001", TaskState::Complete),
        ("T-002", TaskState::Failed),
        ("T-003", TaskState::Blocked),
        ("T-004", TaskState::Pending),
    ] {
        world.task(build, id, state).await;
    }
    let listed = world.read("/api/builds").await;
    let row = &listed["items"][0];
    assert_eq!(
        (&row["tasks_complete"], &row["tasks_total"]),
        (&json!(1), &json!(4)),
        "{listed}"
    );
    let shown = world.read(&format!("/api/builds/{build}")).await;
    let states: Vec<_> = shown["tasks"].as_array().unwrap().iter().collect();
    assert_eq!(states.len(), 4, "{shown}");
    let waits = world.read("/api/waits").await;
    assert!(waits.to_string().contains(&question.to_string()), "{waits}");
    let open = world.read("/api/questions").await;
    assert_eq!(open["items"].as_array().map(Vec::len), Some(1));
    let all = world.read("/api/events").await;
    let of_type = world.events("ideation.message").await;
    let all = all["items"].as_array().unwrap();
    let counted = all
        .iter()
        .filter(|event| event["type"] == "ideation.message");
    assert_eq!(counted.count(), of_type.len());
    assert_eq!(of_type.len(), 1);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_is_steered_by_who_may_where_it_makes_sense() {
    let world = ServerWorld::new().await;
    let build = world.built().await;
    let path = format!("/api/builds/{build}");
    let shown = world.read(&path).await;
    assert_eq!((&shown["id"], &shown["tasks"]), (&json!(build), &json!([])));
    assert_eq!(
        world.read("/api/builds?idea=walks").await["items"][0]["tasks_total"],
        0
    );
    assert_eq!(
        world.read("/api/builds?idea=rivers").await["items"],
        json!([])
    );
    let before = world.rows().await;
    for verb in ["pause", "resume", "stop"] {
        let bob = world
            .ask("POST", &format!("{path}/{verb}"), BOB)
            .json(&json!({}));
        let bob = answered(bob).await;
        assert_eq!(
            (bob.status, &bob.body["code"]),
            (403, &json!("forbidden")),
            "{verb}"
        );
    }
    assert_eq!(world.rows().await, before);
    let stop = world
        .send(&format!("{path}/stop"), &json!({ "reason": "enough" }))
        .await;
    assert_eq!((stop.status, &stop.body["state"]), (202, &json!("running")));
    let stops = world.events("build.stop").await;
    assert_eq!(
        (
            &stops[0]["data"]["requested_by"],
            &stops[0]["data"]["reason"]
        ),
        (&json!("ada"), &json!("enough"))
    );
    world.end(build).await;
    let before = world.rows().await;
    let late = world.send(&format!("{path}/pause"), &json!({})).await;
    assert_eq!(
        (late.status, &late.body["code"]),
        (409, &json!("build-state"))
    );
    assert_eq!(
        late.body["message"]
            .as_str()
            .map(|text| text.contains("it has ended")),
        Some(true)
    );
    let next = format!("`POST /api/builds/{build}/resume` takes it up again");
    assert_eq!(late.body["next"], json!(next));
    // As `curl -X POST` sends it.
    let empty = world.ask("POST", &format!("{path}/resume"), ADA);
    let empty = answered(empty.header("Content-Type", "application/json")).await;
    assert_eq!(empty.status, 400);
    assert_eq!(empty.body["message"], json!("the body is empty"));
    assert_eq!(
        empty.body["next"],
        json!("send a JSON object, if only `{}`")
    );
    assert_eq!(world.rows().await, before);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_tried_again_and_told_and_builds_ranked_as_they_stand() {
    let world = ServerWorld::new().await;
    let build = world.built().await;
    world.task(build, "T-1", TaskState::Failed).await;
    world.task(build, "T-2", TaskState::Complete).await;
    let path = format!("/api/builds/{build}");
    let retry = format!("{path}/retry");
    let body = json!({ "task": "T-1", "guidance": "in one file" });
    let tried = answered(
        world
            .ask("POST", &retry, ADA)
            .header("Idempotency-Key", "1")
            .json(&body),
    )
    .await;
    assert_eq!(tried.status, 202, "{}", tried.text);
    let again = answered(
        world
            .ask("POST", &retry, ADA)
            .header("Idempotency-Key", "1")
            .json(&body),
    )
    .await;
    assert_eq!((again.status, &again.body), (202, &tried.body));
    let retries = world.events("task.retry").await;
    assert_eq!(retries.len(), 1, "a repeated request is done once");
    assert_eq!(
        (
            &retries[0]["data"]["requested_by"],
            &retries[0]["data"]["guidance"]
        ),
        (&json!("ada"), &json!("in one file"))
    );
    let told = world
        .send(
            &format!("{path}/tell"),
            &json!({ "text": "mind the tests" }),
        )
        .await;
    assert_eq!((told.status, &told.body["tasks"]), (202, &json!(["T-1"])));
    let words = world.events("build.tell").await;
    assert_eq!(words[0]["data"]["text"], "mind the tests");
    let ranked = world
        .send(&format!("{path}/priority"), &json!({ "priority": 2 }))
        .await;
    assert_eq!(ranked.status, 202, "{}", ranked.text);
    assert_eq!(world.events("build.priority").await.len(), 1);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_tasks_and_builds_have_no_use_for_is_refused_and_changes_nothing() {
    let world = ServerWorld::new().await;
    let build = world.built().await;
    world.task(build, "T-1", TaskState::Failed).await;
    world.task(build, "T-2", TaskState::Complete).await;
    let path = format!("/api/builds/{build}");
    let retry = format!("{path}/retry");
    let before = world.rows().await;
    let tell = format!("{path}/tell");
    for (place, body, status, code) in [
        (retry.clone(), json!({ "task": "T-2" }), 409, "task-state"),
        (retry.clone(), json!({ "task": "T-9" }), 404, "unknown-id"),
        (retry.clone(), json!({ "task": "../T" }), 404, "unknown-id"),
        (retry, json!({}), 400, "usage"),
        (tell.clone(), json!({ "text": " " }), 400, "input"),
        (
            tell.clone(),
            json!({ "text": "a", "task": "T-2" }),
            409,
            "task-state",
        ),
        (
            tell,
            json!({ "text": "a", "task": "T-9" }),
            404,
            "unknown-id",
        ),
        (
            format!("{path}/priority"),
            json!({ "priority": 11 }),
            400,
            "usage",
        ),
        (format!("{path}/land"), json!({}), 409, "landing"),
    ] {
        let refused = world.send(&place, &body).await;
        assert_eq!(
            (refused.status, refused.body["code"].as_str()),
            (status, Some(code)),
            "{place} {body}: {}",
            refused.text
        );
    }
    assert_eq!(world.rows().await, before);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_that_succeeded_is_landed_on_the_word_of_who_may() {
    let world = ServerWorld::new().await;
    let build = world.built().await;
    world
        .change(build, |build| build.state = BuildState::Succeeded)
        .await;
    let land = format!("/api/builds/{build}/land");
    let wished = async || {
        let store = &world.services.store;
        let wish = store.get::<Wish>(&build.to_string()).await.unwrap();
        wish.map(|wish| (wish.what, wish.by.clone()))
    };
    let bob = answered(world.ask("POST", &land, BOB).json(&json!({}))).await;
    assert_eq!((bob.status, &bob.body["code"]), (403, &json!("forbidden")));
    assert_eq!(wished().await, None);
    let stale = json!({ "onto": "4".repeat(40) });
    let stale = world.send(&land, &stale).await;
    assert_eq!(
        (stale.status, &stale.body["code"]),
        (409, &json!("landing"))
    );
    assert_eq!(wished().await, None);
    for (body, what) in [
        (json!({ "resolve": true }), BranchWish::Resolve),
        (json!({}), BranchWish::Merge),
    ] {
        let ada = world.send(&land, &body).await;
        assert_eq!(ada.status, 202, "{}", ada.text);
        assert_eq!(wished().await, Some((what, "ada".to_owned())));
    }
    let landing = world.read(&format!("/api/builds/{build}/landing")).await;
    assert_eq!(
        (&landing["into"], &landing["comes_to"]),
        (&json!("main"), &json!("would move on to it"))
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_stopped_by_who_may_and_shown_until_it_is_lifted() {
    let world = ServerWorld::new().await;
    let before = world.rows().await;
    let bob = answered(world.ask("POST", "/api/halt", BOB).json(&json!({}))).await;
    assert_eq!((bob.status, &bob.body["code"]), (403, &json!("forbidden")));
    assert_eq!(world.rows().await, before);
    assert_eq!(world.read("/api/halt").await["halt"], json!(null));
    let none = answered(world.ask("DELETE", "/api/halt", ADA)).await;
    assert_eq!((none.status, &none.body["code"]), (409, &json!("halt")));
    let next = "`POST /api/builds/BUILD/resume` lets one build go on";
    assert_eq!(none.body["next"], json!(next));
    let long = json!({ "reason": "x".repeat(8 * 1024 + 1) });
    let refused = world.send("/api/halt", &long).await;
    assert_eq!(
        (refused.status, &refused.body["code"]),
        (400, &json!("input"))
    );
    assert_eq!(world.read("/api/halt").await["halt"], json!(null));
    let why = json!({ "reason": "too dear" });
    let stopped = world.send("/api/halt", &why).await;
    assert_eq!((stopped.status, &stopped.body["by"]), (200, &json!("ada")));
    let again = world.send("/api/halt", &why).await;
    assert_eq!(again.status, 409, "{}", again.text);
    assert_eq!(world.read("/api/halt").await["halt"]["reason"], "too dear");
    let bob = answered(world.ask("DELETE", "/api/halt", BOB)).await;
    assert_eq!(bob.status, 403);
    let lifted = answered(world.ask("DELETE", "/api/halt", ADA)).await;
    assert_eq!(lifted.status, 200, "{}", lifted.text);
    assert_eq!(world.read("/api/halt").await["halt"], json!(null));
    assert_eq!(world.events("halt.begun").await.len(), 1);
    assert_eq!(world.events("halt.lifted").await.len(), 1);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_stop_everything_at_once_one_does_and_the_others_hear_who() {
    let world = ServerWorld::new().await;
    let all = (0..8).map(|_| answered(world.ask("POST", "/api/halt", ADA).json(&json!({}))));
    let replies = futures::future::join_all(all).await;
    let (first, others): (Vec<_>, Vec<_>) = replies.iter().partition(|one| one.status == 200);
    assert_eq!((first.len(), others.len()), (1, 7));
    for other in others {
        assert_eq!((other.status, &other.body["code"]), (409, &json!("halt")));
        assert!(other.text.contains("ada"), "{}", other.text);
    }
    assert_eq!(world.events("halt.begun").await.len(), 1);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_events_together_are_the_timeline() {
    let world = ServerWorld::new().await;
    for number in 0..5 {
        let text = json!({ "text": format!("Idea {number}") });
        assert_eq!(
            world.send("/api/ideation/sessions", &text).await.status,
            201
        );
    }
    let (mut sequences, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = world.read(&format!("/api/events?limit=2{cursor}")).await;
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2);
        sequences.extend(items.iter().map(|line| line["sequence"].as_i64().unwrap()));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(sequences, (1..=5).collect::<Vec<i64>>());
    for path in [
        "agents",
        "alerts",
        "dead-letters",
        "knowledge",
        "locks",
        "people",
        "waits",
        "notices",
        "questions",
        "reviews",
        "specifications",
    ] {
        assert!(
            world.read(&format!("/api/{path}")).await["items"].is_array(),
            "{path}"
        );
    }
    world.stop().await;
}

/// Says whether the path alone says what is wanted.
fn takes_nothing(path: &str) -> bool {
    ["/done", "/replay", "/discard", "/all-defaults"]
        .iter()
        .any(|verb| path.ends_with(verb))
}

/// Collects every `$ref` of a document.
fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str));
            fields.values().for_each(|field| references(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_describes_every_resource_and_every_schema_that_it_names() {
    let world = ServerWorld::new().await;
    let document = world.read("/api/openapi.json").await;
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 100, "{}", found.len());
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    // Two types of one name would be told apart by a number, which nothing refers to.
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let numbered = |name: &&String| name.ends_with(|letter: char| letter.is_ascii_digit());
    assert_eq!(schemas.keys().find(numbered), None);
    let paths = document["paths"].as_object().unwrap();
    for (path, operations) in paths {
        for (method, operation) in operations.as_object().unwrap() {
            let place = format!("{method} {path}");
            assert!(operation["operationId"].is_string(), "{place}");
            assert!(operation["responses"]["401"].is_object(), "{place}");
            let is_taken =
                method != "post" || operation["requestBody"].is_object() || takes_nothing(path);
            assert!(is_taken, "{place}");
        }
    }
    assert_eq!(
        answered(world.ask("GET", "/api/openapi.json", ""))
            .await
            .status,
        401
    );
    assert_eq!(
        answered(world.ask("GET", "/api/profile", ADA)).await.body["csrf"],
        Value::Null
    );
    world.stop().await;
}
