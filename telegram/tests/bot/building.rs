//! Builds are steered from a phone, by the verbs and rights of every other surface.

use std::time::Duration;

use anyhow::Context as _;
use ropewalk_schemas::agent::Component;
use ropewalk_schemas::build::{Build, BuildState, StopCause};
use ropewalk_schemas::question::QuestionState;
use ropewalk_schemas::review::Review;
use ropewalk_schemas::task::{Action, Task, TaskBlock, TaskState, Validation};
use ropewalk_schemas::wish::{BranchWish, Wish};
use ropewalk_schemas::{BuildId, CommitId, ContentHash, EventPattern, RepoPath, TaskId};
use ropewalk_store::{ChangeSet, EventFilter, Query};
use serde_json::{Value, json};

use crate::phones::{Message, Phones, until};
use crate::world::{ADA, BOB, BotWorld};

/// The head of the branch of a build.
const HEAD: char = 'a';

/// Stores a build of `idea` in a state, with a task that landed and one that failed.
pub(crate) async fn built(world: &BotWorld, idea: &str, state: &str) -> anyhow::Result<BuildId> {
    built_on(world, idea, state, &format!("build/{idea}")).await
}

/// Does the same where the build has this branch.
pub(crate) async fn built_on(
    world: &BotWorld,
    idea: &str,
    state: &str,
    branch: &str,
) -> anyhow::Result<BuildId> {
    let (ids, now) = (&world.services.ids, world.services.clock.now());
    let ended = (state != "running").then_some(now);
    let build: Build = serde_json::from_value(json!({
        "id": ids.next(), "spec": ids.next(), "revision": 1, "hash": ContentHash::of(b"new"),
        "idea": idea, "user": "ada", "state": state, "pause_requested": false,
        "branch": branch, "target": "main", "priority": 5, "working_ms": 0,
        "head": HEAD.to_string().repeat(40), "completed_at": ended,
        "correlation_id": ids.next(), "created_at": now,
    }))?;
    let mut changes = ChangeSet::new();
    changes.insert(&build);
    for (number, state) in [(1, TaskState::Complete), (2, TaskState::Failed)] {
        let id = TaskId::parse(&format!("T-00{number}"))?;
        let file = RepoPath::parse(&format!("src/{number}.rs"))?;
        let check = Validation::passes("true");
        let block = TaskBlock::new(id, "api", Action::Create, file, check);
        changes.insert(&Task {
            state,
            ..Task::planned(build.id, number, block)
        });
    }
    world.services.store.commit(changes).await?;
    Ok(build.id)
}

/// Returns what the events of a type say.
pub(crate) async fn events(
    world: &BotWorld,
    event_type: &'static str,
) -> anyhow::Result<Vec<Value>> {
    let filter = EventFilter {
        pattern: Some(EventPattern::of(event_type)),
        ..EventFilter::default()
    };
    let events = world.services.store.events(&filter).await?;
    Ok(events
        .iter()
        .map(|stored| stored.event.data.clone())
        .collect())
}

async fn wishes(world: &BotWorld) -> anyhow::Result<Vec<(BranchWish, String)>> {
    let wishes = world.services.store.list::<Wish>(Query::new()).await?;
    Ok(wishes
        .iter()
        .map(|wish| (wish.what, wish.by.clone()))
        .collect())
}

/// Writes in a chat and returns the next message there.
pub(crate) async fn told(phones: &Phones, chat: i64, text: &str) -> anyhow::Result<Message> {
    let before = phones.messages(chat).await?.len();
    phones.write(chat, chat, text).await?;
    until(text, || async {
        Ok(phones.messages(chat).await?.get(before).cloned())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_are_tried_again_told_and_ranked_from_a_phone() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let build = built(&world, "walks", "running").await?;
    for (typed, expected) in [
        ("/retry walks", "Name the task"),
        ("/retry walks T-009", "has no task T-009"),
        ("/retry T-001", "T-001"),
        (
            "/retry T-002 use metres",
            "Recorded: another try of T-002 of walks.",
        ),
        ("/tell", "say something"),
        ("/tell walks", "say something"),
        // Where one build runs, it need not be named.
        ("/tell use miles", "works on T-002 of walks hears it"),
        ("/tell walks use metres", "works on T-002 of walks hears it"),
        (
            "/tell walks T-002 and feet",
            "works on T-002 of walks hears it",
        ),
        ("/priority", "Say how urgent"),
        ("/priority walks 11", "Say how urgent"),
        ("/priority walks 2", "the build of walks has priority 2"),
        ("/priority 3", "the build of walks has priority 3"),
    ] {
        let told = told(&phones, ADA, typed).await?.text;
        assert!(told.contains(expected), "{typed}: {told}");
    }
    assert_eq!(
        events(&world, "task.retry").await?,
        [
            json!({ "build_id": build, "task_id": "T-002", "requested_by": "ada", "guidance": "use metres", "may_resume": true })
        ]
    );
    let said = |text: &str| json!({ "build_id": build, "task_id": "T-002", "said_by": "ada", "text": text });
    assert_eq!(
        events(&world, "build.tell").await?,
        [said("use miles"), said("use metres"), said("and feet")]
    );
    let rank =
        |priority: u8| json!({ "build_id": build, "priority": priority, "requested_by": "ada" });
    assert_eq!(events(&world, "build.priority").await?, [rank(2), rank(3)]);
    world.close().await
}

/// Returns the one build there is.
async fn the_build(world: &BotWorld, id: BuildId) -> anyhow::Result<Build> {
    let found = world.services.store.get::<Build>(&id.to_string()).await?;
    Ok(found.context("no build")?.into_inner())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_build_is_not_steered_by_whoever_may_not_stop_it() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let id = built(&world, "walks", "running").await?;
    let build = the_build(&world, id).await?;
    let before = world.services.store.last_sequence().await?;
    for typed in [
        "/pause walks",
        "/resume walks",
        "/stop walks",
        // The only one that runs is meant where none is named.
        "/pause",
        "/resume",
        "/stop",
    ] {
        let told = told(&phones, BOB, typed).await?;
        assert!(told.text.contains("bob may not stop"), "{typed}: {told:?}");
        assert_eq!(told.buttons, [], "{typed}");
    }
    assert_eq!(world.services.store.last_sequence().await?, before);
    assert_eq!(the_build(&world, id).await?, build);
    assert_eq!(wishes(&world).await?, []);
    // Whoever may is not kept from it.
    let told = told(&phones, ADA, "/stop walks").await?.text;
    assert_eq!(told, "Recorded: the build of walks stops.");
    assert_eq!(events(&world, "build.stop").await?.len(), 1);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_landing_is_shown_first_and_decided_once_by_a_button() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let build = built(&world, "walks", "succeeded").await?;
    built(&world, "rides", "running").await?;
    let told_bob = told(&phones, BOB, "/land walks").await?;
    assert!(told_bob.text.contains("bob may not land"), "{told_bob:?}");
    for (typed, expected) in [
        ("/land nope", "There is no build of nope"),
        ("/land rides", "is running"),
    ] {
        let told = told(&phones, ADA, typed).await?;
        assert!(told.text.contains(expected), "{typed}: {told:?}");
        assert_eq!(told.buttons, [], "{typed}");
    }
    let first = told(&phones, ADA, "/land").await?;
    for part in [
        "Land the build of walks?",
        "build/walks at aaaaaaaaaaaa goes into main",
        "Tasks: 1 complete, 1 failed, 0 skipped",
        "T-001 create src/1.rs",
    ] {
        assert!(first.text.contains(part), "{part}: {}", first.text);
    }
    let again = told(&phones, ADA, "/land walks").await?;
    let data = |shown: &Message, place: usize| shown.buttons[place].1.clone();

    // A button of what was shown before, one of somebody else and altered ones decide nothing.
    phones.press(ADA, ADA, first.id, &data(&first, 0)).await?;
    phones.shown("means nothing any more").await?;
    phones.press(BOB, BOB, again.id, &data(&again, 0)).await?;
    phones.shown("means nothing any more").await?;
    let (nonce, _) = again.buttons[0].1.split_once(':').unwrap_or_default();
    phones
        .press(ADA, ADA, again.id, &format!("{nonce}:2"))
        .await?;
    phones.shown("This button means nothing.").await?;
    assert_eq!(wishes(&world).await?, []);

    phones.press(ADA, ADA, again.id, &data(&again, 0)).await?;
    phones.shown("Recorded").await?;
    assert_eq!(
        wishes(&world).await?,
        [(BranchWish::Merge, "ada".to_owned())]
    );
    let edits = until("the buttons gone", || async {
        let edits = phones.did("editmessagetext").await?;
        Ok((!edits.is_empty()).then_some(edits))
    })
    .await?;
    let edited = &edits[0]["parameters"];
    assert_eq!(edited["text"], "ada lets the build of walks be landed.");
    assert_eq!((edits.len(), &edited["message_id"]), (1, &json!(again.id)));
    phones.press(ADA, ADA, again.id, &data(&again, 1)).await?;
    phones.shown("means nothing any more").await?;

    // What it comes to changed since it was shown.
    let shown = told(&phones, ADA, "/land walks").await?;
    move_head(&world, build).await?;
    phones.press(ADA, ADA, shown.id, &data(&shown, 1)).await?;
    phones.shown("What was shown is no longer so").await?;
    let shown = told(&phones, ADA, "/land walks").await?;
    phones.press(ADA, ADA, shown.id, &data(&shown, 1)).await?;
    phones.shown("Recorded").await?;
    assert_eq!(
        wishes(&world).await?,
        [(BranchWish::Resolve, "ada".to_owned())]
    );
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_yes_to_a_landing_holds_for_the_branch_that_it_was_shown_to_go_into() -> anyhow::Result<()>
{
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    built(&world, "walks", "succeeded").await?;
    let shown = told(&phones, ADA, "/land walks").await?;
    world.move_main(CommitId::parse(&"c".repeat(40))?);
    let yes = shown.buttons[0].1.clone();
    phones.press(ADA, ADA, shown.id, &yes).await?;
    phones.shown("What was shown is no longer so").await?;
    assert_eq!(wishes(&world).await?, []);
    let shown = told(&phones, ADA, "/land walks").await?;
    let yes = shown.buttons[0].1.clone();
    phones.press(ADA, ADA, shown.id, &yes).await?;
    phones.shown("Recorded").await?;
    assert_eq!(
        wishes(&world).await?,
        [(BranchWish::Merge, "ada".to_owned())]
    );
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_along_and_what_the_review_holds_against_it_is_told_with_a_landing()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let build = built(&world, "walks", "succeeded").await?;
    let against = "the review holds FR-6 for missed: planned help names both, done it names one";
    let shown = told(&phones, ADA, "/land walks").await?.text;
    for part in [
        "main would move on to it, once a gate has seen what that comes to.",
        "The documents of the idea come along in ideas/walks;",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert!(!shown.contains("for missed"), "{shown}");
    let review: Review = serde_json::from_value(json!({
        "id": world.services.ids.next(), "kind": "build", "idea": "walks", "build": build,
        "at": world.services.clock.now(), "divergences": [{ "class": "missed-requirement", "requirement": "FR-6",
            "planned": "help names both", "actual": "it names one" }],
    }))?;
    let mut changes = ChangeSet::new();
    changes.insert(&review);
    world.services.store.commit(changes).await?;
    let shown = told(&phones, ADA, "/land walks").await?;
    assert!(shown.text.contains(against), "{}", shown.text);
    // It refuses nothing.
    phones
        .press(ADA, ADA, shown.id, &shown.buttons[0].1)
        .await?;
    phones.shown("Recorded").await?;
    assert_eq!(
        wishes(&world).await?,
        [(BranchWish::Merge, "ada".to_owned())]
    );
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_press_that_takes_its_time_lets_nobody_wait_and_is_told_of_in_the_chat()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    built(&world, "walks", "succeeded").await?;
    let shown = told(&phones, ADA, "/land walks").await?;
    world.ask("missing_context", "Where?").await?;
    let asked = phones.message(ADA, "Where?").await?;
    world.look_for(Duration::from_secs(3));
    // Both come together, and what takes its time first.
    phones.fault("away").await?;
    phones
        .press(ADA, ADA, shown.id, &shown.buttons[0].1)
        .await?;
    phones
        .press(BOB, BOB, asked.id, &asked.buttons[0].1)
        .await?;
    phones.fault("none").await?;
    let answered = until("both answered", || async {
        let answered = phones.did("answercallbackquery").await?;
        Ok((answered.len() == 2).then_some(answered))
    })
    .await?;
    assert_eq!(wishes(&world).await?, [], "nothing came of it yet");
    for one in &answered {
        assert!(one["parameters"]["text"].is_null(), "without words: {one}");
    }
    phones
        .message(BOB, "This was asked of somebody else.")
        .await?;
    assert_eq!(
        wishes(&world).await?,
        [(BranchWish::Merge, "ada".to_owned())]
    );
    until("what stands in the place of the buttons", || async {
        let edits = phones.did("editmessagetext").await?;
        let text = |edit: &Value| edit["parameters"]["text"].to_string();
        let is_told = |edit: &Value| text(edit).contains("ada lets the build of walks be landed");
        Ok(edits.iter().any(is_told).then_some(()))
    })
    .await?;
    let answered = phones.did("answercallbackquery").await?;
    assert_eq!(answered.len(), 2, "each once: {answered:?}");
    world.close().await
}

async fn move_head(world: &BotWorld, build: BuildId) -> anyhow::Result<()> {
    let head = Some(CommitId::parse(&"b".repeat(40))?);
    change(world, build, |build| build.head.clone_from(&head)).await
}

/// Changes a build as it is stored.
pub(crate) async fn change(
    world: &BotWorld,
    build: BuildId,
    change: impl FnOnce(&mut Build),
) -> anyhow::Result<()> {
    let store = &world.services.store;
    let found = store.get::<Build>(&build.to_string()).await?;
    let found = found.context("no build")?;
    let mut after = found.record.clone();
    change(&mut after);
    let mut changes = ChangeSet::new();
    changes.update(&found, &after);
    store.commit(changes).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_build_that_can_do_it_is_meant_and_of_several_the_one_whose_button_is_pressed()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let first = built(&world, "walks", "running").await?;
    let second = built_on(&world, "walks", "running", "build/walks-2").await?;
    let wished = |build: BuildId| json!({ "build_id": build, "requested_by": "ada" });
    for typed in ["/stop", "/stop walks"] {
        let asked = told(&phones, ADA, typed).await?;
        for part in [
            "• walks on build/walks-2: running",
            "• walks on build/walks: running",
        ] {
            assert!(asked.text.contains(part), "{typed}: {}", asked.text);
        }
        assert_eq!(asked.buttons.len(), 2, "{typed}");
    }
    assert!(events(&world, "build.stop").await?.is_empty());
    let asked = told(&phones, ADA, "/stop").await?;
    let button = asked.buttons.iter();
    let mut button = button.filter(|(label, _)| label.starts_with("build/walks "));
    let (_, data) = button.next().context("no button of the first")?;
    // It does what typing it would, for who presses it.
    phones.press(BOB, BOB, asked.id, data).await?;
    phones.message(BOB, "bob may not stop").await?;
    assert!(events(&world, "build.stop").await?.is_empty());
    phones.press(ADA, ADA, asked.id, data).await?;
    let says = "Recorded: the build of walks on build/walks stops.";
    phones.message(ADA, says).await?;
    assert_eq!(events(&world, "build.stop").await?, [wished(first)]);

    let now = world.services.clock.now();
    change(&world, first, |build| {
        build.state = BuildState::Stopped;
        build.stop = Some(StopCause::Person);
        build.completed_at = Some(now);
    })
    .await?;
    // One runs, and one stands still.
    for (typed, says, event, build) in [
        ("/pause", "on build/walks-2 pauses", "build.pause", second),
        ("/resume", "on build/walks goes on.", "build.resume", first),
        (
            "/stop walks",
            "on build/walks-2 stops",
            "build.stop",
            second,
        ),
    ] {
        let said = told(&phones, ADA, typed).await?.text;
        assert!(said.contains(says), "{typed}: {said}");
        let recorded = events(&world, event).await?;
        assert_eq!(recorded.last(), Some(&wished(build)), "{typed}");
    }
    let told_so = told(&phones, ADA, "/stop walks-9").await?.text;
    assert!(
        told_so.contains("There is no build of walks-9"),
        "{told_so}"
    );
    let heard = told(&phones, ADA, "/tell build/walks-2 use metres")
        .await?
        .text;
    assert!(
        heard.contains("of walks on build/walks-2 hears it"),
        "{heard}"
    );
    assert_eq!(
        events(&world, "build.tell").await?[0]["build_id"],
        json!(second)
    );
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bare_wish_lets_nothing_go_on_that_failed_and_says_what_pauses_already()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    built(&world, "walks", "failed").await?;
    let rivers = built(&world, "rivers", "running").await?;
    let asked = told(&phones, ADA, "/resume").await?;
    assert!(
        asked.text.starts_with("Several builds could be meant"),
        "{}",
        asked.text
    );
    assert!(events(&world, "build.resume").await?.is_empty());
    let dogs = built(&world, "dogs", "running").await?;
    for build in [rivers, dogs] {
        change(&world, build, |build| build.pause_requested = true).await?;
    }
    let pauses = told(&phones, ADA, "/pause").await?.text;
    assert_eq!(pauses, "Every build that runs pauses already.");
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_phone_is_shown_is_what_the_store_holds() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    built(&world, "walks", "running").await?;
    built(&world, "rivers", "running").await?;
    built(&world, "dogs", "failed").await?;
    let first = world.ask("missing_context", "Which way?").await?;
    world.ask_what_binds("build_finished", "Merge?").await?;
    // Both are told before anything else is asked for.
    phones.message(ADA, "Merge?").await?;
    phones.message(ADA, "Which way?").await?;
    let status = told(&phones, ADA, "/status").await?.text;
    assert_eq!(
        status,
        "walks: running, 1 of 2 tasks complete\n\
         • T-002 is failed\n\
         rivers: running, 1 of 2 tasks complete\n\
         • T-002 is failed\n\
         2 questions are open; /questions puts them again."
    );
    let summary = told(&phones, ADA, "/summary").await?.text;
    for part in [
        "Questions: 2 asked.",
        "walks is running, 1 of 2 tasks complete; rivers is running, 1 of 2 tasks complete.",
        "Open: 2 questions.",
        "Recommended: answer what is asked",
    ] {
        assert!(summary.contains(part), "{part} in {summary}");
    }
    let asked = phones.message(ADA, "Which way?").await?;
    phones
        .press(ADA, ADA, asked.id, &asked.buttons[0].1)
        .await?;
    phones.shown("Taken: Merge it").await?;
    assert_eq!(world.question(first).await?.state, QuestionState::Answered);
    let status = told(&phones, ADA, "/status").await?.text;
    assert!(status.ends_with("1 question is open; /questions puts it again."));
    let parts = world.services.store.list::<Component>(Query::new()).await?;
    let agents = told(&phones, ADA, "/agents").await?.text;
    assert!(!parts.is_empty());
    for part in parts {
        let line = format!("{}: ", part.name);
        assert!(agents.contains(&line), "{line} in {agents}");
    }
    world.close().await
}
