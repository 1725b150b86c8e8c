//! Kills while an answer of a model is shown on a phone: sent, edited as more of it comes, and put where somebody pressed.

use anyhow::Context;
use serde_json::{Value, json};

use super::Phone;
use crate::running::stop;

/// What the model says in the end, and what its first words are shown with.
const ANSWER: &str = "Noted, all of it.";
const FIRST_WORDS: &str = "…";

/// Lets the model answer, perhaps `slowly`: it says a few words before it looks around, and takes its time then.
fn speak(phone: &Phone, slowly: bool) -> anyhow::Result<()> {
    let script = phone.project.path().join("script.yaml");
    let looks = json!({ "text": "Let me look around.", "tools": [{ "name": "ls", "input": {} }] });
    let looks = json!({ "agent": "ideation", "turn": 1, "reply": looks });
    let answers = json!([{ "name": "reply", "input": {
        "text": ANSWER, "artifacts": [], "decisions": [], "risks": [], "confidence": 0.4 } }]);
    let answers = |delay: u32| json!({ "agent": "ideation", "reply": { "delay_ms": delay, "tools": answers } });
    let rules = if slowly {
        json!([looks, answers(5_000)])
    } else {
        json!([answers(0)])
    };
    Ok(std::fs::write(script, rules.to_string())?)
}

#[tokio::test]
async fn a_kill_while_an_answer_is_shown_leaves_one_message_more_at_most_and_counts_it()
-> anyhow::Result<()> {
    let phone = Phone::linked().await?;
    let (mut drafts, mut answers) = (0, 0);
    for (round, (slowly, place, drafted, answered)) in [
        // Its first words are sent, which a press mends where nobody else does.
        (true, "telegram.answer.begun:1", 0, 1),
        (true, "telegram.answer.sent:1", 1, 1),
        // The whole of it is.
        (false, "telegram.answer.begun:1", 0, 1),
        (false, "telegram.answer.sent:1", 0, 2),
    ]
    .into_iter()
    .enumerate()
    {
        speak(&phone, slowly)?;
        let idea = format!("a page that counts all the walks of a week, for the {round}. time");
        phone.write(&format!("/newtask {idea}")).await?;
        phone.project.crash_at(place, &[]).await?;
        drafts += drafted;
        let told = phone.did("sendmessage").await?;
        assert_eq!(
            phone.sent(FIRST_WORDS).await?.len(),
            drafts,
            "{round}: {told:#?}"
        );
        let mut up = phone.up().await?;
        answers += answered;
        phone.messages_with(ANSWER, answers).await?;
        if drafted > 0 {
            let lost = phone.messages_with(FIRST_WORDS, drafts).await?.pop();
            let lost = lost.context("no first words")?;
            phone.press(&lost, "Show the whole answer").await?;
            let number = &lost["result"]["message_id"];
            phone.until_edited(number, ANSWER).await?;
        }
        stop(&mut up).await?;
        let pat = phone.known().await?;
        let repeats = u32::try_from(round)? + 1;
        assert_eq!((pat.repeats, pat.draft), (repeats, None), "{round}");
        assert_eq!(phone.sent(FIRST_WORDS).await?.len(), drafts, "{round}");
        assert_eq!(phone.sent(ANSWER).await?.len(), answers, "{round}");
    }
    Ok(())
}

/// Lets somebody have an idea whose answer comes slowly, and returns the message that holds its first words.
async fn first_words(phone: &Phone, idea: &str, place: &str) -> anyhow::Result<Value> {
    let before = phone.sent(FIRST_WORDS).await?.len();
    phone.write(&format!("/newtask {idea}")).await?;
    phone.project.crash_at(place, &[]).await?;
    let mut sent = phone.sent(FIRST_WORDS).await?;
    assert_eq!(sent.len(), before + 1, "{place}: {sent:?}");
    sent.pop().context("no first words")
}

#[tokio::test]
async fn a_kill_while_an_answer_is_edited_repeats_nothing_and_it_stands_where_it_began()
-> anyhow::Result<()> {
    let phone = Phone::linked().await?;
    speak(&phone, true)?;
    for place in [
        "telegram.answer.edit.before:1",
        "telegram.answer.edit.after:1",
    ] {
        let idea = format!("a page that counts the walks of a week at {place}");
        let begun = first_words(&phone, &idea, place).await?;
        let mut up = phone.up().await?;
        let number = &begun["result"]["message_id"];
        phone.until_edited(number, ANSWER).await?;
        phone.until_said().await?;
        stop(&mut up).await?;
        let pat = phone.known().await?;
        assert_eq!(
            (pat.repeats, pat.draft.map(|draft| draft.sending)),
            (0, None),
            "{place}"
        );
        assert_eq!(phone.sent(ANSWER).await?.len(), 0, "{place}");
    }
    Ok(())
}

#[tokio::test]
async fn a_kill_while_an_answer_is_put_where_somebody_pressed_leaves_it_there_and_sends_nothing()
-> anyhow::Result<()> {
    let phone = Phone::linked().await?;
    speak(&phone, true)?;
    // Of these words nobody knows whether they arrived, so that the answer came in another message.
    let idea = "a page that counts all the walks of a month, for everybody who walks";
    let lost = first_words(&phone, idea, "telegram.answer.sent:1").await?;
    let mut up = phone.up().await?;
    phone.messages_with(ANSWER, 1).await?;
    stop(&mut up).await?;
    let number = &lost["result"]["message_id"];
    for (place, seen) in [
        ("telegram.answer.edit.before:1", 1),
        ("telegram.answer.edit.after:1", 2),
    ] {
        phone.press(&lost, "Show the whole answer").await?;
        phone.project.crash_at(place, &[]).await?;
        let mut up = phone.up().await?;
        phone.until_seen("The answer is here.", seen).await?;
        phone.until_edited(number, ANSWER).await?;
        stop(&mut up).await?;
        assert_eq!(phone.known().await?.repeats, 1, "{place}");
        let sent = (
            phone.sent(FIRST_WORDS).await?.len(),
            phone.sent(ANSWER).await?.len(),
        );
        assert_eq!(sent, (1, 1), "{place}");
    }
    Ok(())
}
