//! How everything stands: what a look finds, what a build owns, and who waits for whom, in a picture.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ropewalk_schemas::agent::{AgentState, Component};
use ropewalk_schemas::build::{BuildState, Predecessor};
use ropewalk_schemas::lease::{Lease, Ownership};
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::wait::{Party, Resource, Wait};
use ropewalk_schemas::{BuildId, CommitId, ComponentName, RepoPath, Slug, TaskId};
use ropewalk_server::Capacity;
use ropewalk_store::{ChangeSet, task_key};
use serde_json::json;

use crate::browser::{Browser, HTML};
use crate::world::{ADA, ServerWorld, answered};

#[tokio::test(flavor = "multi_thread")]
async fn what_a_look_finds_stands_on_a_page_in_the_words_of_the_terminal() {
    let world = ServerWorld::new().await;
    let looked = world.read("/api/doctor").await;
    let checks: Vec<(&str, &str)> = looked["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| {
            let text = |name: &str| finding[name].as_str().unwrap();
            (text("check"), text("verdict"))
        })
        .collect();
    assert_eq!(checks, [("git", "ok"), ("bus", "fail"), ("disk", "warn")]);
    let page = Browser::new(&world).await.read("/health").await.text;
    assert!(
        page.contains("<span class=\"state bad\">fail</span>"),
        "{page}"
    );
    assert!(page.contains("start <code>nats-server</code>"), "{page}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_again_and_again_how_everything_is_lets_nobody_look_each_time() {
    let world = ServerWorld::new().await;
    let browser = Browser::new(&world).await;
    let looks = || world.looks.load(Ordering::Relaxed);
    let began = Instant::now();
    let all = (0..32).map(|_| world.read("/api/doctor"));
    let all = futures::future::join_all(all).await;
    assert!(all.iter().all(|looked| looked == &all[0]), "{all:#?}");
    browser.read("/health").await;
    let spans = began.elapsed().as_secs() / 5;
    let asked = u64::try_from(looks()).unwrap();
    assert!((1..=1 + spans).contains(&asked), "{asked} in {began:?}");
    // What was found is not believed for ever.
    while looks() == 1 {
        assert!(began.elapsed() < Duration::from_mins(1), "nobody looks");
        tokio::time::sleep(Duration::from_millis(100)).await;
        world.read("/api/doctor").await;
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_that_never_ends_is_answered_in_time_and_keeps_nobody_from_another() {
    let world = ServerWorld::holding(Capacity {
        answers: Duration::from_secs(2),
        ..Capacity::default()
    })
    .await;
    world.stalls.store(true, Ordering::Relaxed);
    let slow = answered(world.ask("GET", "/api/doctor", ADA)).await;
    assert_eq!(
        (slow.status, slow.body["code"].as_str()),
        (504, Some("slow")),
        "{}",
        slow.text
    );
    assert!(slow.body["next"].is_string(), "{}", slow.text);
    let page = world.ask("GET", "/health", ADA).header("Accept", HTML);
    let page = answered(page).await;
    assert_eq!(page.status, 504, "{}", page.text);
    assert!(page.text.contains("This takes too long"), "{}", page.text);
    // What was begun is given up, and holds nobody up.
    world.stalls.store(false, Ordering::Relaxed);
    let looked = world.read("/api/doctor").await;
    assert_eq!(looked["findings"][0]["check"], "git", "{looked}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_parts_work_on_is_said_in_words() {
    let world = ServerWorld::new().await;
    let build = world.built().await;
    world.task(build, "T-1", TaskState::Working).await;
    let key = task_key(build, &TaskId::parse("T-1").unwrap());
    let task = world.services.store.get::<Task>(&key).await.unwrap();
    let mut task = task.unwrap().into_inner();
    task.block.title = Some("Count the steps".to_owned());
    let mut changes = ChangeSet::new();
    changes.put(&task);
    let now = world.services.clock.now();
    let gone = BuildId(world.services.ids.next());
    for (name, entity) in [
        ("loop-1-1", format!("task/{build}/T-1")),
        ("pm", format!("build/{build}")),
        ("questions", format!("timer/{}", world.services.ids.next())),
        ("ideation", "idea/walks".to_owned()),
        ("monitor", format!("build/{gone}")),
    ] {
        changes.put(&Component {
            name: ComponentName::parse(name).unwrap(),
            role: "build".to_owned(),
            process: "ropewalk-1".to_owned(),
            state: AgentState::Active,
            working_on: Some(entity),
            since: now,
            last_seen: now,
            stopped: false,
        });
    }
    world.services.store.commit(changes).await.unwrap();
    let page = Browser::new(&world).await.read("/running").await.text;
    for words in [
        "task T-1 of walks: Count the steps",
        "the build of walks",
        "a timer",
        "the idea walks",
        // What is gone has no words.
        &format!("build/{gone}"),
    ] {
        let cell = format!("<td data-of=\"Works on\">{words}</td>");
        assert!(page.contains(&cell), "{words}: {page}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_build_owns_is_listed_until_it_is_merged() {
    let world = ServerWorld::new().await;
    let build = world.built().await;
    let mut changes = ChangeSet::new();
    for (path, ended) in [("src/walks.rs", false), ("a.txt", false), ("old.txt", true)] {
        changes.insert(&Ownership {
            path: RepoPath::parse(path).unwrap(),
            build,
            since: world.services.clock.now(),
            ended,
            after: None,
        });
    }
    world.services.store.commit(changes).await.unwrap();
    let browser = Browser::new(&world).await;
    let path = format!("/builds/{build}");
    let shown = world.read(&format!("/api{path}")).await;
    assert_eq!(shown["owns"], serde_json::json!(["a.txt", "src/walks.rs"]));
    let page = browser.read(&path).await.text;
    assert!(page.contains("It owns 2 files"), "{page}");
    assert!(
        page.contains("<li><code>src/walks.rs</code></li>"),
        "{page}"
    );
    let commit = CommitId::parse(&"a".repeat(40)).unwrap();
    world
        .change(build, |build| build.merged = Some(commit))
        .await;
    let shown = world.read(&format!("/api{path}")).await;
    assert_eq!(shown["owns"], serde_json::json!([]));
    let page = browser.read(&path).await.text;
    assert!(!page.contains("It owns"), "{page}");
    world.stop().await;
}

fn task(build: BuildId, id: &str) -> Party {
    let task = TaskId::parse(id).unwrap();
    Party::Task { build, task }
}

/// Returns how far right the box of a name stands in a picture.
fn place(page: &str, name: &str) -> usize {
    let mut boxes = page.split("<text class=\"id\" x=\"").skip(1);
    let named = format!(">{name}</text>");
    let found = boxes.find(|text| {
        text.split_once('>')
            .is_some_and(|(_, rest)| format!(">{rest}").starts_with(&named))
    });
    found.unwrap().split('"').next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_stands_right_of_what_it_waits_for() {
    let world = ServerWorld::new().await;
    let build = world.built().await;
    for id in ["T-001", "T-002", "T-003"] {
        world.task(build, id, TaskState::Waiting).await;
    }
    let path = RepoPath::parse("src/walks.rs").unwrap();
    let provider = "scripted".to_owned();
    let mut changes = ChangeSet::new();
    for (waiter, resource, holder) in [
        ("T-001", Resource::Quota { provider }, None),
        (
            "T-002",
            Resource::Lease { path: path.clone() },
            Some("T-001"),
        ),
        ("T-003", Resource::Ownership { path }, Some("T-002")),
    ] {
        changes.insert(&Wait {
            waiter: task(build, waiter),
            resource,
            holder: holder.map(|id| task(build, id)),
            since: world.services.clock.now(),
        });
    }
    let browser = Browser::new(&world).await;
    let page = browser.read("/running").await.text;
    assert!(!page.contains("<svg viewBox"), "nobody waits yet: {page}");
    world.services.store.commit(changes).await.unwrap();
    let page = browser.read("/running").await.text;
    assert!(
        page.contains("aria-label=\"Who waits for whom, and who holds what\""),
        "{page}"
    );
    let names = [
        "the quota of scripted",
        "T-001 of walks",
        "src/walks.rs, locked",
        "T-002 of walks",
        "src/walks.rs, owned",
        "T-003 of walks",
    ];
    let places = names.map(|name| place(&page, name));
    assert!(
        places.is_sorted_by(|left, right| left < right),
        "{places:?}"
    );
    let link = format!(
        "<a href=\"/builds/{build}/tasks/T-003\"><title>{}",
        names[5]
    );
    assert!(page.contains(&link), "{page}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_file_stands_right_of_whoever_holds_it_also_where_nobody_waits() {
    let world = ServerWorld::new().await;
    let build = world.built().await;
    let mut changes = ChangeSet::new();
    for (path, task, state) in [
        ("a.txt", "T-001", "granted"),
        ("b.txt", "T-001", "granted"),
        ("c.txt", "T-002", "released"),
    ] {
        let lease: Lease = serde_json::from_value(json!({
            "path": path, "state": state, "token": 1, "renewals": 0, "ttl_ms": 60_000, "reason": "to count",
            "granted_at": world.services.clock.now(), "holder": { "build": build, "task": task, "loop_name": "loop-1-1",
            "attempt": world.services.ids.next(), "priority": 5 },
        }))
        .unwrap();
        changes.insert(&lease);
    }
    world.services.store.commit(changes).await.unwrap();
    let page = Browser::new(&world).await.read("/running").await.text;
    let holder = place(&page, "T-001 of walks");
    for file in ["a.txt, locked", "b.txt, locked"] {
        assert!(place(&page, file) > holder, "{file}: {page}");
    }
    let row = format!(
        "<td data-of=\"File\"><code>a.txt</code></td><td data-of=\"Held by\"><a class=\"id\" href=\"/builds/{build}/tasks/T-001\">\
         T-001</a></td><td data-of=\"Loop\">loop-1-1</td>"
    );
    assert!(page.contains(&row), "{page}");
    assert!(!page.contains("c.txt"), "{page}");
    let shown = world.read("/api/locks").await;
    let held = shown["items"].as_array().unwrap().iter();
    let held: Vec<&str> = held.map(|lock| lock["path"].as_str().unwrap()).collect();
    assert_eq!(held, ["a.txt", "b.txt"]);
    world.stop().await;
}

/// Stores that a build owns files.
async fn own(world: &ServerWorld, build: BuildId, files: &[String]) {
    let mut changes = ChangeSet::new();
    for path in files {
        changes.insert(&Ownership {
            path: RepoPath::parse(path).unwrap(),
            build,
            since: world.services.clock.now(),
            ended: false,
            after: None,
        });
    }
    world.services.store.commit(changes).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owned_file_stands_right_of_its_build_also_where_nobody_waits_and_many_are_folded() {
    let world = ServerWorld::new().await;
    let browser = Browser::new(&world).await;
    let [build, merged] = [world.built().await, world.built().await];
    own(&world, build, &["a.txt", "b.txt"].map(str::to_owned)).await;
    own(&world, merged, &["gone.txt".to_owned()]).await;
    world
        .change(merged, |build| {
            build.idea = Slug::parse("swims").unwrap();
            build.merged = CommitId::parse(&"a".repeat(40)).ok();
        })
        .await;
    let page = browser.read("/running").await.text;
    let owner = place(&page, "the build of walks");
    for file in ["a.txt, owned", "b.txt, owned"] {
        assert!(place(&page, file) > owner, "{file}: {page}");
    }
    let link = format!("<a href=\"/builds/{build}\"><title>the build of walks</title>");
    assert!(page.contains(&link), "{page}");
    assert!(
        !page.contains("gone.txt") && !page.contains("further"),
        "{page}"
    );
    let many = (0..50).map(|number| format!("many/{number}.txt"));
    own(&world, build, &many.collect::<Vec<_>>()).await;
    let page = browser.read("/running").await.text;
    let boxes = page.matches(", owned</title>").count() + page.matches(", owned:").count();
    assert_eq!(boxes, 40, "{page}");
    let rest = "12 further files, owned by the build of walks";
    assert!(
        page.contains(&format!("<a href=\"/builds/{build}\"><title>{rest}")),
        "{page}"
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idea_says_how_it_stands_to_others_until_they_are_merged() {
    let world = ServerWorld::new().await;
    for title in ["Walks", "Runs", "Swims"] {
        let begun = world
            .send("/api/ideation/sessions", &json!({ "text": title }))
            .await;
        assert_eq!(begun.status, 201, "{}", begun.text);
    }
    let [walks, runs, swims] = [
        world.built().await,
        world.built().await,
        world.built().await,
    ];
    let first = Predecessor {
        build: walks,
        commit: CommitId::parse(&"a".repeat(40)).unwrap(),
    };
    let of = |idea: &str| Slug::parse(idea).unwrap();
    world
        .change(runs, |build| {
            (build.idea, build.follows) = (of("runs"), vec![first]);
        })
        .await;
    world.change(swims, |build| build.idea = of("swims")).await;
    world.task(swims, "T-001", TaskState::Waiting).await;
    let path = RepoPath::parse("src/walks.rs").unwrap();
    let mut changes = ChangeSet::new();
    changes.insert(&Wait {
        waiter: task(swims, "T-001"),
        resource: Resource::Ownership { path },
        holder: Some(Party::Build { build: walks }),
        since: world.services.clock.now(),
    });
    world.services.store.commit(changes).await.unwrap();
    let related = async |idea: &str| {
        let path = format!("/api/ideation/sessions/{idea}");
        world.read(&path).await["relations"].clone()
    };
    assert_eq!(
        related("walks").await,
        json!([
            { "kind": "is-built-on-by", "idea": "runs" },
            { "kind": "holds-up", "idea": "swims" },
        ])
    );
    let builds_on = json!([{ "kind": "builds-on", "idea": "walks" }]);
    assert_eq!(related("runs").await, builds_on);
    let waits_for = json!([{ "kind": "waits-for", "idea": "walks" }]);
    assert_eq!(related("swims").await, waits_for);
    let page = Browser::new(&world).await.read("/ideas/runs").await.text;
    let said = "It builds on <a href=\"/ideas/walks\">walks</a>";
    assert!(page.contains(said), "{page}");
    // What is merged stands in nobody's way.
    let merged = CommitId::parse(&"b".repeat(40)).unwrap();
    world
        .change(walks, |build| build.merged = Some(merged))
        .await;
    for idea in ["walks", "runs", "swims"] {
        assert_eq!(related(idea).await, json!([]), "{idea}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_offered_for_an_answer_only_while_it_is_open() {
    let world = ServerWorld::new().await;
    let (_, question) = world.specified().await;
    let build = world.built().await;
    world.task(build, "T-1", TaskState::Blocked).await;
    let (store, task) = (
        &world.services.store,
        task_key(build, &TaskId::parse("T-1").unwrap()),
    );
    let found = store.get::<Task>(&task).await.unwrap().unwrap();
    let asked = Task {
        question: Some(question),
        ..found.record.clone()
    };
    let mut changes = ChangeSet::new();
    changes.update(&found, &asked);
    store.commit(changes).await.unwrap();
    world
        .change(build, |build| build.question = Some(question))
        .await;
    let browser = Browser::new(&world).await;
    let path = format!("/builds/{build}");
    let link = format!("href=\"/questions/{question}\"");
    let offered = async || {
        let (whole, one) = (
            browser.read(&path).await.text,
            browser.read(&format!("{path}/tasks/T-1")).await.text,
        );
        [whole.matches(&link).count(), one.matches(&link).count()]
    };
    assert_eq!(offered().await, [2, 1]);
    let found = store.get::<Question>(&question.to_string()).await.unwrap();
    let found = found.unwrap();
    let closed = Question {
        state: QuestionState::Superseded,
        ..found.record.clone()
    };
    let mut changes = ChangeSet::new();
    changes.update(&found, &closed);
    store.commit(changes).await.unwrap();
    assert_eq!(offered().await, [0, 0]);
    let shown = world.read(&format!("/api{path}")).await;
    assert_eq!(shown["tasks"][0]["question"], json!(null));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_that_is_paused_is_not_about_to_be_and_says_nothing_of_a_quote_that_held() {
    let world = ServerWorld::new().await;
    let build = world.built().await;
    let browser = Browser::new(&world).await;
    let now = world.services.clock.now();
    let quote = || {
        let quote = json!({ "tokens_low": 0, "tokens_high": 9, "basis": "guessed" });
        serde_json::from_value(quote).unwrap()
    };
    for (state, ended, pauses) in [
        (BuildState::Running, None, true),
        (BuildState::Paused, None, false),
        (BuildState::Failed, Some(now), false),
    ] {
        world
            .change(build, |build| {
                build.pause_requested = true;
                build.state = state;
                build.completed_at = ended;
                build.quote = Some(quote());
            })
            .await;
        let page = browser.read(&format!("/builds/{build}")).await.text;
        let said = page.contains("pauses once running tasks have ended");
        assert_eq!(said, pauses, "{state}: {page}");
        for told in ["<dt>so far</dt>", "<dt>came to</dt>"] {
            assert!(!page.contains(told), "{state}: {page}");
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idea_that_is_abandoned_says_by_whom_and_why() {
    let world = ServerWorld::new().await;
    world.specified().await;
    let browser = Browser::new(&world).await;
    let proof = browser.proof().await;
    let before = browser.read("/ideas/walks").await.text;
    assert!(!before.contains("abandoned it"), "{before}");
    let fields = [("reason", "too <i>dear</i>")];
    let sent = browser
        .send("/ideas/walks/abandon", &fields, Some(&proof))
        .await;
    assert_eq!(sent.status, 303, "{}", sent.text);
    let page = browser.read("/ideas/walks").await.text;
    assert!(page.contains("ada abandoned it <time"), "{page}");
    assert!(
        page.contains("</time>: too &#60;i&#62;dear&#60;/i&#62;"),
        "{page}"
    );
    let shown = world.read("/api/ideation/sessions/walks").await;
    let abandoned = &shown["abandoned"];
    assert_eq!(
        (&abandoned["by"], &abandoned["reason"]),
        (&json!("ada"), &json!("too <i>dear</i>"))
    );
    world.stop().await;
}
