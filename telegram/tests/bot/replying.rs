//! What people are answered waits for a flood or a restart, each message of it arrives once, and nobody else waits for it.

use ropewalk_desk::halt;
use serde_json::{Value, json};

use crate::building::{built, told};
use crate::house::{ADA, BOB, House};
use crate::phones::{Phones, until};

/// More answers than are sent in a minute where each waits for those before it.
const MANY: usize = 7;

/// What is answered to whoever turns to an idea that there is not.
const ANSWER: &str = "No idea is called";

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
    let house = House::open(directory.path(), &phones.server).await?;
    phones.fault("flood").await?;
    for number in 0..MANY {
        phones
            .write(BOB, BOB, &format!("/idea number-{number}"))
            .await?;
    }
    phones.write(ADA, ADA, "/stopall fire").await?;
    until("the stop", || async {
        Ok(halt::standing(&house.services.store).await?)
    })
    .await?;
    phones.refusal().await?;
    assert_eq!(answers(&phones, BOB).await?, [""; 0]);
    house.close().await?;
    let house = House::open(directory.path(), &phones.server).await?;
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
    house.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn buttons_that_decided_go_and_words_are_asked_for_also_after_a_flood_and_a_restart()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let house = House::open(directory.path(), &phones.server).await?;
    built(&house, "walks", "succeeded").await?;
    let landing = told(&phones, ADA, "/land").await?;
    phones.fault("still").await?;
    phones
        .press(ADA, ADA, landing.id, &landing.buttons[0].1)
        .await?;
    phones.shown("Recorded").await?;
    phones.refusal().await?;
    house.close().await?;
    let house = House::open(directory.path(), &phones.server).await?;
    phones.fault("none").await?;
    let edited = until("the buttons gone", || async {
        let edits = phones.did("editmessagetext").await?;
        Ok(edits.first().map(|edit| edit["parameters"].clone()))
    })
    .await?;
    assert_eq!(edited["message_id"], json!(landing.id));
    assert_eq!(edited["text"], "ada lets the build of walks be landed.");

    house.ask("missing_context", "Which way?").await?;
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
    house.close().await?;
    let house = House::open(directory.path(), &phones.server).await?;
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
    house.close().await
}
