//! Ideas are talked about by chat, and commands say what is so.

mod going_on;

use std::time::Duration;

use anyhow::Context as _;
use ropewalk_desk::{halt, ideas};
use ropewalk_orchestrator::questions::QuestionRequest;
use ropewalk_runtime::Clock;
use ropewalk_schemas::idea::{Author, Idea, Message, Session};
use ropewalk_schemas::outage::{Outage, OutageClass};
use ropewalk_schemas::person::Role;
use ropewalk_schemas::question::{About, Question, QuestionState};
use ropewalk_schemas::{CommitId, MessageId, Slug, UserSlug};
use ropewalk_store::{ChangeSet, Query};

use crate::building::{built, change, told};
use crate::files::document;
use crate::phones::{Phones, until};
use crate::world::{ADA, BOB, BotWorld, asking};

async fn said(world: &BotWorld) -> anyhow::Result<Vec<(Author, String)>> {
    let messages = world.services.store.list::<Message>(Query::new()).await?;
    Ok(messages
        .iter()
        .map(|message| (message.author, message.text.clone()))
        .collect())
}

async fn idea(world: &BotWorld) -> anyhow::Result<Idea> {
    let ideas = world.services.store.list::<Idea>(Query::new()).await?;
    let idea = ideas.into_iter().next().context("no idea")?;
    Ok(idea.into_inner())
}

/// What the ideation agent says.
fn words(world: &BotWorld, idea: &Idea, text: &str) -> ChangeSet {
    let mut changes = ChangeSet::new();
    changes.insert(&Message {
        id: MessageId(world.services.ids.next()),
        session: idea.session,
        author: Author::Agent,
        user: None,
        text: text.to_owned(),
        attachments: Vec::new(),
        at: world.services.clock.now(),
        answers: None,
        told: None,
    });
    changes
}

/// Answers as the ideation agent does.
pub(crate) async fn answer(world: &BotWorld, text: &str) -> anyhow::Result<()> {
    let said = words(world, &idea(world).await?, text);
    world.services.store.commit(said).await?;
    Ok(())
}

/// Answers as the ideation agent does when it cannot go on before it is answered itself.
async fn answer_and_ask(world: &BotWorld, text: &str, question: &str) -> anyhow::Result<()> {
    let idea = idea(world).await?;
    let asking = QuestionRequest {
        about: About::Session {
            session: idea.session,
        },
        idea: Some(idea.slug.clone()),
        ..asking("problem_statement_vague", question)?
    };
    world.put(words(world, &idea, text), asking).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_of_a_conversation_arrives_once() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    phones.write(ADA, ADA, "Walks").await?;
    phones.message(ADA, "It is the idea walks now").await?;
    answer_and_ask(&world, "Who walks?", "Who walks?").await?;
    phones.message(ADA, "Who walks?").await?;
    phones.write(ADA, ADA, "People with dogs").await?;
    until("the second message", || async {
        Ok((said(&world).await?.len() == 3).then_some(()))
    })
    .await?;
    answer_and_ask(&world, "Noted.\n\nWhich **dogs**?", "Which **dogs**?").await?;
    phones.message(ADA, "Which dogs?").await?;
    phones.message(ADA, "Noted.").await?;
    // What is said after it arrives after it.
    phones.write(ADA, ADA, "Small ones").await?;
    until("the third message", || async {
        Ok((said(&world).await?.len() == 5).then_some(()))
    })
    .await?;
    answer(&world, "Small dogs, then.").await?;
    phones.message(ADA, "Small dogs, then.").await?;
    let told = phones.messages(ADA).await?;
    for question in ["Who walks?", "Which dogs?"] {
        let put = told.iter().filter(|one| one.text.contains(question));
        let buttons: Vec<usize> = put.map(|one| one.buttons.len()).collect();
        assert_eq!(buttons, [3], "{question}: {told:#?}");
    }
    assert_eq!(told.iter().filter(|one| one.text == "Noted.").count(), 1);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_was_not_asked_is_where_they_ask_for_it_or_come_to_talk() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let clock = Clock::system();
    let roles = [("ada", Role::Product), ("bob", Role::Technical)].into();
    let hour = Duration::from_hours(1);
    let world = BotWorld::open_for(directory.path(), &phones.server, &clock, hour, &roles).await?;
    phones.write(ADA, ADA, "Walks").await?;
    phones.message(ADA, "It is the idea walks now").await?;
    answer_and_ask(&world, "Who walks?", "Who walks?").await?;
    let id = phones.message(ADA, "Who walks?").await?;
    assert_eq!(id.buttons.len(), 3);
    let open = Query::new().equal("state", QuestionState::Pending.as_str());
    let open = world.services.store.list::<Question>(open).await?;
    let session = idea(&world).await?.session.to_string();
    let session = world.services.store.get::<Session>(&session).await?;
    let session = session.context("no session")?;
    let mut changes = ChangeSet::new();
    let waiting = Session {
        waiting_for: Some(open[0].id),
        ..session.record.clone()
    };
    changes.update(&session, &waiting);
    world.services.store.commit(changes).await?;
    // Who comes to talk sees what waits for an answer.
    phones.write(BOB, BOB, "/idea walks").await?;
    let put = phones.message(BOB, "Who walks?").await?;
    assert_eq!(put.buttons.len(), 3, "{put:#?}");
    // What is of code went to bob alone, until ada asks for it.
    world.ask("missing_context", "Which file?").await?;
    phones.message(BOB, "Which file?").await?;
    phones.write(ADA, ADA, "/questions").await?;
    let put = phones.message(ADA, "Which file?").await?;
    assert_eq!(put.buttons.len(), 3, "{put:#?}");
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_writes_while_nobody_answers_hears_once_what_it_waits_for() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    phones.write(ADA, ADA, "/stopall Too dear").await?;
    phones.message(ADA, "Everything is stopped").await?;
    phones.write(ADA, ADA, "Walks").await?;
    let begun = phones.message(ADA, "It is the idea walks now").await?;
    assert!(
        begun.text.contains("kept") && begun.text.contains("Too dear"),
        "{begun:#?}"
    );
    phones.write(ADA, ADA, "With dogs").await?;
    phones.write(ADA, ADA, "/resumeall").await?;
    phones.message(ADA, "Everything goes on").await?;
    let outage = Outage {
        provider: "scripted".to_owned(),
        class: OutageClass::Unavailable,
        roles: vec!["chat".to_owned()],
        since: world.services.clock.now(),
        last_error: "503".to_owned(),
        probes: 0,
        probe_at: None,
        ended_at: None,
        met_by: Vec::new(),
    };
    let mut changes = ChangeSet::new();
    changes.insert(&outage);
    world.services.store.commit(changes).await?;
    phones.write(ADA, ADA, "Small ones").await?;
    phones.message(ADA, "provider scripted is away").await?;
    phones.write(ADA, ADA, "And cats").await?;
    phones.write(ADA, ADA, "/ideas").await?;
    phones.message(ADA, "walks: Walks").await?;
    let told = phones.messages(ADA).await?;
    let kept = told.iter().filter(|one| one.text.contains("are kept"));
    assert_eq!(kept.count(), 2, "{told:#?}");
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idea_and_its_conversation_go_by_chat_also_over_a_restart() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    phones.write(ADA, ADA, "Walks").await?;
    phones.message(ADA, "It is the idea walks now").await?;
    answer(&world, "Who **walks**?").await?;
    phones.message(ADA, "Who walks?").await?;
    phones.write(ADA, ADA, "People with dogs").await?;
    until("the second message", || async {
        Ok((said(&world).await?.len() == 3).then_some(()))
    })
    .await?;
    world.close().await?;
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    answer(&world, "Which dogs?").await?;
    phones.message(ADA, "Which dogs?").await?;
    let (agent, person) = (Author::Agent, Author::Person);
    assert_eq!(
        said(&world).await?,
        [
            (person, "Walks".to_owned()),
            (agent, "Who **walks**?".to_owned()),
            (person, "People with dogs".to_owned()),
            (agent, "Which dogs?".to_owned()),
        ]
    );
    phones.write(ADA, ADA, "/ideas").await?;
    phones.message(ADA, "walks: Walks (draft)").await?;
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_answered_to_others_reaches_every_phone_that_is_turned_to_the_idea_once()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    phones.write(ADA, ADA, "Walks").await?;
    phones.message(ADA, "It is the idea walks now").await?;
    answer(&world, "Who walks?").await?;
    phones.message(ADA, "Who walks?").await?;
    // Cleo has no phone; what she says comes by a page, as an answer to a question may.
    let cleo = UserSlug::parse("cleo")?;
    let session = idea(&world).await?.session;
    ideas::say(&world.context()?, session, &cleo, "Dogs").await?;
    answer(&world, "Which dogs?").await?;
    phones.message(ADA, "Which dogs?").await?;
    phones.write(BOB, BOB, "/idea walks").await?;
    phones.message(BOB, "belongs to walks now").await?;
    answer(&world, "Small ones?").await?;
    phones.message(ADA, "Small ones?").await?;
    phones.message(BOB, "Small ones?").await?;
    world.close().await?;
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    ideas::finish(&world.context()?, &Slug::parse("walks")?, &cleo).await?;
    answer(&world, "This is the brief.").await?;
    answer(&world, "It is saved.").await?;
    for chat in [ADA, BOB] {
        phones.message(chat, "It is saved.").await?;
    }
    let texts = |told: Vec<crate::phones::Message>| -> Vec<String> {
        told.into_iter().skip(1).map(|one| one.text).collect()
    };
    let late = ["Small ones?", "This is the brief.", "It is saved."];
    assert_eq!(texts(phones.messages(BOB).await?), late);
    let all = [&["Who walks?", "Which dogs?"][..], &late].concat();
    assert_eq!(texts(phones.messages(ADA).await?), all);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_for_an_idea_that_has_landed_begin_another_one_where_that_is_pressed()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    phones.write(ADA, ADA, "Walks").await?;
    phones.message(ADA, "It is the idea walks now").await?;
    let build = built(&world, "walks", "succeeded").await?;
    let merged = CommitId::parse(&"c".repeat(40))?;
    change(&world, build, |build| build.merged = Some(merged)).await?;
    phones
        .send(ADA, document("notes", "notes.md", 13), "and this")
        .await?;
    phones.message(ADA, "The file is not kept.").await?;
    let told = told(&phones, ADA, "csv export too").await?;
    assert!(told.text.starts_with("walks has landed"), "{}", told.text);
    let labels: Vec<&str> = told
        .buttons
        .iter()
        .map(|(label, _)| label.as_str())
        .collect();
    assert_eq!(labels, ["New idea", "Change this..."]);
    assert_eq!(said(&world).await?.len(), 1, "no model is told them");
    let begin = &told.buttons[0].1;
    phones.press(ADA, ADA, told.id, begin).await?;
    phones.shown("It is the idea `csv-export-too` now").await?;
    let new = world.services.store.get::<Idea>("csv-export-too").await?;
    assert!(new.is_some());
    assert_eq!(said(&world).await?[1].1, "csv export too");
    // It begins one, once.
    phones.press(ADA, ADA, told.id, begin).await?;
    phones.shown("This button means nothing any more.").await?;
    let ideas = world.services.store.count::<Idea>(Query::new()).await?;
    assert_eq!(ideas, 2);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_telegram_puts_off_arrives_once() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    phones.fault("flood").await?;
    phones.write(ADA, ADA, "/status").await?;
    phones.refusal().await?;
    phones.fault("none").await?;
    phones.message(ADA, "No question is open").await?;
    phones.write(ADA, ADA, "/ideas").await?;
    phones.message(ADA, "No idea yet").await?;
    assert_eq!(phones.messages(ADA).await?.len(), 2);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_answers_and_what_makes_no_sense_says_so() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    for (typed, expected) in [
        ("/help", "/status: where the builds stand"),
        ("/status", "No question is open."),
        ("/settings", "You may do what everybody may."),
        ("/summary", "Nothing happened."),
        ("/questions", "No question is open."),
        ("/defaults", "No open question has a default"),
        ("/ideas", "No idea yet"),
        ("/newtask", "Say what you want: /newtask"),
        ("/idea nope", "No idea is called nope"),
        ("/done", "Name the idea"),
        ("/done nope", "no idea is called nope"),
        ("/idea", "Name the idea: /idea walks"),
        ("/spec nope", "nope has no specification yet"),
        ("/execute", "Name the idea"),
        ("/execute nope", "no idea is called nope"),
        ("/abandon", "Name the idea"),
        ("/abandon nope", "bob may not stop"),
        ("/agents", "notify.telegram"),
        ("/pause", "No build runs"),
        ("/pause nope", "There is no build of nope"),
        ("/resume", "No build stands still"),
        ("/stop", "No build runs"),
        ("/retry", "Name the task"),
        ("/retry nope T-001", "There is no build of nope"),
        ("/tell", "Name the idea"),
        ("/priority", "Say how urgent"),
        ("/land", "bob may not land"),
        ("/stopall", "bob may not stop"),
        ("/resumeall", "bob may not stop"),
        ("/approve", "There is no /approve"),
        ("Wal\0ks", "holds the letter U+0000"),
    ] {
        let before = phones.messages(BOB).await?.len();
        phones.write(BOB, BOB, typed).await?;
        let told = until(typed, || async {
            Ok(phones.messages(BOB).await?.get(before).cloned())
        })
        .await?;
        assert!(told.text.contains(expected), "{typed}: {}", told.text);
    }
    let offered = phones.did("setmycommands").await?;
    let offered = offered.first().context("no menu")?;
    let menu = offered["parameters"]["commands"].as_array().map(Vec::len);
    assert_eq!(menu, Some(23));
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_for_another_bot_does_nothing_in_silence() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    for typed in ["/stopall@other_bot now", "/status@other_bot", "/nope@x"] {
        phones.write(ADA, ADA, typed).await?;
    }
    phones.write(ADA, ADA, "/STATUS@Ropewalk_Bot").await?;
    phones.message(ADA, "No question is open.").await?;
    assert_eq!(phones.messages(ADA).await?.len(), 1);
    assert_eq!(halt::standing(&world.services.store).await?, None);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_stopped_and_goes_on_from_the_phone_of_who_may() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let store = &world.services.store;
    phones.write(ADA, ADA, "/stopall the disk burns").await?;
    phones.message(ADA, "Everything is stopped").await?;
    let halt = halt::standing(store).await?.context("nothing is stopped")?;
    let told = (halt.by.as_str(), halt.reason.as_deref());
    assert_eq!(told, ("ada", Some("the disk burns")));
    phones.write(ADA, ADA, "/resumeall").await?;
    phones.message(ADA, "Everything goes on").await?;
    assert_eq!(halt::standing(store).await?, None);
    world.close().await
}
