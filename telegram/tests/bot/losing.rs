//! Telegram breaks off in the middle, or takes something and does not say so: each piece arrives once, or is counted.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use ropewalk_orchestrator::questions::QuestionRequest;
use ropewalk_runtime::Clock;
use ropewalk_schemas::QuestionId;
use ropewalk_schemas::idea::Idea;
use ropewalk_schemas::notice::{Notice, NoticeState};
use ropewalk_schemas::person::Role;
use ropewalk_schemas::question::QuestionState;
use ropewalk_store::{ChangeSet, Query};
use serde_json::Value;

use crate::phones::{Message, Phones, until};
use crate::world::{ADA, BotWorld, asking};

/// How many UTF-16 units a message holds.
const MOST: usize = 4_096;

/// A difference of several messages, with what would be marks anywhere else.
fn difference() -> String {
    let line = |number: u32| format!("+    let line_{number} = `it` ** 2 ** 3; // ```");
    let lines: Vec<String> = (0..200).map(line).collect();
    lines.join("\n")
}

/// Opens a world in which ada alone is asked about code.
async fn open(directory: &Path, phones: &Phones) -> anyhow::Result<BotWorld> {
    let roles = BTreeMap::from([("ada", Role::Technical)]);
    let (clock, hour) = (Clock::system(), Duration::from_hours(1));
    BotWorld::open_for(directory, &phones.server, &clock, hour, &roles).await
}

/// Asks whether files may be changed, and shows what changes.
async fn ask_about(world: &BotWorld, difference: &str) -> anyhow::Result<QuestionId> {
    let asking = QuestionRequest {
        context: format!("```diff\n{difference}\n```"),
        consequential: true,
        free_text: false,
        ..asking("protected_files", "May T-001 change **files** of CI?")?
    };
    world.put(ChangeSet::new(), asking).await
}

/// Returns what one notice of a question says of itself.
async fn told(world: &BotWorld, id: QuestionId) -> anyhow::Result<Notice> {
    let told = world.told(id).await?;
    let to_ada = told.into_iter().find(|notice| notice.receiver == "ada");
    to_ada.context("nothing for ada")
}

/// Waits until what a question is told by stands so; returns it.
async fn stands(
    world: &BotWorld,
    id: QuestionId,
    look: impl Fn(&Notice) -> bool,
) -> anyhow::Result<Notice> {
    until("the notice", || async {
        Ok(told(world, id).await.ok().filter(|notice| look(notice)))
    })
    .await
}

/// Lists the messages that ada got, each with what of it is a block of lines.
async fn blocks(phones: &Phones) -> anyhow::Result<Vec<(Message, Vec<String>)>> {
    let sent = phones.did("sendmessage").await?.into_iter();
    let to_ada = sent.filter(|one| one["parameters"]["chat_id"] == ADA);
    let texts = phones.messages(ADA).await?;
    Ok(texts
        .into_iter()
        .zip(to_ada.map(|one| of_block(&one["parameters"])))
        .collect())
}

fn of_block(parameters: &Value) -> Vec<String> {
    let text = parameters["text"].as_str().unwrap_or_default();
    let letters: Vec<u16> = text.encode_utf16().collect();
    let spans = parameters["entities"].as_array().into_iter().flatten();
    let blocks = spans.filter(|span| span["type"] == "pre");
    let number = |value: &Value| usize::try_from(value.as_u64().unwrap_or_default()).unwrap_or(0);
    blocks
        .map(|span| {
            let begin = number(&span["offset"]);
            String::from_utf16_lossy(&letters[begin..begin + number(&span["length"])])
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_difference_is_read_as_it_is_and_each_piece_of_it_arrives_once() -> anyhow::Result<()>
{
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = open(directory.path(), &phones).await?;
    let difference = difference();
    phones.flood_after(3).await?;
    let id = ask_about(&world, &difference).await?;
    phones.refusal().await?;
    // Also where what was told has to be put together anew.
    world.close().await?;
    let world = open(directory.path(), &phones).await?;
    phones.fault("none").await?;
    let told = stands(&world, id, |told| told.state == NoticeState::Sent).await?;
    assert_eq!((told.repeats, told.pieces), (0, 0), "{told:?}");

    let blocks = blocks(&phones).await?;
    let read: Vec<String> = blocks.iter().flat_map(|(_, block)| block.clone()).collect();
    assert!(read.len() > 1, "it is cut");
    assert_eq!(read.join("\n"), difference, "each piece once, unaltered");
    assert!(
        blocks
            .iter()
            .all(|(sent, _)| sent.text.encode_utf16().count() <= MOST)
    );
    let heads = blocks
        .iter()
        .filter(|(sent, _)| sent.text.contains("May T-001 change files"));
    assert_eq!(heads.count(), 1);
    let with_buttons: Vec<&Message> = blocks
        .iter()
        .map(|(sent, _)| sent)
        .filter(|sent| !sent.buttons.is_empty())
        .collect();
    let [last] = with_buttons[..] else {
        anyhow::bail!("not one message with buttons: {with_buttons:?}");
    };
    phones.press(ADA, ADA, last.id, &last.buttons[1].1).await?;
    phones.shown("Taken: Leave it").await?;
    assert_eq!(world.question(id).await?.state, QuestionState::Answered);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_in_reply_to_any_piece_of_a_long_question_answer_it() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = open(directory.path(), &phones).await?;
    let mut replied = Vec::new();
    for (number, piece) in [0, 1].into_iter().enumerate() {
        let asking = QuestionRequest {
            context: format!("```diff\n{}\n```", difference()),
            ..asking("missing_context", &format!("Which way, {number}?"))?
        };
        let id = world.put(ChangeSet::new(), asking).await?;
        stands(&world, id, |told| told.state == NoticeState::Sent).await?;
        let sent = phones.messages(ADA).await?;
        let title = format!("Which way, {number}?");
        let head = sent.iter().position(|sent| sent.text.contains(&title));
        let pieces = &sent[head.context("no head")?..];
        anyhow::ensure!(pieces.len() > 2, "it is cut: {pieces:?}");
        let words = format!("By boat, {number}");
        phones.reply(ADA, &pieces[piece], &words).await?;
        phones.message(ADA, &format!("Taken: {words}")).await?;
        let answer = world.question(id).await?.answer;
        assert_eq!(answer.map(|answer| answer.text), Some(words));
        // What became of it stands in the place of its end; what it was about stays readable.
        stands(&world, id, |told| !told.outdated && !told.is_open()).await?;
        replied.push(pieces[piece].id);
    }
    let edits = phones.did("editmessagetext").await?;
    let edited = |id: &i64| {
        edits
            .iter()
            .any(|edit| edit["parameters"]["message_id"] == *id)
    };
    assert!(!replied.iter().any(edited), "{edits:?}");
    assert_eq!(world.services.store.count::<Idea>(Query::new()).await?, 0);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_telegram_took_without_saying_so_counts_as_told_twice_and_both_are_mended()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = open(directory.path(), &phones).await?;
    phones.fault("lost").await?;
    let id = world.ask("missing_context", "Which way?").await?;
    let told = stands(&world, id, |told| told.state == NoticeState::Sent).await?;
    let sent = phones.messages(ADA).await?;
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert_eq!(told.repeats, 1, "what may have arrived twice is counted");
    assert_eq!(sent[0].buttons, sent[1].buttons);
    phones
        .press(ADA, ADA, sent[0].id, &sent[0].buttons[1].1)
        .await?;
    phones.shown("Taken: Leave it").await?;
    until("both are mended", || async {
        let edits = phones.did("editmessagetext").await?;
        let of_it = |message: &Message| {
            edits
                .iter()
                .any(|edit| edit["parameters"]["message_id"] == message.id)
        };
        Ok(sent.iter().all(of_it).then_some(()))
    })
    .await?;
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chat_gets_no_more_at_a_time_than_telegram_takes() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = open(directory.path(), &phones).await?;
    for number in 1..=8 {
        let text = format!("Question {number}?");
        world.ask("missing_context", &text).await?;
    }
    until("all of them", || async {
        Ok((phones.messages(ADA).await?.len() == 8).then_some(()))
    })
    .await?;
    let sent = phones.did("sendmessage").await?;
    let at: Vec<f64> = sent.iter().filter_map(|one| one["at"].as_f64()).collect();
    let shortest = at.windows(6).map(|six| six[5] - six[0]);
    let shortest = shortest.fold(f64::MAX, f64::min);
    // What is on its way takes its time.
    assert!(shortest > 4.5, "six messages in {shortest} s: {at:?}");
    world.close().await
}
