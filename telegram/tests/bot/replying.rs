//! What people are answered waits for a flood or a restart, each message of it arrives once, and nobody else waits for it.

use std::time::{Duration, Instant};

use ropewalk_desk::{halt, phones as linking};
use ropewalk_schemas::idea::Idea;
use ropewalk_schemas::phone::{BuildOffer, Reply};
use ropewalk_schemas::{ContentHash, ReplyId, SpecId, UserSlug};
use ropewalk_store::Query;
use serde_json::{Value, json};

use crate::building::{built, events, told};
use crate::phones::{Phones, until};
use crate::world::{ADA, BOB, BotWorld};

/// More answers than are sent in a minute where each waits for those before it.
const MANY: usize = 7;

/// What is answered to whoever turns to an idea that there is not.
const ANSWER: &str = "No idea is called";

/// How many bytes a row of the store has at most.
const ROW: usize = 1_024 * 1_024;

/// Fills what is known of a phone, with what is to be said there, so that no more can be written down.
async fn fill(world: &BotWorld, name: &UserSlug, replies: &[Reply]) -> anyhow::Result<()> {
    let mut phone = linking::of(&world.services.store, name).await?;
    let mut offer = BuildOffer {
        nonce: String::new(),
        spec: SpecId(world.services.ids.next()),
        hash: ContentHash::of(b"walks"),
        until: world.services.clock.now(),
    };
    phone.starting = Some(offer.clone());
    phone.replies = replies.to_vec();
    offer.nonce = "x".repeat(ROW - serde_json::to_string(&phone)?.len());
    let context = world.context()?;
    linking::change(&context, name, |phone| {
        phone.starting = Some(offer.clone());
        phone.replies = replies.to_vec();
    })
    .await?;
    Ok(())
}

/// Lists those answers that a chat got.
async fn answers(phones: &Phones, chat: i64) -> anyhow::Result<Vec<String>> {
    let got = phones.messages(chat).await?.into_iter();
    let answers = got
        .map(|one| one.text)
        .filter(|text| text.starts_with(ANSWER));
    Ok(answers.collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_keeps_no_stop_waiting_and_loses_no_answer_over_a_restart() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    phones.fault("flood").await?;
    for number in 0..MANY {
        phones
            .write(BOB, BOB, &format!("/idea number-{number}"))
            .await?;
    }
    phones.write(ADA, ADA, "/stopall fire").await?;
    until("the stop", || async {
        Ok(halt::standing(&world.services.store).await?)
    })
    .await?;
    phones.refusal().await?;
    assert_eq!(answers(&phones, BOB).await?, [""; 0]);
    world.close().await?;
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    phones.fault("none").await?;
    phones.message(ADA, "Everything is stopped").await?;
    // One more shows that nothing is said twice.
    phones
        .write(BOB, BOB, &format!("/idea number-{MANY}"))
        .await?;
    phones.message(BOB, &format!("number-{MANY};")).await?;
    let expected: Vec<String> = (0..=MANY)
        .map(|number| format!("{ANSWER} number-{number}; /ideas lists them."))
        .collect();
    assert_eq!(answers(&phones, BOB).await?, expected);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn buttons_that_decided_go_and_words_are_asked_for_also_after_a_flood_and_a_restart()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    built(&world, "walks", "succeeded").await?;
    let landing = told(&phones, ADA, "/land").await?;
    phones.fault("still").await?;
    phones
        .press(ADA, ADA, landing.id, &landing.buttons[0].1)
        .await?;
    phones.shown("Recorded").await?;
    phones.refusal().await?;
    world.close().await?;
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    phones.fault("none").await?;
    let edited = until("the buttons gone", || async {
        let edits = phones.did("editmessagetext").await?;
        Ok(edits.first().map(|edit| edit["parameters"].clone()))
    })
    .await?;
    assert_eq!(edited["message_id"], json!(landing.id));
    assert_eq!(edited["text"], "ada lets the build of walks be landed.");

    world.ask("missing_context", "Which way?").await?;
    let asked = phones.message(ADA, "Which way?").await?;
    phones.message(BOB, "Which way?").await?;
    let refused = phones.refusals().await?;
    phones.fault("flood").await?;
    phones
        .press(ADA, ADA, asked.id, &asked.buttons[2].1)
        .await?;
    phones.shown("Write your words").await?;
    until("a refusal", || async {
        Ok((phones.refusals().await? > refused).then_some(()))
    })
    .await?;
    world.close().await?;
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    phones.fault("none").await?;
    phones.message(ADA, "What exactly?").await?;
    let sent = phones.did("sendmessage").await?;
    let asks = |one: &&Value| {
        one["parameters"]["text"]
            .to_string()
            .contains("What exactly?")
    };
    let asks: Vec<&Value> = sent.iter().filter(asks).collect();
    assert_eq!(asks.len(), 1);
    assert_eq!(
        asks[0]["parameters"]["reply_markup"],
        json!({ "force_reply": true })
    );
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_be_written_down_of_nobody_keeps_no_stop_of_another_waiting() -> anyhow::Result<()>
{
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let bob = UserSlug::parse("bob")?;
    fill(&world, &bob, &[]).await?;
    let began = Instant::now();
    phones.write(BOB, BOB, "Walks").await?;
    phones.write(ADA, ADA, "/stopall fire").await?;
    phones.message(ADA, "Everything is stopped").await?;
    let time = began.elapsed();
    assert!(
        time < Duration::from_secs(12),
        "it waited for tries: {time:?}"
    );
    let left = events(&world, "phone.update_left").await?;
    let [left] = &left[..] else {
        anyhow::bail!("not one: {left:#?}");
    };
    let why = left["reason"].as_str().unwrap_or_default();
    assert!(why.contains("row `bob` of `phones`"), "{why}");

    // What was kept is done once there is room for it.
    let context = world.context()?;
    linking::change(&context, &bob, |phone| phone.starting = None).await?;
    until("the idea", || async {
        let ideas = world.services.store.count::<Idea>(Query::new()).await?;
        Ok((ideas == 1).then_some(()))
    })
    .await?;
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_owed_more_than_a_phone_holds_hears_of_what_could_not_be_done_and_is_heard_again()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    phones.fault("flood").await?;
    let bob = UserSlug::parse("bob")?;
    let owed = Reply {
        id: ReplyId(world.services.ids.next()),
        chat: BOB,
        edits: None,
        text: "x".repeat(3_000),
        buttons: Vec::new(),
        wants_words: false,
        pieces: 0,
        sending: false,
        at: world.services.clock.now(),
    };
    fill(&world, &bob, &[owed]).await?;
    phones.write(BOB, BOB, "Walks").await?;
    until("what was left", || async {
        let left = events(&world, "phone.update_left").await?;
        Ok((left.len() == 1).then_some(()))
    })
    .await?;
    phones.fault("none").await?;
    let told = phones.message(BOB, "This could not be done").await?.text;
    assert!(told.contains("to be said before that is gone"), "{told}");
    phones.message(BOB, "It is the idea walks now").await?;
    world.close().await
}
