//! Whoever does not answer is asked again, by one message at a time.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use ropewalk_runtime::Clock;
use ropewalk_schemas::person::Role;
use ropewalk_schemas::question::QuestionState;

use crate::outage::running;
use crate::phones::{Message, Phones, until};
use crate::world::{ADA, BotWorld};

/// How long after asking people are reminded, and again.
const REMINDER: Duration = Duration::from_mins(30);

/// Opens a world in which ada alone is asked about code.
async fn open(directory: &Path, phones: &Phones, clock: &Clock) -> anyhow::Result<BotWorld> {
    let roles = BTreeMap::from([("ada", Role::Technical)]);
    let never = Duration::from_hours(24 * 365);
    BotWorld::open_for(directory, &phones.server, clock, never, &roles).await
}

/// Waits until ada was asked so often, and returns the message that did last.
async fn asked(phones: &Phones, times: usize) -> anyhow::Result<Message> {
    until(&format!("message {times}"), || async {
        let asked = phones.messages(ADA).await?;
        Ok((asked.len() >= times)
            .then(|| asked.last().cloned())
            .flatten())
    })
    .await
}

/// Waits until these of the messages that ada got still have buttons.
async fn live(phones: &Phones, expected: &[i64]) -> anyhow::Result<()> {
    until(&format!("live {expected:?}"), || async {
        let edits = phones.did("editmessagetext").await?;
        let is_mended = |message: &Message| {
            let mut of_it = edits.iter().map(|edit| &edit["parameters"]);
            of_it.any(|edit| edit["message_id"] == message.id && edit["reply_markup"].is_null())
        };
        let sent = phones.messages(ADA).await?.into_iter();
        let live = sent.filter(|message| !message.buttons.is_empty() && !is_mended(message));
        let live: Vec<i64> = live.map(|message| message.id).collect();
        Ok((live == expected).then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_fourteen_hours_of_reminders_one_message_asks_and_after_the_answer_none()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let (clock, mut moves) = running();
    let mut world = open(directory.path(), &phones, &clock).await?;
    let id = world.ask("missing_context", "Which way?").await?;
    let first = asked(&phones, 1).await?;
    let mut newest = first.clone();
    for reminder in 1..=28 {
        clock.advance(REMINDER);
        newest = asked(&phones, 1 + reminder).await?;
        if reminder == 14 {
            world.close().await?;
            world = open(directory.path(), &phones, &clock).await?;
        }
        live(&phones, &[newest.id]).await?;
    }
    // Words in reply to what was asked long ago still are an answer.
    phones.reply(ADA, &first, "by boat").await?;
    phones.message(ADA, "Taken: by boat").await?;
    live(&phones, &[]).await?;
    let edits = phones.did("editmessagetext").await?;
    let text = |edit: &serde_json::Value| edit["parameters"]["text"].as_str().map(str::to_owned);
    let of_newest = edits
        .iter()
        .filter(|edit| edit["parameters"]["message_id"] == newest.id);
    let of_newest: Vec<_> = of_newest.filter_map(text).collect();
    assert_eq!(of_newest.len(), 1, "{of_newest:?}");
    assert!(of_newest[0].starts_with("Answered by ada over telegram: by boat"));
    assert_eq!(world.question(id).await?.state, QuestionState::Answered);
    moves.shutdown().await;
    world.close().await
}
