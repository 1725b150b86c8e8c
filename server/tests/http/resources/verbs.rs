//! What one thing is asked for by its name, and verbs that are about many at once.

use ropewalk_schemas::ComponentName;
use ropewalk_schemas::question::{Question, QuestionKind, QuestionState};
use ropewalk_schemas::task::TaskState;
use ropewalk_store::{ChangeSet, Query, Subscription};

use serde_json::{Value, json};

use crate::world::{ADA, BOB, ServerWorld, answered};

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_shown_by_its_build_and_name() {
    let world = ServerWorld::new().await;
    let build = world.built().await;
    world.task(build, "T-1", TaskState::Failed).await;
    let shown = world.read(&format!("/api/tasks/{build}/T-1")).await;
    assert_eq!(
        (
            &shown["id"],
            &shown["state"],
            &shown["made"],
            &shown["evidence"]
        ),
        (&json!("T-1"), &json!("failed"), &json!([]), &json!([])),
        "{shown}"
    );
    for path in [
        format!("{build}/T-9"),
        format!("{build}/..%2fT-1"),
        format!("{}/T-1", uuid::Uuid::nil()),
    ] {
        let none = answered(world.ask("GET", &format!("/api/tasks/{path}"), ADA)).await;
        assert_eq!(
            (none.status, none.body["code"].as_str()),
            (404, Some("unknown-id")),
            "{path}"
        );
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_specification_that_is_not_approved_is_no_build_and_says_what_begins_one() {
    let world = ServerWorld::new().await;
    let (spec, _) = world.specified().await;
    let before = world.rows().await;
    let told = format!("`{spec}` is a specification that is generated, not approved");
    for verb in ["resume", "pause", "stop"] {
        let path = format!("/api/builds/{spec}/{verb}");
        let refused = world.send(&path, &json!({})).await;
        assert_eq!(refused.status, 404, "{}", refused.text);
        assert_eq!(refused.body["message"], json!(told));
        let next = format!(
            "`POST /api/specifications/{spec}/approve` begins its build, with the `hash` that `GET /api/specifications/{spec}` shows"
        );
        assert_eq!(refused.body["next"], json!(next));
    }
    assert_eq!(world.rows().await, before);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_shown_with_what_became_of_it_and_replayed_to_who_began_later() {
    let world = ServerWorld::new().await;
    world.specified().await;
    let listed = world.events("ideation.message").await;
    let (position, id) = (&listed[0]["sequence"], listed[0]["id"].as_str().unwrap());
    let shown = world.read(&format!("/api/events/{position}")).await;
    assert_eq!(
        (&shown["id"], &shown["deliveries"]),
        (&json!(id), &json!([]))
    );
    assert_eq!(world.read(&format!("/api/events/{id}")).await, shown);
    for name in ["999", "x", "0"] {
        let none = answered(world.ask("GET", &format!("/api/events/{name}"), ADA)).await;
        assert_eq!(
            (none.status, none.body["code"].as_str()),
            (404, Some("unknown-id")),
            "{name}"
        );
    }
    let name = ComponentName::parse("notify.webhook").unwrap();
    let later = Subscription::new(name, ["ideation.*"]);
    world.services.store.subscribe(&later).await.unwrap();
    let before = world.rows().await;
    let replay = json!({ "subscriber": "notify.webhook", "from": 1 });
    let bob = world.ask("POST", "/api/events/replay", BOB).json(&replay);
    let bob = answered(bob).await;
    assert_eq!(
        (bob.status, bob.body["code"].as_str()),
        (403, Some("forbidden"))
    );
    for (body, status) in [
        (json!({ "subscriber": "nobody", "from": 1 }), 404),
        (json!({ "subscriber": "notify.webhook", "from": 0 }), 400),
        (json!({ "subscriber": "no name", "from": 1 }), 400),
    ] {
        let refused = world.send("/api/events/replay", &body).await;
        assert_eq!(refused.status, status, "{body}: {}", refused.text);
    }
    assert_eq!(world.rows().await, before);
    let replayed = world.send("/api/events/replay", &replay).await;
    assert_eq!(
        (replayed.status, &replayed.body["events"]),
        (202, &json!(1)),
        "{}",
        replayed.text
    );
    let shown = world.read(&format!("/api/events/{position}")).await;
    assert_eq!(
        shown["deliveries"][0]["subscriber"], "notify.webhook",
        "{shown}"
    );
    world.stop().await;
}

/// Makes a question one that has the default `leave`.
async fn defaulting(world: &ServerWorld, kind: QuestionKind, consequential: bool) -> String {
    let id = world
        .asked("build_finished", ["merge", "leave"])
        .await
        .to_string();
    let store = &world.services.store;
    let asked = store.get::<Question>(&id).await.unwrap().unwrap();
    let question = Question {
        kind,
        consequential,
        default: Some(asked.choices[1].id.clone()),
        ..asked.record.clone()
    };
    let mut changes = ChangeSet::new();
    changes.update(&asked, &question);
    store.commit(changes).await.unwrap();
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn all_with_defaults_are_answered_at_once_but_those_that_block_or_have_consequences() {
    let world = ServerWorld::new().await;
    world.specified().await;
    let safe = [
        defaulting(&world, QuestionKind::Clarifying, false).await,
        defaulting(&world, QuestionKind::Clarifying, false).await,
    ];
    defaulting(&world, QuestionKind::Confirming, true).await;
    defaulting(&world, QuestionKind::Blocking, false).await;
    let all = || answered(world.ask("POST", "/api/questions/all-defaults", BOB));
    let more = world.ask("POST", "/api/questions/all-defaults", BOB);
    let refused = answered(more.json(&json!({ "idea": "walks" }))).await;
    let message = refused.body["message"].as_str().unwrap_or_default();
    let names_it = message.contains("unknown field `idea`");
    assert!(refused.status == 400 && names_it, "{}", refused.text);
    assert!(refused.body["next"].is_string(), "{}", refused.text);
    let done = all().await;
    assert_eq!(done.status, 200, "{}", done.text);
    let items = done.body["items"].as_array().unwrap().iter();
    let mut answers: Vec<(&Value, &Value)> =
        items.map(|one| (&one["id"], &one["choice"])).collect();
    answers.sort_by_key(|(id, _)| id.to_string());
    let mut expected = safe.clone().map(Value::from);
    expected.sort_by_key(Value::to_string);
    let leave = json!("leave");
    assert_eq!(
        answers,
        expected.iter().map(|id| (id, &leave)).collect::<Vec<_>>()
    );
    let kept = world.read(&format!("/api/questions/{}", safe[0])).await;
    assert_eq!(
        (
            &kept["state"],
            &kept["answer"]["by"],
            &kept["answer"]["channel"]
        ),
        (&json!("answered"), &json!("bob"), &json!("api"))
    );
    // Three are left: of `specified`, of consequence, and one that blocks.
    let questions = world
        .services
        .store
        .list::<Question>(Query::new())
        .await
        .unwrap();
    let open = questions
        .iter()
        .filter(|one| one.state == QuestionState::Pending);
    assert_eq!(open.count(), 3);
    let before = world.rows().await;
    assert_eq!(all().await.body["items"], json!([]));
    assert_eq!(world.rows().await, before);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_knows_is_remembered_once_and_found_by_its_words() {
    let world = ServerWorld::new().await;
    let rain = json!({ "content": "Rain makes the rope swell.", "topics": ["rope"] });
    let first = world.send("/api/knowledge", &rain).await;
    assert_eq!(
        (first.status, &first.body["outcome"]),
        (201, &json!("added")),
        "{}",
        first.text
    );
    let again = world.send("/api/knowledge", &rain).await;
    assert_eq!(
        (&again.body["outcome"], &again.body["id"]),
        (&json!("seen-again"), &first.body["id"])
    );
    let other =
        json!({ "content": "Walks begin at dawn.", "kind": "convention", "confidence": 0.5 });
    assert_eq!(world.send("/api/knowledge", &other).await.status, 201);
    let found = world.read("/api/knowledge?words=swelling%20rain").await;
    assert_eq!(found["items"].as_array().map(Vec::len), Some(1), "{found}");
    assert_eq!(
        (&found["items"][0]["id"], &found["items"][0]["kind"]),
        (&first.body["id"], &json!("gotcha"))
    );
    let before = world.rows().await;
    let long = "word ".repeat(500);
    for (body, code) in [
        (json!({ "content": " " }), "knowledge"),
        (json!({ "content": long }), "knowledge"),
        (
            json!({ "content": "a", "globs": ["a".repeat(1_001)] }),
            "knowledge",
        ),
        (
            json!({ "content": "a", "globs": ["{".repeat(33)] }),
            "knowledge",
        ),
        (json!({ "content": "a", "confidence": 1.5 }), "usage"),
        (json!({ "content": "a", "kind": "rumour" }), "usage"),
        (json!({ "content": "a", "idea": "../x" }), "usage"),
    ] {
        let refused = world.send("/api/knowledge", &body).await;
        assert_eq!(
            (refused.status, refused.body["code"].as_str()),
            (400, Some(code)),
            "{body}: {}",
            refused.text
        );
        // Whoever is refused is told what to do.
        assert!(refused.body["next"].is_string(), "{body}: {}", refused.text);
    }
    assert_eq!(world.rows().await, before);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_question_says_who_is_asked_it_first() {
    let world = ServerWorld::new().await;
    let mut expected = Vec::new();
    for (trigger, choices, role) in [
        ("build_finished", ["merge", "leave"], "product"),
        ("task_stuck", ["wait", "skip"], "technical"),
        ("budget_exceeded", ["half", "stop"], "operations"),
        ("of_a_newer_program", ["yes", "no"], "technical"),
    ] {
        let id = world.asked(trigger, choices).await;
        let shown = world.read(&format!("/api/questions/{id}")).await;
        assert_eq!(
            (&shown["trigger"], &shown["role"]),
            (&json!(trigger), &json!(role))
        );
        expected.push(shown);
    }
    let listed = world.read("/api/questions").await;
    assert_eq!(listed["items"], json!(expected));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_whom_and_who_is_to_be_told_is_listed() {
    let world = ServerWorld::new().await;
    let (_, question) = world.specified().await;
    let graph = world.read("/api/waits/graph").await;
    assert_eq!(graph["cycles"], json!([]));
    assert!(
        graph["others"].to_string().contains(&question.to_string()),
        "{graph}"
    );
    assert_eq!(world.read("/api/notices").await["items"], json!([]));
    assert_eq!(
        world.read("/api/notices?all=true").await["items"],
        json!([])
    );
    world.stop().await;
}
