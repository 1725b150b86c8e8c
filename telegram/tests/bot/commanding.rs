//! What a command does is done, and odd things that Telegram may bring do nothing and keep nobody from being heard.

use anyhow::Context as _;
use ropewalk_desk::phones as linking;
use ropewalk_orchestrator::questions::QuestionRequest;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::idea::{Author, Idea, Message};
use ropewalk_schemas::question::{About, Choice, Content, QuestionState};
use ropewalk_schemas::specification::{Revision, Specification};
use ropewalk_schemas::{ChoiceId, ContentHash, SpecId, UserSlug};
use ropewalk_store::{ChangeSet, EventFilter, Query};
use serde_json::json;

use crate::building::{built, events, told};
use crate::phones::{self, Phones, until};
use crate::world::{ADA, BOB, BotWorld, asking, people};

/// Waits for the words of people in the conversation about an idea.
async fn words_of(world: &BotWorld, idea: &str, wanted: usize) -> anyhow::Result<Vec<String>> {
    let store = &world.services.store;
    until("the words", || async {
        let idea = store.get::<Idea>(idea).await?.context("no such idea")?;
        let of_it = Query::new().equal("session", idea.session);
        let messages = store.list::<Message>(of_it).await?.into_iter();
        let words = messages.filter(|message| message.author == Author::Person);
        let words: Vec<String> = words.map(|message| message.text.clone()).collect();
        Ok((words.len() >= wanted).then_some(words))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ideas_are_turned_to_and_ended_and_builds_stopped_from_a_phone() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    for typed in ["/newtask Walks", "/newtask Rivers"] {
        let told = told(&phones, ADA, typed).await?.text;
        assert!(told.contains("It is the idea"), "{typed}: {told}");
    }
    let turned = told(&phones, ADA, "/idea walks").await?.text;
    assert_eq!(turned, "What you write belongs to walks now.");
    phones.write(ADA, ADA, "With dogs").await?;
    assert_eq!(words_of(&world, "walks", 2).await?[1], "With dogs");
    assert_eq!(words_of(&world, "rivers", 1).await?.len(), 1);

    // The one that is talked about, and one that is named.
    for (typed, idea) in [("/done", "walks"), ("/done rivers", "rivers")] {
        let told = told(&phones, ADA, typed).await?.text;
        assert_eq!(told, "Its brief is being written.", "{typed}");
        let said = events(&world, "ideation.message").await?;
        let last = said.last().context("nothing said")?;
        assert_eq!(
            (&last["idea_slug"], &last["ends"]),
            (&json!(idea), &json!(true))
        );
    }

    let build = built(&world, "walks", "running").await?;
    for (typed, does, event) in [
        ("/pause walks", "pauses", "build.pause"),
        ("/resume walks", "goes on; it runs already", "build.resume"),
        ("/stop walks", "stops", "build.stop"),
    ] {
        let said = told(&phones, ADA, typed).await?.text;
        assert_eq!(said, format!("Recorded: the build of walks {does}."));
        let wished = json!({ "build_id": build, "requested_by": "ada" });
        assert_eq!(events(&world, event).await?, [wished], "{typed}");
    }

    let greeted = told(&phones, ADA, "/start").await?.text;
    assert!(
        greeted.contains("/status: where the builds stand"),
        "{greeted}"
    );
    // Whoever is linked stays who they are, whatever code they have.
    let cleo = UserSlug::parse("cleo")?;
    let code = linking::code(&world.context()?, &people()?, &cleo).await?;
    let greeted = told(&phones, ADA, &format!("/start {code}")).await?.text;
    assert!(!greeted.contains("cleo"), "{greeted}");
    let phone = linking::of(&world.services.store, &cleo).await?;
    assert_eq!(phone.linked, None);
    let settings = told(&phones, ADA, "/settings").await?.text;
    for part in [
        "You are ada.",
        "What nobody answers goes to everybody after 60 minutes",
        "you may: approve, land, spend, stop.",
        "[people.ada]",
    ] {
        assert!(settings.contains(part), "{part} in {settings}");
    }
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_much_is_planned_as_anywhere_else_unless_a_phone_says_how_much() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    for typed in ["/newtask Walks", "/newtask Rivers", "/newtask Dogs"] {
        told(&phones, ADA, typed).await?;
    }
    for (typed, idea, complexity) in [
        ("/execute", "dogs", "medium"),
        ("/execute Walks  Complex", "walks", "complex"),
        ("/execute rivers simple", "rivers", "simple"),
    ] {
        let said = told(&phones, ADA, typed).await?.text;
        let begins = format!("The specification of {idea} is being written");
        assert!(said.starts_with(&begins), "{typed}: {said}");
        let asked = events(&world, "spec.requested").await?;
        let last = asked.last().context("nothing asked for")?;
        assert_eq!(
            (&last["idea_slug"], &last["complexity"]),
            (&json!(idea), &json!(complexity)),
            "{typed}"
        );
    }
    // A size that stands alone is one where no idea is called so, and what is no size belongs to the name.
    told(&phones, ADA, "/newtask Cats").await?;
    for (typed, expected) in [
        ("/execute simple", "The specification of cats is being"),
        ("/execute walks huge", "is not a valid"),
    ] {
        let said = told(&phones, ADA, typed).await?.text;
        assert!(said.contains(expected), "{typed}: {said}");
    }
    let asked = events(&world, "spec.requested").await?;
    let last = asked.last().map(|last| &last["complexity"]);
    assert_eq!((asked.len(), last), (4, Some(&json!("simple"))));
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idea_is_named_by_a_part_of_its_name_or_by_its_button() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    for typed in ["/newtask Flat bills", "/newtask Flat walks"] {
        told(&phones, ADA, typed).await?;
    }
    for (typed, expected) in [
        ("/idea flat-b", "What you write belongs to flat-bills now."),
        ("/idea walks", "What you write belongs to flat-walks now."),
        ("/idea Bills", "What you write belongs to flat-bills now."),
        ("/idea rivers", "No idea is called rivers"),
        ("/done flat", "flat fits 2 ideas: flat-bills, flat-walks."),
        ("/spec walks", "flat-walks has no specification yet"),
    ] {
        let told = told(&phones, ADA, typed).await?.text;
        assert!(told.contains(expected), "{typed}: {told}");
    }
    let several = told(&phones, ADA, "/idea flat").await?;
    let listed = told(&phones, ADA, "/ideas").await?;
    for shown in [several, listed] {
        let button = shown.buttons.iter();
        let mut button = button.filter(|(label, _)| label == "flat-walks");
        let (_, data) = button.next().context("no button")?;
        told(&phones, ADA, "/idea bills").await?;
        phones.press(ADA, ADA, shown.id, data).await?;
        until("the other idea", || async {
            let ada = UserSlug::parse("ada")?;
            let phone = linking::of(&world.services.store, &ada).await?;
            let is_it = phone.idea.is_some_and(|idea| idea.as_str() == "flat-walks");
            Ok(is_it.then_some(()))
        })
        .await?;
    }
    world.close().await
}

/// Adds a specification of an idea that waits for an approval.
pub(crate) async fn generated(world: &BotWorld, idea: &str) -> anyhow::Result<SpecId> {
    specified(world, idea, "generated").await
}

/// Adds a specification of an idea in a state.
pub(crate) async fn specified(world: &BotWorld, idea: &str, state: &str) -> anyhow::Result<SpecId> {
    let mut changes = ChangeSet::new();
    let spec = add_specification(&mut changes, world, (idea, state))?;
    world.services.store.commit(changes).await?;
    Ok(spec)
}

fn add_specification(
    changes: &mut ChangeSet,
    world: &BotWorld,
    (idea, state): (&str, &str),
) -> anyhow::Result<SpecId> {
    let (ids, now) = (&world.services.ids, world.services.clock.now());
    let spec: Specification = serde_json::from_value(json!({
        "id": ids.next(), "idea": idea, "user": "ada", "state": state, "revision": 1,
        "hash": ContentHash::of(idea.as_bytes()), "complexity": "simple", "requested_by": "ada",
        "correlation_id": ids.next(), "created_at": now, "updated_at": now,
    }))?;
    changes.insert(&spec);
    Ok(spec.id)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_whose_specification_is_not_approved_is_refused_in_those_words()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let mut changes = ChangeSet::new();
    for of in [
        ("walks", "generated"),
        ("rivers", "draft"),
        ("dogs", "rejected"),
    ] {
        add_specification(&mut changes, &world, of)?;
    }
    world.services.store.commit(changes).await?;
    for (typed, expected) in [
        (
            "/pause walks",
            "The specification of walks is not approved; /execute walks shows",
        ),
        (
            "/resume walks",
            "The specification of walks is not approved",
        ),
        ("/stop walks", "The specification of walks is not approved"),
        ("/land walks", "The specification of walks is not approved"),
        (
            "/tell walks use metres",
            "The specification of walks is not approved",
        ),
        (
            "/retry walks T-001",
            "The specification of walks is not approved",
        ),
        (
            "/priority walks 2",
            "The specification of walks is not approved",
        ),
        ("/pause rivers", "is not approved; it is being written"),
        ("/pause dogs", "is not approved; it was rejected"),
        ("/pause nope", "There is no build of nope"),
    ] {
        let told = told(&phones, ADA, typed).await?.text;
        assert!(told.contains(expected), "{typed}: {told}");
    }
    assert_eq!(world.services.store.count::<Build>(Query::new()).await?, 0);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_and_approvals_are_refused_to_who_has_not_the_right_and_nothing_changes()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    for (trigger, choice, right) in [
        ("budget_exceeded", "double", "spend"),
        ("spec_complete", "start", "approve"),
    ] {
        let text = format!("May {right}?");
        let asking = QuestionRequest {
            choices: vec![Choice::new(ChoiceId::parse(choice)?, "Yes")],
            consequential: true,
            free_text: false,
            ..asking(trigger, &text)?
        };
        let id = world.put(ChangeSet::new(), asking).await?;
        let asked = phones.message(BOB, &text).await?;
        let before = world
            .services
            .store
            .events(&EventFilter::default())
            .await?
            .len();
        // He sees no button that he may not press, and whoever makes one up is refused.
        assert_eq!(asked.buttons, [], "{trigger}");
        let told_of_it = world.told(id).await?;
        let notice = told_of_it.iter().find(|notice| notice.receiver == "bob");
        let made_up = format!("{}:0", notice.context("bob was not asked")?.nonce);
        phones.press(BOB, BOB, asked.id, &made_up).await?;
        phones.shown(&format!("`bob` may not {right}")).await?;
        assert_eq!(world.question(id).await?.state, QuestionState::Pending);
        let after = world
            .services
            .store
            .events(&EventFilter::default())
            .await?
            .len();
        assert_eq!(after, before, "{trigger}");
        let asked = phones.message(ADA, &text).await?;
        phones
            .press(ADA, ADA, asked.id, &asked.buttons[0].1)
            .await?;
        phones.shown("Taken: Yes").await?;
    }
    generated(&world, "walks").await?;
    let shown = told(&phones, BOB, "/execute walks").await?;
    let refusal = "The specification of walks waits for an approval. bob may not approve";
    assert!(shown.text.starts_with(refusal), "{}", shown.text);
    assert!(
        shown.text.contains("bob may not approve; ada may"),
        "{}",
        shown.text
    );
    let labels = |shown: &phones::Message| -> Vec<String> {
        let buttons = shown.buttons.iter();
        buttons.map(|(label, _)| label.clone()).collect()
    };
    // Who may not approve may still ask for a change.
    assert_eq!(labels(&shown), ["Change this..."]);
    let shown = told(&phones, ADA, "/execute walks").await?;
    assert_eq!(labels(&shown), ["Start", "Cancel", "Change this..."]);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_approves_on_a_phone_sees_what_is_asked_for_and_what_changed() -> anyhow::Result<()>
{
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let (ids, now) = (&world.services.ids, world.services.clock.now());
    let hash = ContentHash::of(b"walks");
    let spec: Specification = serde_json::from_value(json!({
        "id": ids.next(), "idea": "walks", "user": "ada", "state": "generated", "revision": 2, "hash": hash,
        "complexity": "simple", "requested_by": "ada", "correlation_id": ids.next(), "created_at": now, "updated_at": now,
    }))?;
    let mut changes = ChangeSet::new();
    for (number, objective) in [(1, "People see their walks."), (2, "People see 🚶 walks.")] {
        let revision: Revision = serde_json::from_value(json!({
            "spec": spec.id, "number": number, "hash": hash, "at": now,
            "document": { "objective": objective, "out_of_scope": ["maps"],
                "requirements": [{ "id": "FR-1", "text": "counts walks", "acceptance": "three are three" }] },
            "tasks": [{ "id": "T-001", "title": "Count the walks", "action": "CREATE", "file": "walks.py",
                "validation": { "command": "python walks.py", "expected": "exit 0" } }],
            "validation": ["walks.py is owned by build 7"],
        }))?;
        changes.insert(&revision);
    }
    changes.insert(&spec);
    world.services.store.commit(changes).await?;
    // The question itself shows it, too: a button below it approves just that.
    let asking = QuestionRequest {
        about: About::Specification { spec: spec.id },
        content: Some(Content::Revision {
            revision: 2,
            hash: hash.clone(),
        }),
        idea: Some(spec.idea.clone()),
        consequential: true,
        ..asking("spec_complete", "Build it?")?
    };
    world.put(ChangeSet::new(), asking).await?;
    let asked = phones.message(ADA, "build it?").await?;
    assert_eq!(asked.buttons.len(), 3, "{}", asked.text);
    let mut seen = vec![(asked, 3)];
    for (typed, chat, buttons) in [
        ("/execute walks", ADA, 3),
        ("/spec walks", ADA, 3),
        ("/spec walks", BOB, 1),
    ] {
        seen.push((told(&phones, chat, typed).await?, buttons));
    }
    for (shown, buttons) in seen {
        let parts = [
            "People see 🚶 walks.",
            "FR-1: counts walks",
            "accepted: three are three",
            "T-001: Count the walks\n   walks.py\n",
            "maps",
            "Changed since revision 1\n• Objective: People see 🚶 walks.\n",
            "walks.py is owned by build 7",
            "What a yes lets run as checks:",
        ];
        for part in parts {
            let times = shown.text.matches(part).count();
            assert_eq!(times, 1, "{part} in {}", shown.text);
        }
        for boilerplate in ["A test.", "Merge it", "@@", "their walks"] {
            assert!(!shown.text.contains(boilerplate), "{}", shown.text);
        }
        assert_eq!(shown.buttons.len(), buttons, "{}", shown.text);
    }
    let none = told(&phones, ADA, "/spec rivers").await?;
    assert!(
        none.text.contains("/execute rivers asks for one"),
        "{}",
        none.text
    );
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_things_that_telegram_brings_do_nothing_and_the_next_word_is_heard()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let id = world.ask("missing_context", "Where?").await?;
    let asked = phones.message(ADA, "Where?").await?;
    let text = "/newtask Something odd";
    let mut of_bot = Phones::of(ADA, ADA, text);
    of_bot["from"]["is_bot"] = json!(true);
    let mut of_nobody = Phones::of(ADA, ADA, text);
    of_nobody
        .as_object_mut()
        .context("no message")?
        .remove("from");
    let mut sticker = Phones::of(ADA, ADA, "");
    let fields = sticker.as_object_mut().context("no message")?;
    fields.remove("text");
    let of_sticker = json!({ "file_id": "s", "file_unique_id": "s", "type": "regular", "width": 9, "height": 9,
        "is_animated": false, "is_video": false });
    fields.insert("sticker".to_owned(), of_sticker);
    for odd in [
        json!({ "message": of_bot }),
        json!({ "message": of_nobody }),
        json!({ "message": sticker }),
    ] {
        phones.update(odd).await?;
    }
    phones.press(ADA, ADA, asked.id, &"x".repeat(200)).await?;
    phones.press(ADA, ADA, asked.id, "").await?;
    let status = told(&phones, BOB, "/status").await?.text;
    assert!(status.contains("1 question is open"), "{status}");
    let to_ada = phones.messages(ADA).await?;
    let answers: Vec<&str> = to_ada[1..].iter().map(|one| one.text.as_str()).collect();
    assert_eq!(
        answers,
        ["Only text and files are taken here."],
        "to the sticker alone"
    );
    assert_eq!(world.question(id).await?.state, QuestionState::Pending);
    let store = &world.services.store;
    assert_eq!(store.count::<Idea>(Query::new()).await?, 0);
    world.close().await
}
