//! Several questions wait on a phone: each once, in the order of the queue, and those that may be are answered together.

use std::time::Duration;

use anyhow::Context as _;
use ropewalk_orchestrator::questions::{self, AskOutcome, Deadlines, QuestionRequest};
use ropewalk_schemas::question::{About, Question, QuestionKind, QuestionState};
use ropewalk_schemas::{ChoiceId, QuestionId, Slug};
use ropewalk_store::{ChangeSet, Query};

use crate::building::{built, events, told};
use crate::commanding::generated;
use crate::outage::running;
use crate::phones::{Phones, until};
use crate::talking::answer;
use crate::world::{ADA, BOB, BotWorld, asking};

/// A question of some kind, which ends by itself with "leave" where its kind does.
fn of_kind(kind: QuestionKind, text: &str) -> anyhow::Result<QuestionRequest> {
    let takes_default = kind == QuestionKind::Clarifying;
    let leave = ChoiceId::parse("leave")?;
    Ok(QuestionRequest {
        kind,
        default: takes_default.then_some(leave),
        ..asking("missing_context", text)?
    })
}

async fn put(world: &BotWorld, asking: QuestionRequest) -> anyhow::Result<QuestionId> {
    world.put(ChangeSet::new(), asking).await
}

/// Returns the texts of the messages to a chat from this one on, each shortened to the first of `parts` that it holds.
async fn order(
    phones: &Phones,
    chat: i64,
    from: usize,
    parts: &[&str],
) -> anyhow::Result<Vec<String>> {
    let sent = phones.messages(chat).await?;
    let texts = sent.into_iter().skip(from).filter_map(|message| {
        let mut parts = parts.iter();
        parts
            .find(|part| message.text.contains(**part))
            .map(|part| (*part).to_owned())
    });
    Ok(texts.collect())
}

/// Waits until a chat got so many messages.
async fn got(phones: &Phones, chat: i64, number: usize) -> anyhow::Result<()> {
    until(&format!("{number} messages"), || async {
        Ok((phones.messages(chat).await?.len() >= number).then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_question_is_put_once_a_day_and_its_answer_is_reused() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let (clock, mut moves) = running();
    let world = BotWorld::open_at(directory.path(), &phones.server, &clock).await?;
    let again = async || {
        let mut changes = ChangeSet::new();
        let asking = asking("missing_context", "Metres or feet?")?;
        let context = world.context()?;
        let outcome = questions::ask(&mut changes, &context, &Deadlines::default(), asking).await?;
        world.services.store.commit(changes).await?;
        anyhow::Ok(outcome)
    };
    let AskOutcome::Open(first) = again().await? else {
        anyhow::bail!("nobody has answered yet");
    };
    let asked = phones.message(ADA, "Metres or feet?").await?;
    assert!(matches!(again().await?, AskOutcome::Open(id) if id == first));
    phones
        .press(ADA, ADA, asked.id, &asked.buttons[1].1)
        .await?;
    phones.shown("Taken: Leave it").await?;
    assert!(!matches!(again().await?, AskOutcome::Open(_)));
    let marked = world.services.store.list::<Question>(Query::new()).await?;
    let marked = marked.iter().filter(|one| one.reused_from == Some(first));
    assert_eq!(marked.count(), 1, "the reuse is marked");
    // What is asked later is there, and of the same nothing came again.
    let later = world.ask("missing_context", "By boat?").await?;
    for chat in [ADA, BOB] {
        phones.message(chat, "By boat?").await?;
        let put = order(&phones, chat, 0, &["Metres or feet?"]).await?;
        assert_eq!(put.len(), 1, "in chat {chat}");
    }
    questions::answer(&world.context()?, later, "leave", "eve", "cli").await?;
    clock.advance(Duration::from_hours(25));
    assert!(matches!(again().await?, AskOutcome::Open(id) if id != first));
    until("the question on another day", || async {
        let put = order(&phones, ADA, 0, &["Metres or feet?"]).await?;
        Ok((put.len() == 2).then_some(()))
    })
    .await?;
    // While time passes: it may be waiting until Telegram takes another message.
    world.close().await?;
    moves.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_with_defaults_are_answered_by_a_word_and_no_other() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let blocking = put(&world, of_kind(QuestionKind::Blocking, "Which way?")?).await?;
    let clarifying = put(&world, of_kind(QuestionKind::Clarifying, "Colour?")?).await?;
    let confirming = put(&world, of_kind(QuestionKind::Confirming, "Small?")?).await?;
    let spends = QuestionRequest {
        consequential: true,
        ..of_kind(QuestionKind::Confirming, "Spend more?")?
    };
    let spends = put(&world, spends).await?;
    for text in ["Which way?", "Colour?", "Small?", "Spend more?"] {
        for chat in [ADA, BOB] {
            phones.message(chat, text).await?;
        }
    }
    let said = told(&phones, ADA, "/defaults").await?.text;
    assert!(
        said.starts_with(
            "Answered with the default: 2 questions.\n• Colour? Leave it\n• Small? Leave it\n"
        ),
        "{said}"
    );
    for id in [clarifying, confirming] {
        let question = world.question(id).await?;
        let answer = question.answer.context("no answer")?;
        let (by, channel) = (answer.by.as_str(), answer.channel.as_str());
        assert_eq!(
            (by, channel, answer.text.as_str()),
            ("ada", "telegram", "Leave it")
        );
    }
    for id in [blocking, spends] {
        let question = world.question(id).await?;
        assert_eq!(
            (question.state, question.answer),
            (QuestionState::Pending, None)
        );
    }
    until("both mended for both", || async {
        let edits = phones.did("editmessagetext").await?;
        let is_told = |edit: &&serde_json::Value| {
            let text = edit["parameters"]["text"].as_str().unwrap_or_default();
            text.starts_with("Answered by ada over telegram: Leave it")
        };
        Ok((edits.iter().filter(is_told).count() == 4).then_some(()))
    })
    .await?;
    let said = told(&phones, ADA, "/defaults").await?.text;
    assert!(said.starts_with("No open question has a default"), "{said}");
    assert_eq!(
        world.question(blocking).await?.state,
        QuestionState::Pending
    );
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_open_questions_come_in_the_order_of_the_queue() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let (clock, mut moves) = running();
    let world = BotWorld::open_at(directory.path(), &phones.server, &clock).await?;
    let build = built(&world, "walks", "running").await?;
    let of_build = |kind, text| -> anyhow::Result<QuestionRequest> {
        Ok(QuestionRequest {
            about: About::Build { build },
            ..of_kind(kind, text)?
        })
    };
    // Asked from the last of the queue to the first, save that of two that are alike the older is first.
    let asked = [
        of_kind(QuestionKind::Preference, "Preference?")?,
        of_kind(QuestionKind::Confirming, "Confirming?")?,
        of_kind(QuestionKind::Clarifying, "Clarifying?")?,
        of_build(QuestionKind::Clarifying, "Clarifying a build?")?,
        of_kind(QuestionKind::Blocking, "Older?")?,
        of_kind(QuestionKind::Blocking, "Newer?")?,
        of_build(QuestionKind::Blocking, "Blocking a build?")?,
    ];
    let number = asked.len();
    for (place, asking) in asked.into_iter().enumerate() {
        put(&world, asking).await?;
        // Each has a time of its own, and is there before the next one is asked.
        got(&phones, ADA, place + 1).await?;
        clock.advance(Duration::from_secs(1));
    }
    let queue = [
        "Blocking a build?",
        "Older?",
        "Newer?",
        "Clarifying a build?",
        "Clarifying?",
        "Confirming?",
        "Preference?",
    ];
    phones.write(ADA, ADA, "/questions").await?;
    let come = || async {
        let again = order(&phones, ADA, number, &queue).await?;
        Ok((again.len() >= number).then_some(again))
    };
    assert_eq!(until("all of them again", come).await?, queue);
    // While time passes: it may be waiting until Telegram takes another message.
    world.close().await?;
    moves.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_idea_waits_for_its_answer_the_others_go_on_and_a_restart_changes_nothing()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    phones.write(ADA, ADA, "Rivers").await?;
    phones.message(ADA, "It is the idea rivers now").await?;
    built(&world, "dogs", "running").await?;
    let spec = generated(&world, "walks").await?;
    let asking = QuestionRequest {
        about: About::Specification { spec },
        idea: Some(Slug::parse("walks")?),
        ..asking("multiple_architectures", "One file or many?")?
    };
    let waiting = put(&world, asking).await?;
    let asked = phones.message(ADA, "One file or many?").await?;
    assert!(asked.text.contains("walks"), "{}", asked.text);
    assert!(
        asked.text.contains("It waits until somebody answers."),
        "{}",
        asked.text
    );
    phones.message(BOB, "One file or many?").await?;

    let mut world = world;
    for round in 1..=2 {
        // Another idea is talked about, and the build of a third is steered.
        let said = format!("Which river, {round}?");
        answer(&world, &said).await?;
        phones.message(ADA, &said).await?;
        let told = told(&phones, ADA, &format!("/tell dogs say {round}")).await?;
        assert!(told.text.contains("of dogs hears it"), "{}", told.text);
        assert_eq!(events(&world, "build.tell").await?.len(), round);
        let question = world.question(waiting).await?;
        assert_eq!(
            (question.state, question.answer),
            (QuestionState::Pending, None)
        );
        for chat in [ADA, BOB] {
            let put = order(&phones, chat, 0, &["One file or many?"]).await?;
            assert_eq!(put.len(), 1, "in chat {chat}, round {round}");
        }
        assert_eq!(phones.did("editmessagetext").await?.len(), 0);
        world.close().await?;
        world = BotWorld::open(directory.path(), &phones.server).await?;
    }
    // The button of before the restarts is that of the question.
    phones
        .press(ADA, ADA, asked.id, &asked.buttons[0].1)
        .await?;
    phones.shown("Taken: Merge it").await?;
    let answer = world.question(waiting).await?.answer.context("no answer")?;
    assert_eq!(
        (answer.by.as_str(), answer.channel.as_str()),
        ("ada", "telegram")
    );
    until("mended in both chats", || async {
        let edits = phones.did("editmessagetext").await?;
        Ok((edits.len() == 2).then_some(()))
    })
    .await?;
    world.close().await
}
