//! Photos, voice notes and documents are kept with the idea that is talked about, and told in its conversation.

use std::path::Path;

use anyhow::Context as _;
use ropewalk_schemas::halt::Halt;
use ropewalk_schemas::idea::{Attachment, Idea, Message};
use ropewalk_schemas::phone::Phone;
use ropewalk_schemas::{Event, EventPattern};
use ropewalk_store::{ChangeSet, EventFilter, Query};
use serde_json::{Value, json};

use crate::house::{ADA, BOB, House};
use crate::phones::{Phones, until};

/// More updates than Telegram brings at once.
const MORE_THAN_AT_ONCE: usize = 110;
/// The beginning of a photo.
const JPEG: &[u8] = b"\xff\xd8\xff\xe0 a walk";

pub(crate) fn document(id: &str, name: &str, size: u64) -> (&'static str, Value) {
    let unique = format!("{id}-unique");
    let document = json!({
        "file_id": id, "file_unique_id": unique, "file_name": name, "mime_type": "text/plain", "file_size": size,
    });
    ("document", document)
}

/// Returns what people said, each with the files that came with it.
pub(crate) async fn said(house: &House) -> anyhow::Result<Vec<(String, Vec<Attachment>)>> {
    let messages = house.services.store.list::<Message>(Query::new()).await?;
    let mut messages: Vec<Message> = messages.into_iter().map(|row| row.record).collect();
    messages.sort_by_key(|message| message.id);
    Ok(messages
        .into_iter()
        .map(|message| (message.text, message.attachments))
        .collect())
}

/// Counts the events of a type.
async fn count(house: &House, event_type: &str) -> anyhow::Result<usize> {
    let filter = EventFilter {
        pattern: Some(EventPattern::of(event_type)),
        limit: Some(1_000),
        ..EventFilter::default()
    };
    Ok(house.services.store.events(&filter).await?.len())
}

/// Returns how much was kept until it had its turn.
async fn kept_updates(house: &House) -> anyhow::Result<usize> {
    count(house, "phone.update_kept").await
}

/// Lists the files of an idea with what they hold.
fn kept(state: &Path) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let folder = state.join("users/ada/ideas/walks/attachments");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().into_string().ok().context("a name")?;
        files.push((name, std::fs::read(entry.path())?));
    }
    files.sort();
    Ok(files)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_kept_with_the_idea_and_told_in_its_conversation() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let house = House::open(directory.path(), &phones.server).await?;
    for (id, bytes) in [
        ("photo", JPEG),
        ("voice", &b"OggS\0\0"[..]),
        ("notes", &b"Count steps.\n```\nnot hours\n"[..]),
    ] {
        phones.hold(id, bytes).await?;
    }
    phones
        .send(ADA, document("notes", "notes.md", 28), "")
        .await?;
    phones.message(ADA, "Write first what you want").await?;
    phones.write(ADA, ADA, "Walks").await?;
    phones.message(ADA, "It is the idea walks now").await?;

    let size = |id: &str, size: u32| json!({ "file_id": id, "file_unique_id": "u", "width": size, "height": size, "file_size": 13 });
    let photo = json!([size("small", 90), size("photo", 1280)]);
    phones.send(ADA, ("photo", photo), "").await?;
    phones
        .message(
            ADA,
            "Kept with walks as attachments/photo.jpg. Nobody here looks at it",
        )
        .await?;
    let voice = json!({ "file_id": "voice", "file_unique_id": "u", "duration": 12, "mime_type": "audio/ogg" });
    phones.send(ADA, ("voice", voice), "").await?;
    phones
        .message(ADA, "No provider here writes down what is said in it")
        .await?;
    phones
        .send(ADA, document("notes", "notes.md", 28), "My notes")
        .await?;
    phones
        .message(ADA, "Kept with walks as attachments/notes.md.")
        .await?;
    let heard = count(&house, "ideation.message").await?;
    assert_eq!(heard, 4, "each is answered");
    let said = said(&house).await?;
    let texts: Vec<&str> = said.iter().map(|(text, _)| text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "Walks",
            "[A file came along: `attachments/photo.jpg`, image/jpeg, 11 bytes. It is a photo, which is not looked at.]",
            "[A file came along: `attachments/voice-note.ogg`, audio/ogg, 6 bytes. It is a voice note of 12 s, of which \
             nobody wrote down the words.]",
            "My notes\n\n[A file came along: `attachments/notes.md`, text/plain, 27 bytes.]\n\nIt says:\n\
             ````\nCount steps.\n```\nnot hours\n\n````",
        ]
    );
    let paths: Vec<&str> = said
        .iter()
        .flat_map(|(_, files)| files)
        .map(|file| file.path.as_str())
        .collect();
    let expected =
        ["photo.jpg", "voice-note.ogg", "notes.md"].map(|name| format!("attachments/{name}"));
    assert_eq!(paths, expected);
    let kept: Vec<Vec<u8>> = kept(directory.path())?
        .into_iter()
        .map(|(_, bytes)| bytes)
        .collect();
    assert_eq!(
        kept,
        [
            b"Count steps.\n```\nnot hours\n".to_vec(),
            JPEG.to_vec(),
            b"OggS\0\0".to_vec()
        ]
    );
    house.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_takes_its_time_keeps_nobody_but_its_sender_waiting_and_is_not_lost()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let house = House::open(directory.path(), &phones.server).await?;
    phones.write(ADA, ADA, "Walks").await?;
    phones.message(ADA, "It is the idea walks now").await?;
    let id = house.ask("missing_context", "Where?").await?;
    let bob = phones.message(BOB, "Where?").await?;
    phones.hold("notes", b"Count steps.\n").await?;
    phones.hold_back("notes", true).await?;
    phones
        .send(ADA, document("notes", "notes.md", 13), "My notes")
        .await?;
    phones.write(ADA, ADA, "And count rests").await?;
    phones.press(BOB, BOB, bob.id, &bob.buttons[1].1).await?;
    phones.shown("Taken: Leave it").await?;
    let answer = house.question(id).await?.answer;
    assert_eq!(answer.map(|answer| answer.by), Some("bob".to_owned()));
    let first = said(&house).await?;
    assert_eq!(
        first.len(),
        1,
        "what ada sent comes in its order: {first:?}"
    );

    // None of it is lost.
    house.close().await?;
    let house = House::open(directory.path(), &phones.server).await?;
    phones.hold_back("notes", false).await?;
    phones
        .message(ADA, "Kept with walks as attachments/notes.md.")
        .await?;
    let said = until("what ada wrote behind it", || async {
        let said = said(&house).await?;
        Ok((said.len() == 3).then_some(said))
    })
    .await?;
    assert!(said[1].0.starts_with("My notes\n"), "{said:?}");
    assert_eq!(said[2].0, "And count rests");
    assert_eq!(phones.did("answercallbackquery").await?.len(), 1);
    house.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_much_stands_behind_a_file_others_are_heard_and_nothing_is_asked_for_twice()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let house = House::open(directory.path(), &phones.server).await?;
    phones.write(ADA, ADA, "Walks").await?;
    phones.message(ADA, "It is the idea walks now").await?;
    house.ask("missing_context", "Where?").await?;
    let ada = phones.message(ADA, "Where?").await?;
    let bob = phones.message(BOB, "Where?").await?;
    phones.hold("notes", b"Count steps.\n").await?;
    phones.hold_back("notes", true).await?;
    phones
        .send(ADA, document("notes", "notes.md", 13), "My notes")
        .await?;
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
        let phone = house.services.store.get::<Phone>("ada").await?;
        Ok(phone.filter(|phone| phone.kept.is_none()).map(|_| ()))
    })
    .await?;
    assert_eq!(phones.most_often_brought().await?, 1);
    // What ada does now waits for nothing any more.
    let kept = kept_updates(&house).await?;
    phones.write(ADA, ADA, "/status").await?;
    phones.message(ADA, "No build yet.").await?;
    assert_eq!(kept_updates(&house).await?, kept);
    house.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_telegram_brings_itself_keeps_nobody_waiting_either_and_is_not_lost()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let house = House::open(directory.path(), &phones.server).await?;
    phones.write(ADA, ADA, "Walks").await?;
    phones.message(ADA, "It is the idea walks now").await?;
    phones.hold("notes", b"Count steps.\n").await?;
    phones.hold_back("notes", true).await?;
    let written = |number: u32, message: Value| {
        let update = json!({ "update_id": number, "message": message });
        update.to_string().into_bytes()
    };
    let notes = Phones::of_file(ADA, document("notes", "notes.md", 13), "My notes")?;
    let notes = written(1_000, notes);
    let hook = house.hook()?;
    hook.take(&notes).await?;
    let rests = Phones::of(ADA, ADA, "And count rests");
    hook.take(&written(1_001, rests)).await?;
    let asks = Phones::of(BOB, BOB, "/status");
    hook.take(&written(1_002, asks)).await?;
    phones.message(BOB, "No build yet.").await?;
    // Telegram brings again what it heard no answer to.
    hook.take(&notes).await?;
    assert_eq!(said(&house).await?.len(), 1);

    house.close().await?;
    let house = House::open(directory.path(), &phones.server).await?;
    phones.hold_back("notes", false).await?;
    phones
        .message(ADA, "Kept with walks as attachments/notes.md.")
        .await?;
    let in_order = || async {
        let said = said(&house).await?;
        Ok((said.len() == 3).then_some(said))
    };
    let said = until("what ada wrote behind it", in_order).await?;
    assert!(said[1].0.starts_with("My notes\n"), "{said:?}");
    assert_eq!(said[2].0, "And count rests");
    house.hook()?.take(&notes).await?;
    assert_eq!(kept_updates(&house).await?, 2, "each once");
    house.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_kept_is_done_once_though_it_is_handed_out_again_behind_what_came_directly()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let house = House::open(directory.path(), &phones.server).await?;
    phones.write(ADA, ADA, "Walks").await?;
    phones.message(ADA, "It is the idea walks now").await?;
    phones.hold("notes", b"Count steps.\n").await?;
    phones
        .send(ADA, document("notes", "notes.md", 13), "My notes")
        .await?;
    phones
        .message(ADA, "Kept with walks as attachments/notes.md.")
        .await?;
    phones.write(ADA, ADA, "And count rests").await?;
    let all = || async { Ok((said(&house).await?.len() == 3).then_some(())) };
    until("what ada wrote directly", all).await?;

    // A death between what it came to and the end of its delivery has the same handed out again.
    let filter = EventFilter {
        pattern: Some(EventPattern::of("phone.update_kept")),
        ..EventFilter::default()
    };
    let [before] = &house.services.store.events(&filter).await?[..] else {
        anyhow::bail!("it was not kept once");
    };
    let before = Event::try_from(before.event.as_ref())?;
    let again = house.context()?.event(before.subject, before.payload);
    let mut changes = ChangeSet::new();
    changes.emit(again);
    house.services.store.commit(changes).await?;
    phones.write(ADA, ADA, "/status").await?;
    phones.message(ADA, "No build yet.").await?;
    let store = &house.services.store;
    let is_handled = || async {
        let open = store.open_deliveries(None, 0, 10).await?;
        let mut of_phones = open.iter().map(|row| row.event.event_type.as_str());
        Ok((!of_phones.any(|one| one.starts_with("phone."))).then_some(()))
    };
    until("the end of what was handed out again", is_handled).await?;
    assert_eq!(said(&house).await?.len(), 3, "nothing is done twice");
    house.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_waits_behind_no_file_and_what_was_said_before_it_undoes_nothing()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let house = House::open(directory.path(), &phones.server).await?;
    phones.write(ADA, ADA, "Walks").await?;
    phones.message(ADA, "It is the idea walks now").await?;
    phones.hold("notes", b"Count steps.\n").await?;
    phones.hold_back("notes", true).await?;
    phones
        .send(ADA, document("notes", "notes.md", 13), "My notes")
        .await?;
    phones.write(ADA, ADA, "/resumeall").await?;
    phones.write(ADA, ADA, "/stopall the disk burns").await?;
    phones
        .message(ADA, "Everything is stopped. /resumeall lets it go on.")
        .await?;
    phones.hold_back("notes", false).await?;
    phones
        .message(ADA, "You stopped something after you did this")
        .await?;
    assert_eq!(
        kept_updates(&house).await?,
        2,
        "the file, and what came before"
    );
    let halts = house.services.store.count::<Halt>(Query::new()).await?;
    assert_eq!(halts, 1, "the last word was a stop");
    house.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_voice_note_of_which_nobody_says_the_type_is_kept_too() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let house = House::open(directory.path(), &phones.server).await?;
    phones.write(ADA, ADA, "Walks").await?;
    phones.message(ADA, "It is the idea walks now").await?;
    phones.hold("voice", b"OggS\0\0").await?;
    let voice = json!({ "file_id": "voice", "file_unique_id": "u", "duration": 12 });
    phones.send(ADA, ("voice", voice), "").await?;
    phones
        .message(ADA, "Kept with walks as attachments/voice-note.ogg.")
        .await?;
    let expected = [("voice-note.ogg".to_owned(), b"OggS\0\0".to_vec())];
    assert_eq!(kept(directory.path())?, expected);
    // What is neither is answered all the same.
    let sticker = json!({ "file_id": "smile", "file_unique_id": "u" });
    phones.send(ADA, ("sticker", sticker), "").await?;
    phones
        .message(ADA, "Only text and files are taken here.")
        .await?;
    house.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_files_stay_files_below_the_idea() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let house = House::open(directory.path(), &phones.server).await?;
    phones.write(ADA, ADA, "Walks").await?;
    phones.message(ADA, "It is the idea walks now").await?;
    let names = [
        "../../../../../ropewalk.toml",
        "/etc/passwd",
        ".bashrc",
        "run.sh",
        "a`$(id)`\u{202e}gpj.exe",
    ];
    for (number, name) in names.into_iter().enumerate() {
        let id = format!("f{number}");
        phones.hold(&id, b"\0#!/bin/sh\n").await?;
        phones.send(ADA, document(&id, name, 11), "").await?;
        until(name, || async {
            Ok((said(&house).await?.len() == number + 2).then_some(()))
        })
        .await?;
    }
    let found = kept(directory.path())?;
    let found: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        found,
        [
            "a-id-gpj.exe",
            "bashrc",
            "passwd",
            "ropewalk.toml",
            "run.sh"
        ]
    );
    // One that is too large is not fetched, whatever it says; nor kept, where it said less than it is.
    phones
        .send(ADA, document("f0", "large.bin", 30 << 20), "")
        .await?;
    phones.message(ADA, "the file has 31457280 bytes").await?;
    phones.hold_zeros("liar", (20 << 20) + 1).await?;
    phones
        .send(ADA, document("liar", "liar.bin", 11), "")
        .await?;
    phones.message(ADA, "It could not be fetched").await?;
    phones
        .send(ADA, document("gone", "gone.bin", 11), "")
        .await?;
    until("what is gone", || async {
        let told = phones.messages(ADA).await?.into_iter();
        let refused = told.filter(|one| one.text.contains("It could not be fetched"));
        Ok((refused.count() == 2).then_some(()))
    })
    .await?;
    assert_eq!(kept(directory.path())?.len(), 5);
    let idea = house.services.store.get::<Idea>("walks").await?;
    assert!(idea.is_some());
    house.close().await
}
