//! Photos, voice notes and documents are kept with the idea that is talked about, and told in its conversation.

use std::path::Path;

use anyhow::Context as _;
use ropewalk_schemas::EventPattern;
use ropewalk_schemas::idea::{Attachment, Idea, Message};
use ropewalk_store::{EventFilter, Query};
use serde_json::{Value, json};

use crate::phones::{Phones, until};
use crate::world::{ADA, BotWorld};

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
pub(crate) async fn said(world: &BotWorld) -> anyhow::Result<Vec<(String, Vec<Attachment>)>> {
    let messages = world.services.store.list::<Message>(Query::new()).await?;
    let mut messages: Vec<Message> = messages.into_iter().map(|row| row.record).collect();
    messages.sort_by_key(|message| message.id);
    Ok(messages
        .into_iter()
        .map(|message| (message.text, message.attachments))
        .collect())
}

/// Counts the events of a type.
async fn count(world: &BotWorld, event_type: &str) -> anyhow::Result<usize> {
    let filter = EventFilter {
        pattern: Some(EventPattern::of(event_type)),
        limit: Some(1_000),
        ..EventFilter::default()
    };
    Ok(world.services.store.events(&filter).await?.len())
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
    let world = BotWorld::open(directory.path(), &phones.server).await?;
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
    let heard = count(&world, "ideation.message").await?;
    assert_eq!(heard, 4, "each is answered");
    let said = said(&world).await?;
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
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_voice_note_of_which_nobody_says_the_type_is_kept_too() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
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
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_files_stay_files_below_the_idea() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
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
            Ok((said(&world).await?.len() == number + 2).then_some(()))
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
    let idea = world.services.store.get::<Idea>("walks").await?;
    assert!(idea.is_some());
    world.close().await
}
