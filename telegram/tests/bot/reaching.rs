//! Whom something reaches, and what reaches nobody.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use ropewalk_runtime::{Clock, Ids};
use ropewalk_schemas::notice::{Notice, NoticeState};
use ropewalk_schemas::payload::BuildStarted;
use ropewalk_schemas::person::Role;
use ropewalk_schemas::{
    BuildId, ComponentName, CorrelationId, Event, Payload, Priority, Slug, SpecId, Subject,
};
use ropewalk_store::{ChangeSet, Location, Query, Store};
use serde_json::{Value, json};

use crate::outage::{pass, running};
use crate::phones::{Phones, until};
use crate::world::{ADA, BOB, BotWorld, GROUP};

/// How many events there were before the bot.
const BEFORE: usize = 10_000;
/// How many are committed at once.
const TOGETHER: usize = 500;

fn began(ids: &Ids, clock: &Clock) -> anyhow::Result<Event> {
    let build_id = BuildId(ids.next());
    Ok(Event {
        id: ids.next().into(),
        source: ComponentName::parse("build")?,
        subject: Subject::build(build_id),
        time: clock.now(),
        correlation_id: CorrelationId(ids.next()),
        causation_id: None,
        hop: 0,
        traceparent: None,
        priority: Priority::DEFAULT,
        payload: Payload::BuildStarted(BuildStarted {
            build_id,
            idea_slug: Slug::parse("walks")?,
            spec_id: SpecId(ids.next()),
            branch: "build/walks".to_owned(),
            task_count: 1,
        }),
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bot_that_is_switched_on_after_ten_thousand_events_sends_none_of_them()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let clock = Clock::system();
    let ids = Ids::system(clock.clone());
    let location = Location::Sqlite(directory.path().join("ropewalk.db"));
    let store = Store::open(&location, clock.clone()).await?;
    for _ in 0..BEFORE / TOGETHER {
        let mut changes = ChangeSet::new();
        for _ in 0..TOGETHER {
            changes.emit(began(&ids, &clock)?);
        }
        store.commit(changes).await?;
    }
    store.close().await?;

    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let mut changes = ChangeSet::new();
    changes.emit(began(&ids, &clock)?);
    world.services.store.commit(changes).await?;
    phones.message(ADA, "The build of walks began").await?;
    world.ask("missing_context", "Where?").await?;
    for chat in [ADA, BOB] {
        phones.message(chat, "Where?").await?;
        assert_eq!(
            phones.messages(chat).await?.len(),
            2,
            "of what is new alone"
        );
    }
    let told = world.services.store.count::<Notice>(Query::new()).await?;
    assert_eq!(told, 4, "two things, each for two people");
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_of_code_reaches_the_technical_phone_alone_and_all_when_its_time_is_over()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let (escalate, roles) = (Duration::from_mins(20), [("bob", Role::Technical)]);
    let roles = BTreeMap::from(roles);
    let (clock, _moves) = running();
    let world =
        BotWorld::open_for(directory.path(), &phones.server, &clock, escalate, &roles).await?;
    let id = world.ask("missing_context", "Which way?").await?;
    phones.message(BOB, "Which way?").await?;
    assert_eq!(phones.messages(ADA).await?, []);
    let told = world.told(id).await?;
    let receivers: Vec<&str> = told.iter().map(|notice| notice.receiver.as_str()).collect();
    assert_eq!(receivers, ["bob"]);

    pass(&clock, escalate).await;
    let ada = phones.message(ADA, "Which way?").await?;
    let mut told = world.told(id).await?;
    told.sort_by_key(|notice| notice.created_at);
    let waited = (told[1].created_at - told[0].created_at).to_std()?;
    assert!(waited >= escalate, "{waited:?}");
    assert_eq!(phones.messages(BOB).await?.len(), 1, "asked once");
    phones.press(ADA, ADA, ada.id, &ada.buttons[1].1).await?;
    phones.shown("Taken: Leave it").await?;
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_is_told_in_the_topic_of_the_project_and_as_a_whole_where_it_has_none()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open_in_topic(directory.path(), &phones.server, 7).await?;
    world.ask("missing_context", "First?").await?;
    phones.message(GROUP, "First?").await?;
    phones.message(BOB, "First?").await?;
    let topics = async |chat: i64| -> anyhow::Result<Vec<Value>> {
        let sent = phones.did("sendmessage").await?;
        let to_chat = sent
            .iter()
            .filter(|one| one["parameters"]["chat_id"] == chat);
        Ok(to_chat
            .map(|one| one["parameters"]["message_thread_id"].clone())
            .collect())
    };
    assert_eq!(topics(GROUP).await?, [json!(7)]);
    // The chat of one person has none.
    assert_eq!(topics(BOB).await?, [Value::Null]);
    phones.fault("topicless").await?;
    let second = world.ask("missing_context", "Second?").await?;
    let told = phones.message(GROUP, "Second?").await?;
    assert_eq!(phones.refusals().await?, 1, "the topic was asked for first");
    assert_eq!(topics(GROUP).await?, [json!(7), Value::Null]);
    phones
        .press(ADA, GROUP, told.id, &told.buttons[1].1)
        .await?;
    phones.shown("Taken: Leave it").await?;
    assert_eq!(world.told(second).await?.len(), 2);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_that_somebody_asks_for_is_not_said_to_reach_nobody() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let id = world.ask("missing_context", "Where?").await?;
    for chat in [ADA, BOB] {
        phones.message(chat, "Where?").await?;
    }
    // As where a phone was linked in the moment in which it was noted that there is none.
    let told = world.told(id).await?;
    let noted = Notice {
        key: format!("telegram/{id}/"),
        receiver: String::new(),
        state: NoticeState::Dead,
        error: Some("telegram reaches nobody".to_owned()),
        messages: Vec::new(),
        ..told.into_iter().next().context("nobody was told")?
    };
    let mut changes = ChangeSet::new();
    changes.insert(&noted);
    world.services.store.commit(changes).await?;
    phones.write(ADA, ADA, "/questions").await?;
    until("that it reaches somebody", || async {
        let told = world.told(id).await?.into_iter();
        let mut receivers: Vec<String> = told.map(|notice| notice.receiver).collect();
        receivers.sort();
        Ok((receivers == ["ada", "bob"]).then_some(()))
    })
    .await?;
    world.close().await
}
