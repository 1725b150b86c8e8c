//! What forms of pages do to builds and alerts, and what the inbox shows to whom.

use ropewalk_schemas::alert::Alert;
use ropewalk_schemas::attempt::Evidence;
use ropewalk_schemas::build::{Build, BuildState, Predecessor};
use ropewalk_schemas::idea::Message;
use ropewalk_schemas::question::Question;
use ropewalk_schemas::review::Review;
use ropewalk_schemas::task::TaskState;
use ropewalk_schemas::wish::{BranchWish, Wish};
use ropewalk_schemas::{BuildId, CommitId};
use ropewalk_store::{ChangeSet, Query};
use serde_json::{Value, json};

use crate::browser::{Browser, HTML};
use crate::world::{BOB, ServerWorld, answered};

#[tokio::test(flavor = "multi_thread")]
async fn a_build_is_paused_resumed_and_stopped_by_the_forms_of_its_page() {
    let world = ServerWorld::new().await;
    let build = world.built().await;
    world.task(build, "T-1", TaskState::Ready).await;
    let browser = Browser::new(&world).await;
    let proof = browser.proof().await;
    let path = format!("/builds/{build}");
    // Every field of the form that the page shows is filled in.
    let post = async |verb: &str, proof: Option<&str>| {
        let form = format!("{path}/{verb}");
        let fields = browser.fields(&path, &form).await;
        let fields: Vec<_> = fields.iter().map(|name| (name.as_str(), "lunch")).collect();
        browser.send(&form, &fields, proof).await
    };
    let why = async || {
        let page = browser.read(&path).await.text;
        let (_, why) = page.split_once("<td data-of=\"Why\">").unwrap();
        why.split("</td>").next().unwrap().trim().to_owned()
    };
    assert_eq!(post("stop", None).await.status, 403);
    for (verb, is_pausing, told) in [
        ("pause", false, ""),
        (
            "resume",
            true,
            "ready; waits, since the build is about to pause",
        ),
        ("stop", false, ""),
    ] {
        world
            .change(build, |build| build.pause_requested = is_pausing)
            .await;
        assert_eq!(why().await, told, "{verb}");
        let sent = post(verb, Some(&proof)).await;
        assert_eq!(sent.status, 303, "{verb}: {}", sent.text);
        let wanted = world.events(&format!("build.{verb}")).await;
        assert_eq!(wanted.len(), 1, "{verb}");
        let data = &wanted[0]["data"];
        assert_eq!(data["reason"], json!("lunch"), "{verb}: {data}");
    }
    world
        .change(build, |build| build.state = BuildState::Paused)
        .await;
    assert_eq!(why().await, "ready; waits, since the build is paused");
    let asked = world
        .ask("POST", &format!("{path}/stop"), BOB)
        .header("Accept", HTML);
    let asked = asked.header("Content-Type", "application/x-www-form-urlencoded");
    let refused = answered(asked.body("reason=no")).await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    world.stop().await;
}

/// Opens a world in which a build has succeeded.
async fn succeeded() -> (ServerWorld, BuildId) {
    let world = ServerWorld::new().await;
    let build = world.built().await;
    world
        .change(build, |build| build.state = BuildState::Succeeded)
        .await;
    (world, build)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_is_left_to_a_task_by_the_form_of_the_landing() {
    let (world, build) = succeeded().await;
    let browser = Browser::new(&world).await;
    let proof = browser.proof().await;
    let path = format!("/builds/{build}/land");
    let onto = "5".repeat(40);
    let moved = "6".repeat(40);
    let post = async |onto: &str| {
        let fields = [("how", "resolve"), ("onto", onto)];
        browser.send(&path, &fields, Some(&proof)).await.status
    };
    let wishes = async || {
        world
            .services
            .store
            .list::<Wish>(Query::new())
            .await
            .unwrap()
    };
    assert_eq!(post(&moved).await, 409);
    assert_eq!(wishes().await.len(), 0);
    assert_eq!(post(&onto).await, 303);
    let asked = wishes().await.remove(0).into_inner();
    assert_eq!(
        (asked.build, asked.what, asked.by.as_str()),
        (build, BranchWish::Resolve, "ada")
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_lands_reads_whose_work_comes_along() {
    let world = ServerWorld::new().await;
    let [build, other, later] = [
        world.built().await,
        world.built().await,
        world.built().await,
    ];
    let commit = CommitId::parse(&"7".repeat(40)).unwrap();
    world
        .change(build, |build| {
            build.state = BuildState::Succeeded;
            build.follows = vec![Predecessor {
                build: other,
                commit: commit.clone(),
            }];
        })
        .await;
    let name = |build: &mut Build| build.branch = "build/strides".to_owned();
    world.change(other, name).await;
    let browser = Browser::new(&world).await;
    let comes_along = async || {
        let page = browser.read(&format!("/builds/{build}/landing")).await.text;
        page.contains("It builds on <code>build/strides</code>")
    };
    assert!(comes_along().await);
    // What goes on from it has landed, and all of it with that.
    world
        .change(later, |later| later.merged = Some(commit.clone()))
        .await;
    world
        .change(other, |other| other.continued_by = Some(later))
        .await;
    assert!(!comes_along().await);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_lands_reads_what_the_review_holds_for_missed() {
    let (world, build) = succeeded().await;
    let browser = Browser::new(&world).await;
    let pages = [
        format!("/builds/{build}"),
        format!("/builds/{build}/landing"),
    ];
    let told = "the review holds FR-6 for missed: planned help names both, done it names one";
    for page in &pages {
        let text = browser.read(page).await.text;
        assert!(!text.contains("for missed"), "{page}: {text}");
    }
    let review: Review = serde_json::from_value(json!({
        "id": world.services.ids.next(), "kind": "build", "idea": "walks", "build": build,
        "at": world.services.clock.now(), "divergences": [{ "class": "missed-requirement", "requirement": "FR-6",
            "planned": "help names both", "actual": "it names one" }],
    }))
    .unwrap();
    let mut changes = ChangeSet::new();
    changes.insert(&review);
    world.services.store.commit(changes).await.unwrap();
    for page in &pages {
        let text = browser.read(page).await.text;
        assert!(text.contains(told), "{page}: {text}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_says_how_it_grew_and_who_has_seen_it_first() {
    let world = ServerWorld::new().await;
    let alert: Alert = serde_json::from_value(json!({
        "cause": "stuck/T-1", "severity": "error", "message": "T-1 stands still", "escalations": 2,
        "raised_at": world.services.clock.now(),
    }))
    .unwrap();
    let mut changes = ChangeSet::new();
    changes.insert(&alert);
    world.services.store.commit(changes).await.unwrap();
    let browser = Browser::new(&world).await;
    let proof = browser.proof().await;
    let page = browser.read("/running").await.text;
    assert!(page.contains("grown worse 2 times"), "{page}");
    assert!(
        page.contains("name=\"cause\" value=\"stuck/T-1\""),
        "{page}"
    );
    let seen = [("cause", "stuck/T-1")];
    let sent = browser.send("/running/seen", &seen, Some(&proof)).await;
    assert_eq!(sent.status, 303, "{}", sent.text);
    let shown = world.read("/api/alerts").await;
    assert_eq!(shown["items"][0]["acknowledged"]["by"], json!("ada"));
    let page = browser.read("/running").await.text;
    assert!(page.contains("Seen by ada <time"), "{page}");
    assert!(!page.contains("I have seen it"), "{page}");
    let again = browser.send("/running/seen", &seen, Some(&proof)).await;
    assert_eq!(again.status, 409, "{}", again.text);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_check_of_the_whole_saw_stands_on_the_page_of_its_build() {
    let world = ServerWorld::new().await;
    let build = world.built().await;
    let browser = Browser::new(&world).await;
    let path = format!("/builds/{build}");
    let page = browser.read(&path).await.text;
    assert!(!page.contains("The check of the whole"), "{page}");
    let run = json!({
        "name": "walked", "command": "cargo test", "exit_code": 101, "duration_ms": 1_500, "output": "",
        "tests": { "passed": 7, "failed": 1, "ignored": 2 }, "flaky": [],
    });
    let seen = |task: Value, finding: &str| -> Evidence {
        serde_json::from_value(json!({
            "build": build, "task": task, "commit": "c".repeat(40), "tree": "t".repeat(40), "verdict": "failed",
            "findings": [finding], "checks": [run], "not_run": ["painted"], "at": world.services.clock.now(),
        }))
        .unwrap()
    };
    let mut changes = ChangeSet::new();
    changes
        .insert(&seen(Value::Null, "`walks` is counted twice"))
        .insert(&seen(json!("T-1"), "only of a task"));
    world.services.store.commit(changes).await.unwrap();
    let page = browser.read(&path).await.text;
    for told in [
        "The check of the whole",
        "<span class=\"state bad\">failed</span> <code>cccccccc",
        "<code>walks</code> is counted twice",
        "<strong class=\"slug\">walked</strong> <code>cargo test</code> exit 101, 1.5 s, 7 passed, 1 failed, 2 ignored",
        "not run: painted",
    ] {
        assert!(page.contains(told), "no {told}: {page}");
    }
    assert!(!page.contains("only of a task"), "{page}");
    let shown = world.read(&format!("/api{path}")).await;
    assert_eq!(shown["whole"].as_array().unwrap().len(), 1);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inbox_marks_what_is_for_whom_and_shows_what_a_yes_would_change() {
    let world = ServerWorld::new().await;
    let ask = |kind: &str, trigger: &str, text: &str, context: &str| -> Question {
        serde_json::from_value(json!({
            "id": world.services.ids.next(), "kind": kind, "trigger": trigger, "agent": "build", "text": text,
            "context": context, "choices": [{ "id": "yes", "label": "Yes", "recommended": false, "with_words": false }],
            "free_text": false, "consequential": false, "about": { "kind": "nothing" }, "idea": null,
            "state": "pending", "correlation_id": world.services.ids.next(), "asked_at": world.services.clock.now(),
        }))
        .unwrap()
    };
    let difference = "```diff\n-assert <b>old</b>\n+assert new\n```";
    let mut changes = ChangeSet::new();
    changes
        .insert(&ask("confirming", "build_finished", "Is it finished?", ""))
        .insert(&ask(
            "blocking",
            "protected_files",
            "May this test change?",
            difference,
        ));
    world.services.store.commit(changes).await.unwrap();
    let browser = Browser::new(&world).await;
    let bob = world.ask("GET", "/questions", BOB).header("Accept", HTML);
    let (test, build) = ("May this test change?", "Is it finished?");
    // What is for whoever looks stands first.
    let pages = [
        (
            browser.read("/questions").await.text,
            [(build, "for you"), (test, "for technical")],
        ),
        (
            answered(bob).await.text,
            [(test, "for you"), (build, "for product")],
        ),
    ];
    for (page, expected) in pages {
        let articles: Vec<&str> = page.split("<article").skip(1).collect();
        assert_eq!(articles.len(), 2, "{page}");
        for (article, (text, whose)) in articles.iter().zip(expected) {
            assert!(article.contains(text), "{page}");
            assert!(article.contains(&format!(">{whose}</span>")), "{article}");
            let head = article.split('>').next().unwrap();
            assert_eq!(head.contains("data-mine"), whose == "for you", "{head}");
        }
        let shown = page.split_once("<pre").unwrap().1;
        let shown = shown.split("</pre>").next().unwrap();
        for line in ["-assert &lt;b&gt;old&lt;/b&gt;", "+assert new"] {
            assert!(shown.contains(line), "no {line}: {shown}");
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_about_the_branch_of_a_build_leads_to_what_landing_it_comes_to() {
    let world = ServerWorld::new().await;
    let build = world.built().await;
    let asked = world.asked("build_finished", ["merge", "leave"]).await;
    let store = &world.services.store;
    let about = async |kind: Value| {
        let question = store.get::<Question>(&asked.to_string()).await.unwrap();
        let question = question.unwrap();
        let mut changes = ChangeSet::new();
        changes.update(
            &question,
            &Question {
                about: serde_json::from_value(kind).unwrap(),
                ..question.record.clone()
            },
        );
        store.commit(changes).await.unwrap();
    };
    let browser = Browser::new(&world).await;
    let link = format!("<a href=\"/builds/{build}/landing\">See what landing comes to</a>");
    let leads = async || {
        let mut leads = Vec::new();
        for path in ["/questions".to_owned(), format!("/questions/{asked}")] {
            leads.push(browser.read(&path).await.text.contains(&link));
        }
        leads
    };
    let finish = |build: &mut Build| build.state = BuildState::Succeeded;
    about(json!({ "kind": "build", "build": build })).await;
    // What has not come to its end has no such page.
    assert_eq!(leads().await, [false, false]);
    world.change(build, finish).await;
    assert_eq!(leads().await, [true, true]);
    let proof = browser.proof().await;
    let path = format!("/questions/{asked}/answer");
    let sent = browser.send(&path, &[("choice", "leave")], Some(&proof));
    assert_eq!(sent.await.status, 303);
    assert_eq!(leads().await, [false, false]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_shows_what_somebody_says_in_the_idea_of_another_as_theirs() {
    let world = ServerWorld::new().await;
    let begun = json!({ "text": "Walks", "slug": "walks" });
    let begun = world.send("/api/ideation/sessions", &begun).await;
    assert_eq!(begun.status, 201, "{}", begun.text);
    // A row of before it was kept who said something is its owner's.
    let store = &world.services.store;
    let messages = store.list::<Message>(Query::new()).await.unwrap();
    let mut changes = ChangeSet::new();
    changes.update(
        &messages[0],
        &Message {
            user: None,
            ..messages[0].record.clone()
        },
    );
    store.commit(changes).await.unwrap();
    let path = "/api/ideation/sessions/walks/messages";
    let said = world.ask("POST", path, BOB);
    let said = answered(said.json(&json!({ "text": "Runs, too" }))).await;
    assert_eq!(said.status, 201, "{}", said.text);
    let shown = world.read("/api/ideation/sessions/walks").await;
    let users = [&shown["messages"][0]["user"], &shown["messages"][1]["user"]];
    assert_eq!(users, [&Value::Null, &json!("bob")]);
    let page = Browser::new(&world).await.read("/ideas/walks").await.text;
    let mut speakers = page.split("<p class=\"who\">").skip(1);
    for person in ["ada ", "bob "] {
        let speaker = speakers.next().unwrap();
        assert!(speaker.starts_with(person), "{speaker}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_of_a_choice_that_needs_no_words_takes_a_reason_or_none() {
    let world = ServerWorld::new().await;
    let browser = Browser::new(&world).await;
    let proof = browser.proof().await;
    for (given, told, says_why, read) in [
        (
            " nobody needs it\n",
            "nobody needs it",
            true,
            "Skip it: nobody needs it",
        ),
        (" ", "Skip it", false, "Skip it"),
    ] {
        let question: Question = serde_json::from_value(json!({
            "id": world.services.ids.next(), "kind": "blocking", "trigger": "put_by_a_test", "agent": "build",
            "text": "What now?", "context": "", "free_text": false, "consequential": true,
            "choices": [{ "id": "skip", "label": "Skip it", "recommended": false, "optional_words": true }],
            "about": { "kind": "nothing" }, "state": "pending", "correlation_id": world.services.ids.next(),
            "asked_at": world.services.clock.now(),
        }))
        .unwrap();
        let mut changes = ChangeSet::new();
        changes.insert(&question);
        world.services.store.commit(changes).await.unwrap();
        let path = format!("/questions/{}", question.id);
        let page = browser.read(&path).await.text;
        assert!(
            page.contains("Skip it: why, if you want to say so"),
            "{page}"
        );
        let form = format!("{path}/answer");
        assert_eq!(browser.fields(&path, &form).await, ["text"]);
        let fields = [("choice", "skip"), ("text", given)];
        let sent = browser.send(&form, &fields, Some(&proof)).await;
        assert_eq!(sent.status, 303, "{}", sent.text);
        let key = question.id.to_string();
        let stored = world.services.store.get::<Question>(&key).await.unwrap();
        let answer = stored.unwrap().record.answer.unwrap();
        assert_eq!((answer.text.as_str(), answer.says_why), (told, says_why));
        for (page, expected) in [
            (path.as_str(), format!("<strong>{read}</strong>")),
            ("/questions?all=true", format!("</span> {read} <span")),
        ] {
            let page = browser.read(page).await.text;
            assert!(page.contains(&expected), "{expected}: {page}");
        }
    }
    world.stop().await;
}
