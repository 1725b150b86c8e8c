//! Questions reach phones, and one answer counts.

mod late;
mod optional;
mod spoken;

use std::time::Duration;

use anyhow::Context as _;
use ropewalk_desk::specifications;
use ropewalk_orchestrator::Context;
use ropewalk_orchestrator::questions::{self, Deadlines, QuestionRequest};
use ropewalk_schemas::notice::{Notice, NoticeState};
use ropewalk_schemas::question::{About, QuestionKind, QuestionState};
use ropewalk_schemas::{ChoiceId, ComponentName, ContentHash, EventPattern, Priority, Slug};
use ropewalk_store::{ChangeSet, EventFilter};

use crate::commanding::generated;
use crate::outage::{pass, running};
use crate::phones::{Phones, until};
use crate::world::{ADA, BOB, BotWorld, asking, people};

async fn answers(world: &BotWorld) -> anyhow::Result<usize> {
    let answered = EventFilter {
        pattern: Some(EventPattern::of("question.answered")),
        ..EventFilter::default()
    };
    Ok(world.services.store.events(&answered).await?.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_press_answers_and_everybody_sees_who_was_first() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let id = world
        .ask("missing_context", "Where is **it** written?")
        .await?;
    let (ada, bob) = (
        phones.message(ADA, "Where is it").await?,
        phones.message(BOB, "Where is it").await?,
    );
    for part in [
        "Question",
        "A test.",
        "• Merge it",
        "It waits until somebody answers.",
        "Recommended: Leave it",
    ] {
        assert!(ada.text.contains(part), "{part} in {}", ada.text);
    }
    let labels: Vec<&str> = ada
        .buttons
        .iter()
        .map(|(label, _)| label.as_str())
        .collect();
    assert_eq!(labels, ["Merge it", "✓ Leave it", "Something else..."]);
    assert_ne!(
        ada.buttons[1].1, bob.buttons[1].1,
        "each has a nonce of their own"
    );

    phones.press(ADA, ADA, ada.id, &ada.buttons[1].1).await?;
    phones.shown("Taken: Leave it").await?;
    phones.press(ADA, ADA, ada.id, &ada.buttons[1].1).await?;
    phones.press(BOB, BOB, bob.id, &bob.buttons[0].1).await?;
    phones
        .shown("Answered already, by ada over telegram: Leave it")
        .await?;
    let question = world.question(id).await?;
    let answer = question.answer.context("no answer")?;
    assert_eq!(
        (
            answer.by.as_str(),
            answer.channel.as_str(),
            answer.text.as_str()
        ),
        ("ada", "telegram", "Leave it")
    );
    assert_eq!(answers(&world).await?, 1);
    let edits = until("two mended messages", || async {
        let edits = phones.did("editmessagetext").await?;
        Ok((edits.len() >= 2).then_some(edits))
    })
    .await?;
    for edit in &edits {
        let text = edit["parameters"]["text"].as_str().unwrap_or_default();
        assert!(
            text.starts_with("Answered by ada over telegram: Leave it"),
            "{text}"
        );
        assert!(
            edit["parameters"]["reply_markup"].is_null(),
            "the buttons are gone"
        );
    }
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_belong_to_the_choice_that_was_pressed_also_after_a_restart() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let id = world.ask("missing_context", "How?").await?;
    let asked = phones.message(ADA, "How?").await?;
    phones
        .press(ADA, ADA, asked.id, &asked.buttons[2].1)
        .await?;
    phones.message(ADA, "What exactly?").await?;
    world.close().await?;
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    phones.write(ADA, ADA, "by boat").await?;
    phones.message(ADA, "Taken: by boat").await?;
    let answer = world.question(id).await?.answer.context("no answer")?;
    assert_eq!(
        answer.choice.map(|choice| choice.to_string()),
        Some("other".to_owned())
    );

    let other = world.ask("missing_context", "And then?").await?;
    let asked = phones.message(ADA, "And then?").await?;
    phones.reply(ADA, &asked, "on foot").await?;
    phones.message(ADA, "Taken: on foot").await?;
    let answer = world.question(other).await?.answer.context("no answer")?;
    assert_eq!((answer.choice, answer.text.as_str()), (None, "on foot"));
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_of_which_nobody_knew_works_and_is_mended_with_the_others() -> anyhow::Result<()>
{
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let id = world.ask("missing_context", "How?").await?;
    let asked = phones.message(ADA, "How?").await?;
    // As after a death between sending and recording.
    let unknown = asked.id + 500;
    phones.press(ADA, ADA, unknown, &asked.buttons[2].1).await?;
    phones.message(ADA, "What exactly?").await?;
    assert_eq!(world.question(id).await?.state, QuestionState::Pending);
    phones.write(ADA, ADA, "by boat").await?;
    phones.message(ADA, "Taken: by boat").await?;
    let mended = until("three mended messages", || async {
        let edits = phones.did("editmessagetext").await?;
        Ok((edits.len() >= 3).then_some(edits))
    })
    .await?;
    for edit in &mended {
        let text = edit["parameters"]["text"].as_str().unwrap_or_default();
        assert!(text.starts_with("Answered by ada"), "{text}");
    }
    let of = |message| {
        let is_it = |edit: &&serde_json::Value| {
            edit["parameters"]["chat_id"] == ADA && edit["parameters"]["message_id"] == message
        };
        mended.iter().filter(is_it).count()
    };
    assert_eq!((of(asked.id), of(unknown)), (1, 1));
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_takes_a_right_is_refused_in_words_to_who_has_it_not() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let id = world.ask("build_finished", "Merge?").await?;
    let (ada, bob) = (
        phones.message(ADA, "Merge?").await?,
        phones.message(BOB, "Merge?").await?,
    );
    // He sees no button that he may not press, neither that which decides nor that which leaves all as it is, and reads why.
    let shown: Vec<&str> = bob
        .buttons
        .iter()
        .map(|(label, _)| label.as_str())
        .collect();
    assert_eq!(shown, ["Something else..."]);
    let why = "Not for you to press: \"Merge it\", \"Leave it\". You may not land; ada may.";
    assert!(bob.text.contains(why), "{}", bob.text);
    assert!(!bob.text.contains("Recommended:"), "{}", bob.text);
    assert!(ada.text.contains("Recommended: Leave it"), "{}", ada.text);
    // Whoever makes one up is refused, and takes nothing from anybody.
    let (nonce, _) = bob.buttons[0].1.split_once(':').unwrap_or_default();
    for place in [0, 1] {
        phones
            .press(BOB, BOB, bob.id, &format!("{nonce}:{place}"))
            .await?;
        phones.shown("`bob` may not land; `ada` may").await?;
    }
    until("both refusals", || async {
        let shown = phones.did("answercallbackquery").await?.len();
        Ok((shown == 2).then_some(()))
    })
    .await?;
    let question = world.question(id).await?;
    assert_eq!(
        (question.state, question.answer),
        (QuestionState::Pending, None)
    );
    assert_eq!(phones.did("editmessagetext").await?.len(), 0);
    phones.press(ADA, ADA, ada.id, &ada.buttons[0].1).await?;
    phones.shown("Taken: Merge it").await?;
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_answer_is_refused_in_words_of_the_phone() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let only_choices = QuestionRequest {
        free_text: false,
        ..asking("missing_context", "Which way?")?
    };
    let id = world.put(ChangeSet::new(), only_choices).await?;
    let asked = phones.message(ADA, "Which way?").await?;
    for (words, part) in [
        ("by boat", "by boat is none of the choices"),
        ("Something else...", "is nothing without words of yours"),
    ] {
        phones.reply(ADA, &asked, words).await?;
        let told = phones.message(ADA, part).await?.text;
        assert!(told.contains("/questions"), "{told}");
        for elsewhere in [id.to_string().as_str(), "ropewalk", "merge", "other"] {
            assert!(!told.contains(elsewhere), "{elsewhere} in {told}");
        }
    }
    assert_eq!(world.question(id).await?.state, QuestionState::Pending);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_and_old_buttons_decide_nothing_of_consequence_until_it_is_asked_again()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let (clock, mut moves) = running();
    let world = BotWorld::open_at(directory.path(), &phones.server, &clock).await?;
    let id = world.ask_what_binds("build_finished", "Merge?").await?;
    let asked = phones.message(ADA, "Merge?").await?;
    phones.reply(ADA, &asked, "Merge it").await?;
    phones.message(ADA, "press a button").await?;
    assert_eq!(world.question(id).await?.state, QuestionState::Pending);

    // A reminder is asked by another message; the button of the first grows no younger by it.
    clock.advance(Duration::from_hours(15 * 24));
    let again = until("the question again", || async {
        let messages = phones.messages(ADA).await?.into_iter();
        let mut put = messages.filter(|one| one.text.contains("Merge?"));
        Ok(put.nth(1))
    })
    .await?;
    phones
        .press(ADA, ADA, asked.id, &asked.buttons[0].1)
        .await?;
    phones.shown("This button is too old").await?;
    assert_eq!(world.question(id).await?.state, QuestionState::Pending);
    phones
        .press(ADA, ADA, again.id, &again.buttons[0].1)
        .await?;
    phones.shown("Taken: Merge it").await?;
    assert_eq!(answers(&world).await?, 1);
    moves.shutdown().await;
    world.close().await
}

/// Waits until what was asked of two people begins with this in both places.
async fn both_are_mended(phones: &Phones, text: &str) -> anyhow::Result<()> {
    let edits = until("two mended messages", || async {
        let edits = phones.did("editmessagetext").await?;
        Ok((edits.len() >= 2).then_some(edits))
    })
    .await?;
    for edit in &edits {
        let told = edit["parameters"]["text"].as_str().unwrap_or_default();
        assert!(told.starts_with(text), "{told}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_on_a_terminal_stands_in_the_place_of_what_was_asked() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let id = world.ask("missing_context", "Where?").await?;
    let asked = phones.message(ADA, "Where?").await?;
    phones.message(BOB, "Where?").await?;
    questions::answer(&world.context()?, id, "leave", "eve", "cli").await?;
    both_are_mended(&phones, "Answered by eve over cli: Leave it").await?;
    phones
        .press(ADA, ADA, asked.id, &asked.buttons[0].1)
        .await?;
    phones
        .shown("Answered already, by eve over cli: Leave it")
        .await?;
    assert_eq!(answers(&world).await?, 1);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_approved_elsewhere_is_told_in_the_place_of_what_was_asked() -> anyhow::Result<()>
{
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let spec = generated(&world, "walks").await?;
    let asking = QuestionRequest {
        about: About::Specification { spec },
        idea: Some(Slug::parse("walks")?),
        consequential: true,
        ..asking("spec_complete", "Build it?")?
    };
    world.put(ChangeSet::new(), asking).await?;
    let asked = phones.message(ADA, "Build it?").await?;
    phones.message(BOB, "Build it?").await?;
    let ada = people()?.named("ada").context("no ada")?;
    let over_api = Context::new(&world.services, ComponentName::parse("api")?);
    let hash = ContentHash::of(b"walks");
    specifications::approve(&over_api, spec, &hash, &ada, Priority::DEFAULT).await?;
    let text = "No answer is needed any more: the specification was approved by ada";
    both_are_mended(&phones, text).await?;
    phones
        .press(ADA, ADA, asked.id, &asked.buttons[0].1)
        .await?;
    phones.shown(text).await?;
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_floods_and_an_outage_everything_arrives_once() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    phones.fault("flood").await?;
    world.ask("missing_context", "First?").await?;
    until("a flood", || async {
        Ok((phones.refusals().await? >= 1).then_some(()))
    })
    .await?;
    phones.fault("away").await?;
    let met = phones.faults().await?;
    until("an outage", || async {
        Ok((phones.faults().await? > met).then_some(()))
    })
    .await?;
    let over = world.ask("missing_context", "Second?").await?;
    let context = world.context()?;
    questions::answer(&context, over, "leave", "eve", "cli").await?;
    // One that is on its way in this moment would still arrive.
    until("the end of the second question", || async {
        let told = world.told(over).await?;
        let is_over = |notice: &Notice| notice.state == NoticeState::Over;
        Ok((told.len() == 2 && told.iter().all(is_over)).then_some(()))
    })
    .await?;
    phones.fault("none").await?;
    phones.message(ADA, "First?").await?;
    phones.message(BOB, "First?").await?;
    world.ask("missing_context", "Third?").await?;
    for chat in [ADA, BOB] {
        phones.message(chat, "Third?").await?;
        let messages = phones.messages(chat).await?;
        assert_eq!(
            messages.len(),
            2,
            "each once, and nothing of what is answered: {messages:?}"
        );
    }
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_default_is_shown_where_it_was_asked_and_an_answer_after_it_is_kept_without_effect()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let (clock, _moves) = running();
    let world = BotWorld::open_at(directory.path(), &phones.server, &clock).await?;
    let deadlines = Deadlines {
        clarifying: Duration::from_mins(20),
        ..Deadlines::default()
    };
    let asking = QuestionRequest {
        kind: QuestionKind::Clarifying,
        default: Some(ChoiceId::parse("leave")?),
        ..asking("missing_context", "Which colour?")?
    };
    let spends = world.ask_what_binds("build_finished", "Merge?").await?;
    let id = world
        .put_within(deadlines, ChangeSet::new(), asking)
        .await?;
    let ada = phones.message(ADA, "Which colour?").await?;
    let expected = "Unanswered, it takes \"Leave it\" at";
    assert!(ada.text.contains(expected), "{}", ada.text);
    pass(&clock, deadlines.clarifying).await;
    until("the default", || async {
        let question = world.question(id).await?;
        Ok((question.state == QuestionState::Defaulted).then_some(()))
    })
    .await?;
    until("it stands in both chats", || async {
        let edits = phones.did("editmessagetext").await?;
        let says_so = |edit: &&serde_json::Value| {
            let text = edit["parameters"]["text"].as_str().unwrap_or_default();
            text.starts_with("Taken by default: Leave it")
        };
        Ok((edits.iter().filter(says_so).count() == 2).then_some(()))
    })
    .await?;
    phones.press(ADA, ADA, ada.id, &ada.buttons[0].1).await?;
    phones.shown("Answered already, by default over").await?;
    let question = world.question(id).await?;
    let answer = question.answer.context("no answer")?;
    assert_eq!(
        (answer.by.as_str(), answer.text.as_str()),
        ("default", "Leave it")
    );
    let late: Vec<_> = question
        .late
        .iter()
        .map(|late| (late.by.as_str(), late.channel.as_str(), late.text.as_str()))
        .collect();
    assert_eq!(late, [("ada", "telegram", "Merge it")]);
    assert_eq!(answers(&world).await?, 0, "nobody is told of an answer");
    // What has consequences waits for a person, however late it is.
    assert_eq!(world.question(spends).await?.state, QuestionState::Pending);
    world.close().await
}
