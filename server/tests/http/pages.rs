//! What a browser is shown and sends: pages that need no script, forms that prove themselves, refusals in words.

mod brief;
mod first;
mod learned;
mod specification;
mod steering;
mod times;

use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::idea::Session;
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::task::TaskState;
use ropewalk_schemas::wish::{BranchWish, Wish};
use ropewalk_schemas::{CommitId, Slug};
use ropewalk_store::{ChangeSet, DeliveryState, Query};
use serde_json::json;

use crate::browser::{Browser, HTML};
use crate::troubles::{dead_letter, die, state};
use crate::world::{ADA, Answer, BOB, ServerWorld, answered};

/// What every page is drawn by.
const FILES: [&str; 5] = [
    "ropewalk.css",
    "ropewalk.js",
    "writing.js",
    "htmx.js",
    "icon.svg",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_is_led_from_the_link_to_its_first_idea_and_asks_nobody_else() {
    let world = ServerWorld::new().await;
    let stranger = answered(world.bare("GET", "/").header("Accept", HTML)).await;
    assert_eq!(stranger.status, 401);
    assert!(
        stranger.text.contains("open the link that"),
        "{}",
        stranger.text
    );
    let browser = Browser::new(&world).await;
    for (path, told) in [
        ("/", "There is no idea yet"),
        ("/questions", "<a href=\"/\">The board</a> shows"),
        ("/questions", "Nothing waits for you"),
        ("/builds", "Nothing was built yet"),
        ("/running", "Nothing is wrong"),
        ("/running", "Nobody waits. A task that needs a file"),
        ("/running", "No file is locked. A task that is worked on"),
        ("/knowledge", "Nothing was learned yet"),
        ("/usage", "asked yet. <a href=\"/ideas/new\">Begin an idea"),
        ("/events", "Nothing of this kind happened"),
        ("/ideas/new", "What do you have in mind?"),
    ] {
        let page = browser.read(path).await;
        assert_eq!(page.status, 200, "{path}: {}", page.text);
        assert!(page.text.contains(told), "{path}: {}", page.text);
        let policy = page.headers["content-security-policy"].to_str().unwrap();
        assert!(
            policy.contains("default-src 'none'; script-src 'self'"),
            "{policy}"
        );
        for foreign in ["http://", "https://", "<script>", " style=", "onclick"] {
            assert!(!page.text.contains(foreign), "{path} has {foreign}");
        }
    }
    for name in FILES {
        let file = answered(world.bare("GET", &format!("/static/{name}"))).await;
        assert_eq!(file.status, 200, "{name}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_changes_something_only_with_the_proof_of_its_login() {
    let world = ServerWorld::new().await;
    let browser = Browser::new(&world).await;
    let before = world.rows().await;
    let fields = [("text", "Walks\nof mine"), ("kind", "tool")];
    for proof in [None, Some(""), Some("another")] {
        let refused = browser.send("/ideas", &fields, proof).await;
        assert_eq!(refused.status, 403, "{}", refused.text);
        assert!(refused.text.contains("load it again"), "{}", refused.text);
    }
    assert_eq!(world.rows().await, before);
    let proof = browser.proof().await;
    let page = browser.send("/ideas", &fields, Some(&proof)).await;
    assert_eq!(
        (page.status, &page.headers["location"]),
        (303, &"/ideas/walks".parse().unwrap())
    );
    let shown = world.read("/api/ideation/sessions/walks").await;
    assert_eq!(shown["messages"][0]["text"], "Walks\nof mine");
    assert_eq!(shown["kind"], "tool");
    let page = browser.read("/ideas/walks").await;
    assert!(page.text.contains("Walks<br />\nof mine") || page.text.contains("Walks<br>\nof mine"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn comments_on_lines_of_a_finished_build_go_together_as_one_revision() {
    let world = ServerWorld::new().await;
    let (spec, _) = world.specified().await;
    let build = world.built().await;
    let head = CommitId::parse(&"a".repeat(40)).unwrap();
    let browser = Browser::new(&world).await;
    let proof = browser.proof().await;
    let path = format!("/builds/{build}/comments");
    let of = head.to_string();
    let fields = [
        ("of", of.as_str()),
        ("file.0", "walks.txt"),
        ("side.0", "new"),
        ("line.0", "4"),
        ("text.0", "say <i>which</i>"),
        ("file.1", "walks.txt"),
        ("side.1", "old"),
        ("line.1", "4"),
        ("text.1", "why did it go?"),
    ];
    world
        .change(build, |build| {
            build.spec = spec;
            build.head = Some(head.clone());
        })
        .await;
    let page = browser.read(&format!("/builds/{build}/difference")).await;
    assert!(page.text.contains("has not ended"), "{}", page.text);
    assert!(page.text.contains("&#60;b&#62;new") && !page.text.contains("<b>new"));
    let before = world.rows().await;
    let early = browser.send(&path, &fields, Some(&proof)).await;
    assert_eq!(early.status, 409, "{}", early.text);
    assert_eq!(world.rows().await, before);
    let now = world.services.clock.now();
    world
        .change(build, |build| {
            build.state = BuildState::Succeeded;
            build.completed_at = Some(now);
        })
        .await;
    let page = browser.read(&format!("/builds/{build}/difference")).await;
    assert!(
        page.text.contains("data-side=\"old\" data-line=\"4\""),
        "{}",
        page.text
    );
    let before = world.rows().await;
    for (at, wrong, status) in [(0, "b", 409), (1, "other.txt", 400), (3, "40", 400)] {
        let value = if at == 0 {
            wrong.repeat(40)
        } else {
            wrong.to_owned()
        };
        let mut wrong = fields;
        wrong[at].1 = &value;
        let refused = browser.send(&path, &wrong, Some(&proof)).await;
        assert_eq!(refused.status, status, "{}", refused.text);
    }
    assert_eq!(
        browser.send(&path, &fields[..1], Some(&proof)).await.status,
        400
    );
    assert_eq!(world.rows().await, before);
    let sent = browser.send(&path, &fields, Some(&proof)).await;
    assert_eq!(sent.status, 303, "{}", sent.text);
    let specification = world.read(&format!("/api/specifications/{spec}")).await;
    let told = format!(
        "Comments on lines of `build/walks` at {}:\n- `walks.txt`, line 4 (`<b>new</b>`): say <i>which</i>\n\
         - `walks.txt`, removed line 4 (`<b>old</b>`): why did it go?",
        head.short()
    );
    assert_eq!(specification["feedback"], json!([told]));
    assert_eq!(specification["state"], "draft");
    assert_eq!(world.events("spec.revision_requested").await.len(), 1);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_figures_of_the_page_of_usage_are_those_of_the_store() {
    let world = ServerWorld::new().await;
    let browser = Browser::new(&world).await;
    let page = browser.read("/usage").await;
    assert!(
        page.text.contains("No model was asked yet"),
        "{}",
        page.text
    );
    assert!(page.text.contains("50000 tokens"), "{}", page.text);
    let call = |key: &str, day: &str, tokens: u64, money: u64| -> ModelCall {
        serde_json::from_value(json!({
            "key": key, "role": "build", "model": "m", "provider": "p", "reply": null, "idea": "walks",
            "input_tokens": tokens, "output_tokens": 3, "micro_usd": money, "at": format!("{day}T08:00:00Z"),
        }))
        .unwrap()
    };
    let mut changes = ChangeSet::new();
    changes
        .insert(&call("one", "2026-03-01", 1_234, 1_500_000))
        .insert(&call("two", "2026-03-03", 77, 250_000));
    world.services.store.commit(changes).await.unwrap();
    let page = browser.read("/usage").await;
    for told in [
        "<strong>$1.75</strong> <span>1317 tokens in 2 model calls",
        "2026-03-01: $1.50, 1237 tokens in 1 call",
        "2026-03-03: $0.25, 80 tokens in 1 call",
        "<td data-of=\"Tokens in\">1311</td><td data-of=\"From cache\">0</td><td data-of=\"Tokens out\">6</td>\
         <td data-of=\"Cost\">$1.75</td><td data-of=\"Cache hits\">0 %</td>",
        "p/m",
    ] {
        assert!(page.text.contains(told), "no {told}: {}", page.text);
    }
    // Of many ideas the fifty of the most tokens have a row of their own.
    let mut changes = ChangeSet::new();
    for number in 0..52 {
        let mut call = call(&format!("of {number}"), "2026-03-04", 5_000, 0);
        call.idea = Some(Slug::parse(&format!("idea-{number}")).unwrap());
        changes.insert(&call);
    }
    world.services.store.commit(changes).await.unwrap();
    let page = browser.read("/usage").await;
    let (_, ideas) = page.text.split_once("<h2>By idea</h2>").unwrap();
    let (ideas, _) = ideas.split_once("</table>").unwrap();
    assert_eq!(ideas.matches("href=\"/ideas/").count(), 50);
    let (_, others) = ideas.split_once("all others").unwrap();
    for told in [
        "<td data-of=\"Calls\">4</td><td data-of=\"Tokens in\">11311</td>",
        "<td data-of=\"Tokens out\">12</td><td data-of=\"Cost\">$1.75</td>",
    ] {
        assert!(others.contains(told), "no {told}: {others}");
    }
    let page = browser.read("/usage?idea=other").await;
    assert!(
        page.text.contains("No model was asked yet"),
        "{}",
        page.text
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_understood_is_corrected_where_it_stands() {
    let world = ServerWorld::new().await;
    let begun = json!({ "text": "Walks", "slug": "walks" });
    let begun = world.send("/api/ideation/sessions", &begun).await;
    assert_eq!(begun.status, 201, "{}", begun.text);
    let store = &world.services.store;
    let sessions = store.list::<Session>(Query::new()).await.unwrap();
    let mut after = sessions[0].record.clone();
    let artifact = json!({
        "kind": "target-user", "summary": "Runners", "content": "People who run.", "confidence": 0.8,
        "phase": "exploring", "at": world.services.clock.now(),
    });
    after.signals.artifacts = vec![serde_json::from_value(artifact).unwrap()];
    let mut changes = ChangeSet::new();
    changes.update(&sessions[0], &after);
    store.commit(changes).await.unwrap();
    let browser = Browser::new(&world).await;
    let proof = browser.proof().await;
    let page = browser.read("/ideas/walks").await.text;
    assert!(
        page.contains("name=\"about\" value=\"target user\""),
        "{page}"
    );
    let fields = [("about", "target user"), ("text", "people who walk")];
    let sent = browser
        .send("/ideas/walks/say", &fields, Some(&proof))
        .await;
    assert_eq!(sent.status, 303, "{}", sent.text);
    let shown = world.read("/api/ideation/sessions/walks").await;
    let said = shown["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(
        said["text"],
        "What you took as the target user is not so: people who walk"
    );
    let empty = [("about", "target user"), ("text", " ")];
    let refused = browser.send("/ideas/walks/say", &empty, Some(&proof)).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_text_is_text_on_every_page_that_shows_it() {
    let world = ServerWorld::new().await;
    let hostile = "<script>alert(1)</script> [x](javascript:alert(1)) ![p](http://evil.example/p.png) <img src=x onerror=alert(1)> </document> \u{202e}\u{1b}[31m";
    let begun = json!({ "text": hostile, "title": hostile, "slug": "walks" });
    assert_eq!(
        world.send("/api/ideation/sessions", &begun).await.status,
        201
    );
    let browser = Browser::new(&world).await;
    for path in ["/", "/ideas/walks"] {
        let page = browser.read(path).await;
        assert_eq!(page.status, 200, "{}", page.text);
        for bad in [
            "<script>alert",
            "<img src=x",
            "evil.example/p.png\"",
            "href=\"javascript",
            "\u{202e}",
            "\u{1b}",
        ] {
            assert!(!page.text.contains(bad), "{path} has {bad}: {}", page.text);
        }
        // The board shows the beginning of the title alone.
        let whole = path != "/";
        for shown in ["&lt;U+202E&gt;", "\u{241b}[31m"] {
            assert!(
                !whole || page.text.contains(shown),
                "{path} lacks {shown}: {}",
                page.text
            );
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_approves_exactly_what_it_showed_for_who_may() {
    let world = ServerWorld::new().await;
    let (spec, question) = world.specified().await;
    let browser = Browser::new(&world).await;
    let proof = browser.proof().await;
    let before = world.rows().await;
    let path = format!("/specifications/{spec}");
    let old = ropewalk_schemas::ContentHash::of(b"old").to_string();
    let refused = browser
        .send(&format!("{path}/approve"), &[("hash", &old)], Some(&proof))
        .await;
    assert_eq!(refused.status, 409);
    assert!(
        refused.text.contains("is not the newest revision"),
        "{}",
        refused.text
    );
    assert!(
        refused.text.contains(&format!("href=\"{path}\"")),
        "{}",
        refused.text
    );
    let answer = format!("/questions/{question}/answer");
    let bob = world.ask("POST", &answer, BOB).header("Accept", HTML);
    let bob = bob.header("Content-Type", "application/x-www-form-urlencoded");
    let bob = answered(bob.body("choice=merge")).await;
    assert_eq!(bob.status, 403);
    assert!(bob.text.contains("`bob` may not land"), "{}", bob.text);
    assert_eq!(world.rows().await, before);
    let bob = answered(world.ask("GET", &format!("/questions/{question}"), BOB)).await;
    assert!(
        bob.text.contains("<code>bob</code> may not land"),
        "{}",
        bob.text
    );
    browser
        .send(&answer, &[("choice", "leave")], Some(&proof))
        .await;
    let shown = world.read(&format!("/api/questions/{question}")).await;
    assert_eq!(
        (
            &shown["answer"]["choice"],
            &shown["answer"]["by"],
            &shown["answer"]["channel"]
        ),
        (&json!("leave"), &json!("ada"), &json!("page"))
    );
    let late = browser
        .send(&answer, &[("choice", "merge")], Some(&proof))
        .await;
    assert_eq!(late.status, 409, "{}", late.text);
    let new = ropewalk_schemas::ContentHash::of(b"new").to_string();
    browser
        .send(&format!("{path}/approve"), &[("hash", &new)], Some(&proof))
        .await;
    let shown = world.read(&format!("/api{path}")).await;
    assert_eq!(
        (&shown["state"], &shown["approval"]["by"]),
        (&json!("approved"), &json!("ada"))
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_said_on_a_page_to_browsers_and_in_json_to_programs() {
    let world = ServerWorld::new().await;
    let browser = Browser::new(&world).await;
    for path in [
        "/nowhere",
        "/ideas/none",
        "/specifications/x",
        "/builds/x",
        "/questions/x",
        "/knowledge/x",
        "/events/x",
        "/static/none",
    ] {
        let page = browser.read(path).await;
        assert_eq!(page.status, 404, "{path}");
        assert!(
            page.text.contains("<h1>There is nothing here</h1>"),
            "{path}: {}",
            page.text
        );
        assert!(
            page.text.contains("/builds") && !page.text.contains("/api/"),
            "{path}: {}",
            page.text
        );
    }
    let program = answered(
        world
            .ask("GET", "/api/builds/x", ADA)
            .header("Accept", HTML),
    )
    .await;
    assert_eq!(
        (program.status, &program.body["code"]),
        (404, &json!("unknown-id"))
    );
    let left = browser
        .send("/leave", &[], Some(&browser.proof().await))
        .await;
    assert!(left.text.contains("You are logged out"), "{}", left.text);
    assert_eq!(browser.read("/").await.status, 401);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_is_steered_by_the_buttons_that_make_sense() {
    let world = ServerWorld::new().await;
    world.specified().await;
    let build = world.built().await;
    let browser = Browser::new(&world).await;
    let proof = browser.proof().await;
    let path = format!("/builds/{build}");
    let page = browser.read(&path).await;
    let has = |page: &Answer, wish: &str| page.text.contains(&format!("action=\"{path}/{wish}\""));
    assert_eq!(
        (
            page.status,
            has(&page, "pause"),
            has(&page, "resume"),
            has(&page, "stop")
        ),
        (200, true, false, true),
        "{}",
        page.text
    );
    browser
        .send(&format!("{path}/pause"), &[], Some(&proof))
        .await;
    assert_eq!(world.events("build.pause").await.len(), 1);
    world.end(build).await;
    let page = browser.read(&path).await;
    assert_eq!(
        (
            has(&page, "pause"),
            has(&page, "resume"),
            has(&page, "stop")
        ),
        (false, true, false)
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_is_decided_about_on_its_page() {
    let world = ServerWorld::new().await;
    let key = dead_letter(&world).await;
    let browser = Browser::new(&world).await;
    let proof = browser.proof().await;
    let running = browser.read("/running").await.text;
    let path = format!("/dead-letters/{key}");
    assert!(running.contains(&format!("href=\"{path}\"")), "{running}");
    let page = browser.read(&path).await;
    assert!(page.text.contains("no such file"), "{}", page.text);
    let replay = format!("{path}/replay");
    let replayed = browser.send(&replay, &[], Some(&proof)).await;
    assert_eq!(replayed.status, 303, "{}", replayed.text);
    assert_eq!(state(&world).await, DeliveryState::Open);
    assert_eq!(browser.read(&path).await.status, 404);
    die(&world).await;
    let discard = format!("{path}/discard");
    let given_up = browser.send(&discard, &[], Some(&proof)).await;
    assert_eq!(given_up.status, 303, "{}", given_up.text);
    assert_eq!(state(&world).await, DeliveryState::Discarded);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_of_a_build_and_its_tasks_offer_what_they_can_take() {
    let world = ServerWorld::new().await;
    let build = world.built().await;
    world.task(build, "T-1", TaskState::Failed).await;
    let browser = Browser::new(&world).await;
    let proof = browser.proof().await;
    let path = format!("/builds/{build}");
    let task = format!("{path}/tasks/T-1");
    let offers = async |page: &str, form: &str| {
        let page = browser.read(page).await;
        assert_eq!(page.status, 200, "{}", page.text);
        page.text.contains(&format!("action=\"{form}\""))
    };
    let (tell, rank, land) = (
        format!("{path}/tell"),
        format!("{path}/priority"),
        format!("{path}/land"),
    );
    let (retry, advise) = (format!("{task}/retry"), format!("{task}/tell"));
    let landing = format!("{path}/landing");
    let early = browser.read(&landing).await;
    assert_eq!(early.status, 409, "{}", early.text);
    for (page, form, expected) in [
        (&path, &tell, true),
        (&path, &rank, true),
        (&path, &land, false),
        (&task, &retry, true),
        (&task, &advise, true),
    ] {
        assert_eq!(offers(page, form).await, expected, "{form}");
    }
    for (form, fields) in [
        (&retry, [("guidance", "in one file")]),
        (&advise, [("text", "mind the tests")]),
        (&tell, [("text", "mind the docs")]),
        (&rank, [("priority", "3")]),
    ] {
        let sent = browser.send(form, &fields, Some(&proof)).await;
        assert_eq!(sent.status, 303, "{form}: {}", sent.text);
    }
    let wrong = browser.send(&rank, &[("priority", "0")], Some(&proof));
    assert_eq!(wrong.await.status, 400);
    assert_eq!(world.events("task.retry").await.len(), 1);
    assert_eq!(world.events("build.tell").await.len(), 2);
    assert_eq!(world.events("build.priority").await.len(), 1);
    world.task(build, "T-1", TaskState::Complete).await;
    world
        .change(build, |build| build.state = BuildState::Succeeded)
        .await;
    for (page, form, expected) in [
        (&path, &tell, false),
        (&landing, &land, true),
        (&task, &retry, false),
        (&task, &advise, false),
    ] {
        assert_eq!(offers(page, form).await, expected, "{form}");
    }
    let page = browser.read(&landing).await.text;
    assert!(
        page.contains("<code>main</code> would move on to it."),
        "{page}"
    );
    let shown = format!("name=\"onto\" value=\"{}\"", "5".repeat(40));
    assert!(page.contains(&shown), "{page}");
    // It was shown before somebody else's commit.
    let before = "4".repeat(40);
    let stale = [("how", "land"), ("onto", &before)];
    let stale = browser.send(&land, &stale, Some(&proof)).await;
    assert_eq!(stale.status, 409, "{}", stale.text);
    assert!(stale.text.contains("has moved on since"), "{}", stale.text);
    let wish = world.services.store.get::<Wish>(&build.to_string()).await;
    assert_eq!(wish.unwrap(), None);
    let landed = browser.send(&land, &[("how", "land")], Some(&proof)).await;
    assert_eq!(landed.status, 303, "{}", landed.text);
    let wish = world.services.store.get::<Wish>(&build.to_string()).await;
    assert_eq!(wish.unwrap().unwrap().what, BranchWish::Merge);
    let page = browser.read(&path).await.text;
    assert!(page.contains("Landing was asked for by ada"), "{page}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn that_everything_is_stopped_stands_on_every_page_until_it_is_lifted() {
    let world = ServerWorld::new().await;
    let browser = Browser::new(&world).await;
    let proof = browser.proof().await;
    assert!(!browser.read("/").await.text.contains("stopped everything"));
    let stopped = browser
        .send("/halt", &[("reason", "too dear")], Some(&proof))
        .await;
    assert_eq!(stopped.status, 303, "{}", stopped.text);
    for path in ["/", "/builds", "/running"] {
        let page = browser.read(path).await.text;
        assert!(page.contains("ada stopped everything"), "{path}: {page}");
        assert!(page.contains("too dear"), "{path}: {page}");
    }
    let lifted = browser.send("/halt/lift", &[], Some(&proof)).await;
    assert_eq!(lifted.status, 303, "{}", lifted.text);
    assert!(!browser.read("/").await.text.contains("stopped everything"));
    world.stop().await;
}
