//! Telegram is away for an hour: what happens meanwhile is told once when it is back, and what people did there is done once.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::DateTime;
use ropewalk_orchestrator::questions;
use ropewalk_runtime::Clock;
use ropewalk_schemas::idea::Idea;
use ropewalk_schemas::notice::{Notice, NoticeState};
use ropewalk_schemas::question::QuestionState;
use ropewalk_store::Query;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::phones::{Phones, until};
use crate::world::{ADA, BOB, BotWorld};

/// How much faster than here time passes.
const FASTER: u32 = 20;

/// Returns a clock whose time passes at all, as long as who keeps it moving lives: a pause of the bot ends.
pub(crate) fn running() -> (Clock, JoinSet<()>) {
    let clock = Clock::manual(DateTime::UNIX_EPOCH + Duration::from_secs(1_795_294_145));
    let mut moves = JoinSet::new();
    let passes = clock.clone();
    moves.spawn(async move {
        let step = Duration::from_millis(5);
        loop {
            tokio::time::sleep(step).await;
            passes.advance(step * FASTER);
        }
    });
    (clock, moves)
}

/// Lets so much time pass while the bot does what it does.
pub(crate) async fn pass(clock: &Clock, duration: Duration) {
    let step = Duration::from_secs(5);
    let mut left = duration;
    while !left.is_zero() {
        clock.advance(step.min(left));
        left = left.saturating_sub(step);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Returns how many messages with `part` came to a chat.
async fn count(phones: &Phones, chat: i64, part: &str) -> anyhow::Result<usize> {
    let messages = phones.messages(chat).await?;
    let with_part = messages.iter().filter(|one| one.text.contains(part));
    Ok(with_part.count())
}

/// Waits until nothing is to be told any more.
async fn settled(world: &BotWorld) -> anyhow::Result<()> {
    until("the last notice", || async {
        let notices = world.services.store.list::<Notice>(Query::new()).await?;
        let open = notices.iter().any(|notice| notice.is_open());
        Ok((!open).then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_an_hour_without_telegram_everything_is_told_and_done_once() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let (clock, mut moves) = running();
    let world = BotWorld::open_at(directory.path(), &phones.server, &clock).await?;
    let pressed = world.ask("missing_context", "Which way?").await?;
    let ada = phones.message(ADA, "Which way?").await?;
    phones.message(BOB, "Which way?").await?;

    phones.fault("away").await?;
    phones.press(ADA, ADA, ada.id, &ada.buttons[1].1).await?;
    phones.write(ADA, ADA, "Walks").await?;
    let mut asked = Vec::new();
    for number in 0..6 {
        let text = format!("Question number {number}?");
        asked.push(world.ask("missing_context", &text).await?);
        pass(&clock, Duration::from_mins(10)).await;
    }
    until("many looks", || async {
        Ok((phones.faults().await? > 20).then_some(()))
    })
    .await?;
    // An answer elsewhere counts, and is no news to whoever was never asked.
    questions::answer(&world.context()?, asked[0], "leave", "ada", "cli").await?;
    assert_eq!(world.question(pressed).await?.state, QuestionState::Pending);
    phones.fault("none").await?;

    // The longest pause is over.
    pass(&clock, Duration::from_mins(6)).await;
    phones.shown("Taken: Leave it").await?;
    phones.message(ADA, "It is the idea walks now").await?;
    settled(&world).await?;
    for chat in [ADA, BOB] {
        assert_eq!(count(&phones, chat, "number 0?").await?, 0, "{chat}");
        for number in 1..6 {
            let told = count(&phones, chat, &format!("number {number}?")).await?;
            assert_eq!(
                told,
                1,
                "{number} to {chat}: {:#?}",
                phones.messages(chat).await?
            );
        }
    }
    assert_eq!(count(&phones, ADA, "It is the idea walks now").await?, 1);
    let question = world.question(pressed).await?;
    assert_eq!(question.state, QuestionState::Answered);
    assert_eq!(world.services.store.count::<Idea>(Query::new()).await?, 1);
    until("both are mended", || async {
        let edits = phones.did("editmessagetext").await?.into_iter();
        let text = |edit: &Value| edit["parameters"]["text"].to_string();
        let who = "Answered by ada over telegram: Leave it";
        let mended = edits.filter(|edit| text(edit).contains(who));
        // Where a reminder came before the outage, there are two messages in each chat.
        let chats: BTreeSet<String> = mended
            .map(|edit| edit["parameters"]["chat_id"].to_string())
            .collect();
        Ok((chats.len() == 2).then_some(()))
    })
    .await?;
    let notices = world.services.store.list::<Notice>(Query::new()).await?;
    let dead = notices
        .iter()
        .filter(|notice| notice.state == NoticeState::Dead);
    assert_eq!(dead.count(), 0, "{notices:#?}");
    moves.shutdown().await;
    world.close().await
}
