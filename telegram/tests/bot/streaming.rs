//! The words of an answer are shown while they come, in one message that holds the whole in the end.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use ropewalk_bus::LiveEvent;
use ropewalk_desk::phones as linking;
use ropewalk_desk::views::metrics;
use ropewalk_schemas::idea::Message;
use ropewalk_schemas::{MessageId, Slug, Subject, UserSlug};
use ropewalk_store::Query;
use serde_json::{Value, json};

use crate::phones::{self, Phones, until};
use crate::talking::answer;
use crate::world::{ADA, BotWorld};

/// Tells of words that came, as the ideation agent does.
fn delta(world: &BotWorld, answers: MessageId, of_try: &str, text: &str) -> anyhow::Result<()> {
    world.services.bus.live().publish(LiveEvent {
        event_type: "ideation.delta".to_owned(),
        subject: Subject::idea(&Slug::parse("walks")?),
        data: json!({ "message_id": answers, "try": of_try, "text": text }),
    });
    Ok(())
}

/// Returns the newest message of a conversation.
async fn newest(world: &BotWorld) -> anyhow::Result<MessageId> {
    let messages = world.services.store.list::<Message>(Query::new()).await?;
    messages
        .iter()
        .map(|message| message.id)
        .max()
        .context("no message")
}

/// Returns the texts that stood in the place of a message, in order.
async fn edits(phones: &Phones, message: i64) -> anyhow::Result<Vec<String>> {
    let edits = phones.did("editmessagetext").await?;
    let of_it = edits
        .iter()
        .map(|edit| &edit["parameters"])
        .filter(|edit| edit["message_id"] == message);
    let text = |edit: &Value| edit["text"].as_str().unwrap_or_default().to_owned();
    Ok(of_it.map(text).collect())
}

/// Waits until the last text in the place of a message is `text`.
async fn becomes(phones: &Phones, message: i64, text: &str) -> anyhow::Result<Vec<String>> {
    until(text, || async {
        let edits = edits(phones, message).await?;
        Ok((edits.last().map(String::as_str) == Some(text)).then_some(edits))
    })
    .await
}

/// Begins an idea whose first answer begins with these words; returns what they answer, and the message that shows them.
async fn begun(
    world: &BotWorld,
    phones: &Phones,
    words: &str,
) -> anyhow::Result<(MessageId, phones::Message)> {
    phones.write(ADA, ADA, "Walks").await?;
    phones.message(ADA, "It is the idea walks now").await?;
    let answers = newest(world).await?;
    delta(world, answers, "1", words)?;
    let shown = phones.message(ADA, &format!("{words} …")).await?;
    Ok((answers, shown))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_are_shown_while_they_come_in_one_message_that_is_not_edited_often()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let (answers, shown) = begun(&world, &phones, "Who").await?;
    let began = Instant::now();
    for _ in 0..40 {
        delta(&world, answers, "1", " walks")?;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let edited = until("an edit", || async {
        let edited = edits(&phones, shown.id).await?.len();
        Ok((edited > 0).then_some(edited))
    })
    .await?;
    // The first comes after a second, and another one every two.
    let took = began.elapsed();
    let most = 1 + usize::try_from(took.as_secs())? / 2;
    assert!(edited <= most, "{edited} edits in {took:?}");
    // A try that broke off is forgotten with its words.
    delta(&world, answers, "2", "Where do")?;
    becomes(&phones, shown.id, "Where do …").await?;
    answer(&world, "Where do **you** walk?").await?;
    becomes(&phones, shown.id, "Where do you walk?").await?;
    let told = phones.messages(ADA).await?;
    assert_eq!(told.len(), 2, "one message for the answer: {told:#?}");

    // The next one is another message.
    let before = newest(&world).await?;
    phones.write(ADA, ADA, "In the hills").await?;
    until("the next message", || async {
        Ok((newest(&world).await? > before).then_some(()))
    })
    .await?;
    answer(&world, "Which hills?").await?;
    phones.message(ADA, "Which hills?").await?;
    assert_eq!(phones.messages(ADA).await?.len(), 3);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_whose_words_a_restart_cut_off_takes_their_place() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let (answers, shown) = begun(&world, &phones, "Who").await?;
    world.close().await?;
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    // What comes now begins in the middle, and is not shown.
    delta(&world, answers, "1", "in the middle")?;
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    answer(&world, "Who walks?").await?;
    assert_eq!(
        becomes(&phones, shown.id, "Who walks?").await?,
        ["Who walks?"]
    );
    assert_eq!(phones.messages(ADA).await?.len(), 2);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_of_whose_first_words_nobody_knows_arrives_once_and_a_press_mends_those()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    phones.write(ADA, ADA, "Walks").await?;
    phones.message(ADA, "It is the idea walks now").await?;
    // As after a death between sending them and writing that down.
    phones.fault("lost").await?;
    delta(&world, newest(&world).await?, "1", "Who")?;
    let lost = phones.message(ADA, "Who …").await?;
    let [(label, data)] = &lost.buttons[..] else {
        anyhow::bail!("not one button: {lost:?}");
    };
    assert_eq!(label, "Show the whole answer");
    phones.press(ADA, ADA, lost.id, data).await?;
    phones.shown("The answer is still being written.").await?;
    world.close().await?;
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    delta(&world, newest(&world).await?, "2", "Who walks")?;
    answer(&world, "Who walks?").await?;
    phones.message(ADA, "Who walks?").await?;
    phones.press(ADA, ADA, lost.id, data).await?;
    becomes(&phones, lost.id, "Who walks?").await?;
    phones.write(ADA, ADA, "/ideas").await?;
    phones.message(ADA, "walks: Walks").await?;
    let told = phones.messages(ADA).await?;
    let texts: Vec<&str> = told.iter().map(|one| one.text.as_str()).collect();
    assert_eq!(&texts[1..3], ["Who …", "Who walks?"], "{told:#?}");
    assert_eq!(texts.len(), 4, "each once: {told:#?}");
    let phone = linking::of(&world.services.store, &UserSlug::parse("ada")?).await?;
    assert_eq!((phone.repeats, phone.draft), (1, None));
    let told = metrics::text(&metrics::list(&world.services.store).await?);
    let counted = "ropewalk_phone_repeats_total{person=\"ada\"} 1\n";
    assert!(told.contains(counted), "it is shown: {told}");
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_answer_arrives_once_though_telegram_breaks_off_in_between() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let (_, shown) = begun(&world, &phones, "Long").await?;
    phones.fault("flood").await?;
    let parts = ["a", "b", "c"].map(|letter| letter.repeat(3_000));
    answer(&world, &parts.join("\n\n")).await?;
    becomes(&phones, shown.id, &parts[0]).await?;
    phones.refusal().await?;
    phones.fault("none").await?;
    phones.message(ADA, &parts[2]).await?;
    phones.write(ADA, ADA, "/ideas").await?;
    phones.message(ADA, "walks: Walks").await?;
    let told = phones.messages(ADA).await?;
    for part in &parts[1..] {
        let of_it = told.iter().filter(|one| one.text == *part).count();
        assert_eq!(of_it, 1, "{}", &part[..1]);
    }
    world.close().await
}
