//! A file that is fetched, and what is done behind it: kept by the program, in its order, and nothing of it before a stop.

use std::time::Duration;

use anyhow::Context as _;
use chrono::{DateTime, Utc};
use ropewalk_runtime::Clock;
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::halt::Halt;
use ropewalk_schemas::payload::UpdateLeft;
use ropewalk_schemas::phone::Phone;
use ropewalk_schemas::question::QuestionState;
use ropewalk_schemas::{ComponentName, Event, EventPattern, Payload, Subject};
use ropewalk_store::{ChangeSet, EventFilter, Query, StoredEvent};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::building::{built, change, events, told};
use crate::files::{document, said};
use crate::outage::{pass, running};
use crate::phones::{Phones, until};
use crate::world::{ADA, BOB, BotWorld};

/// More updates than Telegram brings at once.
const MORE_THAN_AT_ONCE: usize = 110;
/// How long a file is fetched at most.
const LONGEST: Duration = Duration::from_mins(3);
/// The number of the bot, which stands before its token.
const BOT: i64 = 123_456;

/// Opens a world in which ada talks about an idea, and a file that she may send is held back at Telegram. Its directory lasts as long
/// as what is returned first.
async fn held() -> anyhow::Result<(TempDir, Phones, BotWorld)> {
    held_at(&Clock::system()).await
}

/// Does the same at the time of `clock`.
async fn held_at(clock: &Clock) -> anyhow::Result<(TempDir, Phones, BotWorld)> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open_at(directory.path(), &phones.server, clock).await?;
    phones.write(ADA, ADA, "Walks").await?;
    phones.message(ADA, "It is the idea walks now").await?;
    phones.hold("notes", b"Count steps.\n").await?;
    phones.hold_back("notes", true).await?;
    Ok((directory, phones, world))
}

/// Lets ada send the file.
async fn sends(phones: &Phones) -> anyhow::Result<()> {
    let notes = document("notes", "notes.md", 13);
    phones.send(ADA, notes, "My notes").await
}

/// Lets ada stop everything, and then the file come that was held back.
async fn stops(phones: &Phones) -> anyhow::Result<()> {
    phones.write(ADA, ADA, "/stopall the disk burns").await?;
    phones
        .message(ADA, "Everything is stopped. /resumeall lets it go on.")
        .await?;
    phones.hold_back("notes", false).await
}

/// Lists what was kept until it had its turn.
async fn kept_updates(world: &BotWorld) -> anyhow::Result<Vec<StoredEvent>> {
    let filter = EventFilter {
        pattern: Some(EventPattern::of("phone.update_kept")),
        limit: Some(1_000),
        ..EventFilter::default()
    };
    Ok(world.services.store.events(&filter).await?)
}

/// Waits until so much is kept.
async fn until_kept(world: &BotWorld, number: usize) -> anyhow::Result<Vec<StoredEvent>> {
    until("what is kept", || async {
        let kept = kept_updates(world).await?;
        Ok((kept.len() == number).then_some(kept))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_takes_its_time_keeps_nobody_but_its_sender_waiting_and_is_not_lost()
-> anyhow::Result<()> {
    let (directory, phones, world) = held().await?;
    let id = world.ask("missing_context", "Where?").await?;
    let bob = phones.message(BOB, "Where?").await?;
    sends(&phones).await?;
    phones.write(ADA, ADA, "And count rests").await?;
    phones.press(BOB, BOB, bob.id, &bob.buttons[1].1).await?;
    phones.shown("Taken: Leave it").await?;
    let answer = world.question(id).await?.answer;
    assert_eq!(answer.map(|answer| answer.by), Some("bob".to_owned()));
    let first = said(&world).await?;
    assert_eq!(
        first.len(),
        1,
        "what ada sent comes in its order: {first:?}"
    );

    // None of it is lost.
    world.close().await?;
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    phones.hold_back("notes", false).await?;
    phones
        .message(ADA, "Kept with walks as attachments/notes.md.")
        .await?;
    let said = until("what ada wrote behind it", || async {
        let said = said(&world).await?;
        Ok((said.len() == 3).then_some(said))
    })
    .await?;
    assert!(said[1].0.starts_with("My notes\n"), "{said:?}");
    assert_eq!(said[2].0, "And count rests");
    assert_eq!(phones.did("answercallbackquery").await?.len(), 1);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_much_stands_behind_a_file_others_are_heard_and_nothing_is_asked_for_twice()
-> anyhow::Result<()> {
    let (_directory, phones, world) = held().await?;
    world.ask("missing_context", "Where?").await?;
    let ada = phones.message(ADA, "Where?").await?;
    let bob = phones.message(BOB, "Where?").await?;
    sends(&phones).await?;
    phones.press(ADA, ADA, ada.id, &ada.buttons[0].1).await?;
    for number in 0..MORE_THAN_AT_ONCE {
        let forged = format!("{number}:0");
        phones.press(ADA, ADA, ada.id, &forged).await?;
    }
    phones.press(BOB, BOB, bob.id, &bob.buttons[1].1).await?;
    phones.shown("Taken: Leave it").await?;
    // The phone of ada waits for none of hers.
    let shown = phones.did("answercallbackquery").await?.len();
    assert_eq!(shown, MORE_THAN_AT_ONCE + 2);
    phones.hold_back("notes", false).await?;
    phones
        .message(ADA, "Kept with walks as attachments/notes.md.")
        .await?;
    phones.message(ADA, "Answered already, by bob").await?;
    until("all that stood behind it", || async {
        let phone = world.services.store.get::<Phone>("ada").await?;
        Ok(phone
            .filter(|phone| phone.updates.kept.is_none())
            .map(|_| ()))
    })
    .await?;
    assert_eq!(phones.most_often_brought().await?, 1);
    // What ada does now waits for nothing any more.
    let kept = kept_updates(&world).await?.len();
    phones.write(ADA, ADA, "/status").await?;
    phones.message(ADA, "No build yet.").await?;
    assert_eq!(kept_updates(&world).await?.len(), kept);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_telegram_brings_itself_keeps_nobody_waiting_either_and_is_not_lost()
-> anyhow::Result<()> {
    let (directory, phones, world) = held().await?;
    let written = |number: u32, message: Value| {
        let update = json!({ "update_id": number, "message": message });
        update.to_string().into_bytes()
    };
    let notes = Phones::of_file(ADA, document("notes", "notes.md", 13), "My notes")?;
    let notes = written(1_000, notes);
    let hook = world.hook()?;
    hook.take(&notes).await?;
    let rests = Phones::of(ADA, ADA, "And count rests");
    hook.take(&written(1_001, rests)).await?;
    let asks = Phones::of(BOB, BOB, "/status");
    hook.take(&written(1_002, asks)).await?;
    phones.message(BOB, "No build yet.").await?;
    // Telegram brings again what it heard no answer to.
    hook.take(&notes).await?;
    assert_eq!(said(&world).await?.len(), 1);

    world.close().await?;
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    phones.hold_back("notes", false).await?;
    phones
        .message(ADA, "Kept with walks as attachments/notes.md.")
        .await?;
    let in_order = || async {
        let said = said(&world).await?;
        Ok((said.len() == 3).then_some(said))
    };
    let said = until("what ada wrote behind it", in_order).await?;
    assert!(said[1].0.starts_with("My notes\n"), "{said:?}");
    assert_eq!(said[2].0, "And count rests");
    world.hook()?.take(&notes).await?;
    assert_eq!(kept_updates(&world).await?.len(), 2, "each once");
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_kept_is_done_once_though_it_is_handed_out_again_behind_what_came_directly()
-> anyhow::Result<()> {
    let (_directory, phones, world) = held().await?;
    phones.hold_back("notes", false).await?;
    sends(&phones).await?;
    phones
        .message(ADA, "Kept with walks as attachments/notes.md.")
        .await?;
    phones.write(ADA, ADA, "And count rests").await?;
    let all = || async { Ok((said(&world).await?.len() == 3).then_some(())) };
    until("what ada wrote directly", all).await?;

    // A death between what it came to and the end of its delivery has the same handed out again.
    let [before] = &kept_updates(&world).await?[..] else {
        anyhow::bail!("it was not kept once");
    };
    let before = Event::try_from(before.event.as_ref())?;
    let again = world.context()?.event(before.subject, before.payload);
    let mut changes = ChangeSet::new();
    changes.emit(again);
    world.services.store.commit(changes).await?;
    phones.write(ADA, ADA, "/status").await?;
    phones.message(ADA, "No build yet.").await?;
    let store = &world.services.store;
    let is_handled = || async {
        let open = store.open_deliveries(None, 0, 10).await?;
        let mut of_phones = open.iter().map(|row| row.event.event_type.as_str());
        Ok((!of_phones.any(|one| one.starts_with("phone."))).then_some(()))
    };
    until("the end of what was handed out again", is_handled).await?;
    assert_eq!(said(&world).await?.len(), 3, "nothing is done twice");
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_waits_behind_no_file_and_what_was_said_before_it_undoes_nothing()
-> anyhow::Result<()> {
    let (_directory, phones, world) = held().await?;
    sends(&phones).await?;
    phones.write(ADA, ADA, "/resumeall").await?;
    stops(&phones).await?;
    phones
        .message(ADA, "You asked to stop something after you sent /resumeall")
        .await?;
    assert_eq!(
        kept_updates(&world).await?.len(),
        2,
        "the file, and what came before"
    );
    let halts = world.services.store.count::<Halt>(Query::new()).await?;
    assert_eq!(halts, 1, "the last word was a stop");
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_without_consequences_counts_before_a_stop_and_any_other_button_is_pressed_again()
-> anyhow::Result<()> {
    let (_directory, phones, world) = held().await?;
    let asks = world.ask("missing_context", "Where?").await?;
    let binds = world.ask_what_binds("build_finished", "Merge?").await?;
    let place = phones.message(ADA, "Where?").await?;
    let merge = phones.message(ADA, "Merge?").await?;
    sends(&phones).await?;
    phones
        .press(ADA, ADA, place.id, &place.buttons[1].1)
        .await?;
    phones
        .press(ADA, ADA, merge.id, &merge.buttons[0].1)
        .await?;
    stops(&phones).await?;
    let told = phones
        .message(
            ADA,
            "You asked to stop something after you pressed a button",
        )
        .await?;
    for part in ["Press it again", "/questions"] {
        assert!(told.text.contains(part), "{part} in {}", told.text);
    }
    let answer = world.question(asks).await?.answer;
    assert_eq!(
        answer.map(|answer| answer.text),
        Some("Leave it".to_owned())
    );
    let question = world.question(binds).await?;
    assert_eq!(
        (question.state, question.answer),
        (QuestionState::Pending, None)
    );
    phones
        .press(ADA, ADA, merge.id, &merge.buttons[0].1)
        .await?;
    phones.shown("Taken: Merge it").await?;
    assert_eq!(world.question(binds).await?.state, QuestionState::Answered);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_for_a_choice_with_consequences_before_a_stop_are_sent_again_and_told_to_no_model()
-> anyhow::Result<()> {
    let (_directory, phones, world) = held().await?;
    let id = world.ask_what_binds("build_finished", "Merge?").await?;
    let merge = phones.message(ADA, "Merge?").await?;
    phones
        .press(ADA, ADA, merge.id, &merge.buttons[2].1)
        .await?;
    phones.message(ADA, "What exactly?").await?;
    sends(&phones).await?;
    phones.write(ADA, ADA, "By boat").await?;
    stops(&phones).await?;
    phones
        .message(ADA, "You asked to stop something after you sent words")
        .await?;
    assert_eq!(world.question(id).await?.state, QuestionState::Pending);
    assert_eq!(said(&world).await?.len(), 2, "the idea, and the file");
    phones.write(ADA, ADA, "By boat").await?;
    phones.message(ADA, "Taken: By boat").await?;
    world.close().await
}

/// What somebody typed.
pub(crate) fn typed(text: &str) -> Value {
    json!({ "Wrote": { "text": text, "reply_to": null, "forwarded": false, "private": true } })
}

/// Leaves what ada had done before everything else, as where the store had failed when it came.
pub(crate) async fn leave(
    world: &BotWorld,
    did: &Value,
    begun_at: Option<DateTime<Utc>>,
) -> anyhow::Result<()> {
    let update = json!({ "id": 0, "from": { "user": ADA, "chat": ADA }, "did": did });
    let payload = Payload::UpdateLeft(UpdateLeft {
        bot: BOT,
        update_id: 0,
        update,
        begun_at,
        reason: "the store failed".to_owned(),
    });
    let subject = Subject::component(&ComponentName::parse("telegram")?);
    let mut changes = ChangeSet::new();
    changes.emit(world.context()?.event(subject, payload));
    world.services.store.commit(changes).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_that_was_recorded_before_it_was_given_up_stops_no_other_build() -> anyhow::Result<()>
{
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let rivers = built(&world, "rivers", "running").await?;
    let begun = world.services.clock.now();
    let says = told(&phones, ADA, "/stop").await?.text;
    assert_eq!(says, "Recorded: the build of rivers stops.");
    change(&world, rivers, |build| build.state = BuildState::Stopped).await?;
    built(&world, "walks", "running").await?;
    leave(&world, &typed("/stop"), Some(begun)).await?;
    until("the same answer", || async {
        let told = phones.messages(ADA).await?;
        let same = told.iter().filter(|one| one.text == says);
        Ok((same.count() == 2).then_some(()))
    })
    .await?;
    assert_eq!(events(&world, "build.stop").await?.len(), 1);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_could_not_be_done_before_a_stop_sets_nothing_going_after_it_either()
-> anyhow::Result<()> {
    let (_directory, phones, world) = held().await?;
    stops(&phones).await?;
    leave(&world, &typed("/resumeall"), None).await?;
    phones
        .message(ADA, "You asked to stop something after you sent /resumeall")
        .await?;
    assert_eq!(world.services.store.count::<Halt>(Query::new()).await?, 1);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_kept_of_a_press_shows_nobody_the_button_and_counts_in_its_turn()
-> anyhow::Result<()> {
    let (_directory, phones, world) = held().await?;
    let id = world.ask("missing_context", "Where?").await?;
    let ada = phones.message(ADA, "Where?").await?;
    let data = &ada.buttons[1].1;
    let (nonce, _) = data.split_once(':').context("no mark")?;
    sends(&phones).await?;
    phones.press(ADA, ADA, ada.id, data).await?;
    for kept in until_kept(&world, 2).await? {
        // The emulator makes the id of a press of what its button bears, which Telegram does not.
        let mut event = serde_json::to_value(&*kept.event)?;
        let press = event.pointer_mut("/data/update/did/Pressed/press");
        drop(press.map(serde_json::Value::take));
        let shown = event.to_string();
        assert!(!shown.contains(nonce), "{shown}");
    }
    assert_eq!(world.question(id).await?.state, QuestionState::Pending);
    phones.hold_back("notes", false).await?;
    phones.message(ADA, "Taken: Leave it").await?;
    let answer = world.question(id).await?.answer;
    assert_eq!(answer.map(|answer| answer.by), Some("ada".to_owned()));
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_does_not_come_is_given_up_in_time_and_nothing_behind_it_is_lost()
-> anyhow::Result<()> {
    let (clock, mut moves) = running();
    let (_directory, phones, world) = held_at(&clock).await?;
    sends(&phones).await?;
    phones.write(ADA, ADA, "And count rests").await?;
    until_kept(&world, 2).await?;
    let waits = "Still fetching notes.md. What you send meanwhile is kept";
    pass(&clock, Duration::from_secs(15)).await;
    phones.message(ADA, waits).await?;
    pass(&clock, LONGEST).await;
    let why = "It could not be fetched, so send it again: it did not come within 3 minutes.";
    phones.message(ADA, why).await?;
    let texts = until("what ada wrote behind it", || async {
        let said = said(&world).await?;
        Ok((said.len() == 2).then_some(said))
    })
    .await?;
    assert_eq!(texts[1].0, "And count rests");
    let told = phones.messages(ADA).await?;
    let waiting = told.iter().filter(|one| one.text.contains(waits));
    assert_eq!(waiting.count(), 1, "{told:#?}");
    // While time passes: it may be waiting until Telegram takes another message.
    world.close().await?;
    moves.shutdown().await;
    Ok(())
}
