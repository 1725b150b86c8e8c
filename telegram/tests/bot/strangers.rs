//! Nobody else gets an answer, and no button is worth more than what was shown to whom.

use chrono::TimeDelta;
use ropewalk_desk::phones as linking;
use ropewalk_schemas::UserSlug;
use ropewalk_schemas::halt::Halt;
use ropewalk_schemas::idea::Idea;
use ropewalk_schemas::phone::ChatUser;
use ropewalk_schemas::question::QuestionState;
use ropewalk_store::Query;
use serde_json::json;

use crate::files::said;
use crate::phones::{Phones, until};
use crate::talking::answer;
use crate::world::{ADA, BOB, BotWorld, people};

/// Somebody whom nobody named.
const STRANGER: i64 = 9;
/// A chat of many.
const GROUP: i64 = -5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_and_groups_get_nothing_and_foreign_or_altered_buttons_do_nothing()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let id = world.ask("missing_context", "Where?").await?;
    let ada = phones.message(ADA, "Where?").await?;
    let data = ada.buttons[0].1.clone();
    phones.press(STRANGER, STRANGER, ada.id, &data).await?;
    phones.press(ADA, GROUP, ada.id, &data).await?;
    phones.write(STRANGER, STRANGER, "/start").await?;
    phones
        .write(STRANGER, STRANGER, "/start 000000000000000000000000")
        .await?;
    phones.write(STRANGER, STRANGER, "A thing of mine").await?;
    phones.write(ADA, GROUP, "/status").await?;
    phones.press(BOB, BOB, ada.id, &data).await?;
    phones.shown("This was asked of somebody else.").await?;
    let (nonce, _) = data.split_once(':').unwrap_or_default();
    for altered in [
        format!("{nonce}:7"),
        format!("{nonce}x:0"),
        "?".to_owned(),
        "x".repeat(64),
    ] {
        phones.press(ADA, ADA, ada.id, &altered).await?;
    }
    phones.forward(ADA, "merge").await?;
    phones
        .message(ADA, "What somebody else wrote is not taken")
        .await?;
    // Everything before it was taken in order.
    assert_eq!(phones.messages(STRANGER).await?, []);
    assert_eq!(phones.messages(GROUP).await?, []);
    let shown = phones.did("answercallbackquery").await?;
    assert_eq!(shown.len(), 5, "bob, and four altered ones: {shown:?}");
    assert_eq!(world.question(id).await?.state, QuestionState::Pending);
    let store = &world.services.store;
    assert_eq!(store.count::<Idea>(Query::new()).await?, 0);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_links_one_phone_once() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let cleo = UserSlug::parse("cleo")?;
    let code = linking::code(&world.context()?, &people()?, &cleo).await?;
    phones
        .write(STRANGER, GROUP, &format!("/start {code}"))
        .await?;
    phones.write(3, 3, &format!("/start {code}")).await?;
    phones.message(3, "This chat is linked to cleo.").await?;
    phones
        .write(STRANGER, STRANGER, &format!("/start {code}"))
        .await?;
    phones.write(3, 3, "/status").await?;
    phones.message(3, "No build yet.").await?;
    assert_eq!(phones.messages(STRANGER).await?, []);
    assert_eq!(phones.messages(GROUP).await?, []);
    let id = world.ask("missing_context", "Where?").await?;
    let asked = phones.message(3, "Where?").await?;
    phones.press(3, 3, asked.id, &asked.buttons[1].1).await?;
    phones.shown("Taken: Leave it").await?;
    let answer = world.question(id).await?.answer;
    assert_eq!(answer.map(|answer| answer.by), Some("cleo".to_owned()));

    let before = phones.messages(3).await?.len();
    assert!(linking::unlink(&world.context()?, &cleo).await?);
    phones.write(3, 3, "/status").await?;
    phones.press(3, 3, asked.id, &asked.buttons[1].1).await?;
    phones.write(ADA, ADA, "/status").await?;
    phones.message(ADA, "No build yet.").await?;
    assert_eq!(phones.messages(3).await?.len(), before, "nobody any more");
    assert!(!linking::unlink(&world.context()?, &cleo).await?);
    world.close().await
}

/// Waits until exactly this was said in conversations.
async fn until_said(world: &BotWorld, expected: &[&str]) -> anyhow::Result<()> {
    until(&format!("{expected:?}"), || async {
        let said = said(world).await?;
        let texts: Vec<&str> = said.iter().map(|(text, _)| text.as_str()).collect();
        Ok((texts == expected).then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_called_otherwise_goes_on_with_what_is_talked_about_in_the_chat()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    phones.write(ADA, ADA, "Walks").await?;
    phones.message(ADA, "It is the idea walks now").await?;
    // As where one person did it all under a name that nobody has any more.
    let store = &world.services.store;
    let before = UserSlug::parse("user")?;
    let ada = linking::of(store, &UserSlug::parse("ada")?).await?;
    linking::change(&world.context()?, &before, |phone| {
        phone.linked = Some(ChatUser { user: 3, chat: 3 });
        phone.idea.clone_from(&ada.idea);
        phone.shown = ada.shown;
        phone.awaits = ada.awaits;
        phone.listens = true;
    })
    .await?;
    // What is done in between comes to nothing, which is said once.
    for text in ["Small ones", "/stopall", "Smaller ones"] {
        phones.write(3, 3, text).await?;
    }
    phones.write(ADA, ADA, "/status").await?;
    phones.message(ADA, "No build yet.").await?;
    phones.message(3, "Nobody hears you here").await?;
    assert_eq!(phones.messages(3).await?.len(), 1);
    let cleo = UserSlug::parse("cleo")?;
    let code = linking::code(&world.context()?, &people()?, &cleo).await?;
    phones.write(3, 3, &format!("/start {code}")).await?;
    phones.message(3, "This chat is linked to cleo.").await?;
    answer(&world, "Who walks?").await?;
    phones.message(3, "Who walks?").await?;
    phones.write(3, 3, "Dogs").await?;
    until_said(&world, &["Walks", "Who walks?", "Dogs"]).await?;
    assert_eq!(store.count::<Halt>(Query::new()).await?, 0);
    assert_eq!(
        store.count::<Idea>(Query::new()).await?,
        1,
        "it is no idea of its own"
    );
    assert_eq!(linking::of(store, &before).await?.linked, None);
    world.close().await
}

/// Returns how much was told in the chat of who is nobody, `least` of it, once all is done that was done before: what ada asks now for
/// the `asked`th time is answered last.
async fn told_after(phones: &Phones, least: usize, asked: usize) -> anyhow::Result<usize> {
    phones.write(ADA, ADA, "/status").await?;
    until("what is told", || async {
        let told = phones.messages(3).await?.len();
        let is_done = phones.messages(ADA).await?.len() == asked;
        Ok((is_done && told >= least).then_some(told))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whose_name_is_gone_hears_that_nobody_hears_them_once_a_day() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let (context, before) = (world.context()?, UserSlug::parse("user")?);
    let chat = ChatUser { user: 3, chat: 3 };
    linking::change(&context, &before, |phone| phone.linked = Some(chat)).await?;
    phones.write(3, 3, "Walks").await?;
    phones.write(3, 3, "/stopall").await?;
    assert_eq!(told_after(&phones, 1, 1).await?, 1);
    linking::change(&context, &before, |phone| {
        phone.told_unheard = phone.told_unheard.map(|told| told - TimeDelta::days(1));
    })
    .await?;
    phones.write(3, 3, "/stopall").await?;
    phones.write(3, 3, "Walks").await?;
    assert_eq!(told_after(&phones, 2, 2).await?, 2);
    let store = &world.services.store;
    assert_eq!(store.count::<Idea>(Query::new()).await?, 0);
    assert_eq!(store.count::<Halt>(Query::new()).await?, 0);
    // Where the phone is forgotten, that is nobody at all.
    assert!(linking::unlink(&context, &before).await?);
    phones.write(3, 3, "Walks").await?;
    assert_eq!(told_after(&phones, 2, 3).await?, 2);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whom_the_configuration_names_in_a_linked_chat_goes_on_with_what_is_talked_about_there()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    phones.write(BOB, BOB, "Walks").await?;
    phones.message(BOB, "It is the idea walks now").await?;
    // As where ada did it all under a name that nobody has any more, and was named with her chat since.
    let before = UserSlug::parse("user")?;
    let bob = linking::of(&world.services.store, &UserSlug::parse("bob")?).await?;
    linking::change(&world.context()?, &before, |phone| {
        phone.linked = Some(ChatUser {
            user: ADA,
            chat: ADA,
        });
        phone.idea.clone_from(&bob.idea);
        phone.shown = bob.shown;
        phone.listens = true;
    })
    .await?;
    world.close().await?;
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    answer(&world, "Who walks?").await?;
    phones.message(ADA, "Who walks?").await?;
    phones.write(ADA, ADA, "Dogs").await?;
    until_said(&world, &["Walks", "Who walks?", "Dogs"]).await?;
    let store = &world.services.store;
    assert_eq!(store.count::<Idea>(Query::new()).await?, 1);
    assert_eq!(linking::of(store, &before).await?.linked, None);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_good_code_links_whatever_else_happens_in_the_chat_in_that_moment() -> anyhow::Result<()>
{
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let (context, people) = (world.context()?, people()?);
    let chat = ChatUser { user: 3, chat: 3 };
    let before = UserSlug::parse("user")?;
    linking::change(&context, &before, |phone| phone.linked = Some(chat)).await?;
    let code = linking::code(&context, &people, &UserSlug::parse("cleo")?).await?;
    let writes = async {
        for _ in 0..20 {
            linking::change(&context, &before, |phone| phone.listens = !phone.listens).await?;
        }
        anyhow::Ok(())
    };
    let (linked, written) = tokio::join!(linking::link(&context, &people, &code, chat), writes);
    written?;
    assert_eq!(linked?.name.as_str(), "cleo");
    assert_eq!(
        linking::of(&world.services.store, &before).await?.linked,
        None
    );
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_buttons_by_the_hundred_decide_nothing_and_keep_nobody_from_answering()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let kept = world.ask("missing_context", "Which of them?").await?;
    let ada = phones.message(ADA, "Which of them?").await?;
    let bob = phones.message(BOB, "Which of them?").await?;
    let data = &ada.buttons[0].1;
    let (nonce, _) = data.split_once(':').unwrap_or_default();
    let mut presses = 0;
    for round in 0..4 {
        for number in 0..30 {
            let guessed = format!("{:032x}:0", 0x5eed_0000 + number);
            let altered = format!("{nonce}:{}", number + 3);
            phones.press(BOB, BOB, bob.id, data).await?;
            phones.press(BOB, BOB, bob.id, &guessed).await?;
            phones.press(ADA, ADA, ada.id, &altered).await?;
            phones.press(STRANGER, STRANGER, ada.id, data).await?;
            presses += 3;
        }
        let text = format!("Which way in round {round}?");
        let id = world.ask("missing_context", &text).await?;
        let asked = phones.message(ADA, &text).await?;
        phones
            .press(ADA, ADA, asked.id, &asked.buttons[1].1)
            .await?;
        phones.shown("Taken: Leave it").await?;
        presses += 1;
        let answer = world.question(id).await?.answer;
        assert_eq!(answer.map(|answer| answer.by), Some("ada".to_owned()));
    }
    let shown = phones.did("answercallbackquery").await?;
    assert_eq!(
        shown.len(),
        presses,
        "each of theirs was taken, and no stranger's"
    );
    assert_eq!(world.question(kept).await?.state, QuestionState::Pending);
    let question = world.question(kept).await?;
    assert_eq!(question.answer, None);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn posts_of_channels_and_what_is_edited_do_nothing_also_where_telegram_brings_them()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    // As with what happened before anybody said what is to be brought.
    phones.fault("early").await?;
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let id = world.ask("missing_context", "Where?").await?;
    let ada = phones.message(ADA, "Where?").await?;
    let mut post = Phones::of(ADA, GROUP, "/stopall");
    post["chat"]["type"] = json!("channel");
    post["sender_chat"] = post["chat"].clone();
    if let Some(fields) = post.as_object_mut() {
        fields.remove("from");
    }
    let mut edited = Phones::of(ADA, ADA, "By boat");
    edited["edit_date"] = json!(1_795_294_146);
    edited["reply_to_message"] = Phones::of(7, ADA, "Where?");
    edited["reply_to_message"]["message_id"] = json!(ada.id);
    for (kind, update) in [
        ("channel_post", &post),
        ("edited_channel_post", &post),
        ("edited_message", &edited),
        ("message", &post),
    ] {
        phones.update(json!({ kind: update })).await?;
    }
    // Everything before it was taken in order, and the edited words answer nothing.
    phones.write(ADA, ADA, "/status").await?;
    phones.message(ADA, "1 question is open").await?;
    assert_eq!(phones.brought().await?, 5, "each came");
    assert_eq!(phones.messages(GROUP).await?, []);
    assert_eq!(phones.messages(ADA).await?.len(), 2);
    assert_eq!(world.question(id).await?.state, QuestionState::Pending);
    let store = &world.services.store;
    assert_eq!(store.count::<Idea>(Query::new()).await?, 0);
    assert_eq!(store.count::<Halt>(Query::new()).await?, 0);
    world.close().await
}
