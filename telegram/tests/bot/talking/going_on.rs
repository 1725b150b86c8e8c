//! A conversation goes on in its chat whatever dies in between, and ends in a specification, or with the idea given up.

use anyhow::Context as _;
use ropewalk_desk::ideas::{self, AbandonError, Opening};
use ropewalk_desk::phones as linking;
use ropewalk_orchestrator::questions::{self, AnswerInput};
use ropewalk_schemas::idea::{Idea, IdeaState};
use ropewalk_schemas::payload::IdeationCompleted;
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_schemas::specification::Specification;
use ropewalk_schemas::{ChoiceId, Payload, Slug, Subject, UserSlug};
use ropewalk_store::{ChangeSet, Query};
use serde_json::{Value, json};

use super::{answer, answer_and_ask, idea};
use crate::behind::{leave, typed};
use crate::building::{built, events, told};
use crate::phones::{Phones, until};
use crate::world::{ADA, BOB, BotWorld, people};

/// Begins the idea of walks as a try of ada that died before her phone was turned to it.
async fn begin_walks(world: &BotWorld) -> anyhow::Result<()> {
    let opening = Opening {
        user: UserSlug::parse("ada")?,
        title: None,
        text: "Walks".to_owned(),
        slug: None,
        kind: None,
        whole: false,
    };
    ideas::start(&world.context()?, opening).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_went_on_with_another_idea_is_turned_back_by_nothing_that_is_done_again()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let begun = world.services.clock.now();
    begin_walks(&world).await?;
    phones.write(ADA, ADA, "Rivers").await?;
    phones.message(ADA, "It is the idea rivers now").await?;
    leave(&world, &typed("/newtask Walks"), Some(begun)).await?;
    phones.message(ADA, "It is the idea walks already.").await?;
    let phone = linking::of(&world.services.store, &UserSlug::parse("ada")?).await?;
    assert_eq!(phone.idea, Some(Slug::parse("rivers")?));
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idea_that_was_begun_before_a_death_is_talked_about_in_the_chat_after_it()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    let begun = world.services.clock.now();
    begin_walks(&world).await?;
    leave(&world, &typed("Walks"), Some(begun)).await?;
    phones.message(ADA, "It is the idea walks already.").await?;
    answer(&world, "Who walks?").await?;
    phones.message(ADA, "Who walks?").await?;
    let ideas = world.services.store.count::<Idea>(Query::new()).await?;
    assert_eq!(ideas, 1);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_of_an_answer_that_was_given_before_a_death_comes_to_the_chat_after_it()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    phones.write(BOB, BOB, "Walks").await?;
    phones.message(BOB, "It is the idea walks now").await?;
    answer_and_ask(&world, "Who walks?", "Who walks?").await?;
    phones.message(BOB, "Who walks?").await?;
    phones.write(ADA, ADA, "/questions").await?;
    let asked = phones.message(ADA, "Who walks?").await?;
    let open = Query::new().equal("state", QuestionState::Pending.as_str());
    let open = world.services.store.list::<Question>(open).await?;
    let id = open.first().context("nothing is asked")?.id;
    let begun = world.services.clock.now();
    // As a try that died before it was written down that the phone is turned to the conversation.
    let choice = ChoiceId::parse("leave")?;
    let given = AnswerInput::Picked(&choice, None);
    questions::answer(&world.context()?, id, given, "ada", "telegram").await?;
    let press = json!({ "press": "press", "message": asked.id, "data": asked.buttons[1].1 });
    leave(&world, &json!({ "Pressed": press }), Some(begun)).await?;
    answer(&world, "Nobody does, then.").await?;
    phones.message(ADA, "Nobody does, then.").await?;
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_hears_that_their_idea_is_complete_asks_for_its_specification_by_a_button()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    phones.write(ADA, ADA, "Walks").await?;
    phones.message(ADA, "It is the idea walks now").await?;
    let idea = idea(&world).await?;
    let payload = Payload::IdeationCompleted(IdeationCompleted {
        session_id: idea.session,
        idea_slug: idea.slug.clone(),
        user_slug: idea.user.clone(),
        brief_path: "planning/brief.md".to_owned(),
        confidence: 0.9,
        ready_for_spec: true,
    });
    let mut changes = ChangeSet::new();
    changes.emit(world.context()?.event(Subject::idea(&idea.slug), payload));
    world.services.store.commit(changes).await?;
    let told = phones.message(ADA, "The idea walks is complete").await?;
    let [(label, data)] = &told.buttons[..] else {
        anyhow::bail!("not one button: {told:?}");
    };
    assert_eq!(label, "Ask for its specification");
    phones.press(ADA, ADA, told.id, data).await?;
    let planned = phones
        .message(ADA, "The specification of walks is being written")
        .await?;
    // Nobody has answered what she wrote.
    let overtaken = "What you wrote last is not answered yet";
    assert!(planned.text.contains(overtaken), "{}", planned.text);
    let store = &world.services.store;
    assert_eq!(store.count::<Specification>(Query::new()).await?, 1);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idea_is_given_up_by_who_may_and_was_shown_what_ends_with_it() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    phones.write(ADA, ADA, "Walks").await?;
    phones.message(ADA, "It is the idea walks now").await?;
    let shown = told(&phones, ADA, "/abandon").await?;
    let ends = "It cannot be taken back: with walks end 0 builds and 0 open questions.";
    assert!(shown.text.contains(ends), "{}", shown.text);
    assert_eq!(idea(&world).await?.state, IdeaState::Draft);
    let refused = told(&phones, BOB, "/abandon walks").await?.text;
    assert!(refused.contains("bob may not stop"), "{refused}");
    // Words do not give it up, nor does the button for another person, or for more than it showed.
    told(&phones, ADA, "/abandon walks for good").await?;
    let shown = told(&phones, ADA, "/abandon wal").await?;
    let data = &shown.buttons[0].1;
    phones.press(BOB, BOB, shown.id, data).await?;
    phones.shown("means nothing any more").await?;
    built(&world, "walks", "running").await?;
    phones.press(ADA, ADA, shown.id, data).await?;
    phones.shown("What was shown is no longer so").await?;
    assert_eq!(events(&world, "idea.abandoned").await?.len(), 0);
    let shown = phones.message(ADA, "with walks end 1 build and").await?;
    phones
        .press(ADA, ADA, shown.id, &shown.buttons[0].1)
        .await?;
    phones.shown("walks is given up").await?;
    assert_eq!(idea(&world).await?.state, IdeaState::Abandoned);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idea_is_given_up_with_the_builds_that_were_shown_and_no_other() -> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    begin_walks(&world).await?;
    let (context, walks) = (world.context()?, Slug::parse("walks")?);
    let ada = people()?.named("ada").context("no ada")?;
    let shown = ideas::preview_abandonment(&context.store, &walks, &ada).await?;
    let build = built(&world, "walks", "running").await?;
    let refused = ideas::abandon_as_shown(&context, &walks, &ada, &shown.builds).await;
    assert!(
        matches!(refused, Err(AbandonError::Changed(_))),
        "{refused:?}"
    );
    assert_eq!(idea(&world).await?.state, IdeaState::Draft);
    assert_eq!(events(&world, "idea.abandoned").await?.len(), 0);
    ideas::abandon_as_shown(&context, &walks, &ada, &[build]).await?;
    assert_eq!(idea(&world).await?.state, IdeaState::Abandoned);
    world.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idea_that_was_given_up_before_a_death_is_told_as_given_up_after_it()
-> anyhow::Result<()> {
    let (directory, phones) = (tempfile::tempdir()?, Phones::new()?);
    let world = BotWorld::open(directory.path(), &phones.server).await?;
    phones.write(ADA, ADA, "Walks").await?;
    phones.message(ADA, "It is the idea walks now").await?;
    let shown = told(&phones, ADA, "/abandon").await?;
    let begun = world.services.clock.now();
    let ada = people()?.named("ada").context("no ada")?;
    ideas::abandon(&world.context()?, &Slug::parse("walks")?, &ada, None).await?;
    let press = json!({ "press": "press", "message": shown.id, "data": shown.buttons[0].1 });
    leave(&world, &json!({ "Pressed": press }), Some(begun)).await?;
    until("what came of it", || async {
        let edits = phones.did("editmessagetext").await?;
        let text = |edit: &Value| edit["parameters"]["text"].to_string();
        let is_told = edits
            .iter()
            .any(|edit| text(edit).contains("walks is given up"));
        Ok(is_told.then_some(()))
    })
    .await?;
    assert_eq!(events(&world, "idea.abandoned").await?.len(), 1);
    world.close().await
}
