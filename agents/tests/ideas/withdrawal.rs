//! What people give up while a model works on it costs nothing more, and nothing comes of it.

use std::time::Duration;

use ropewalk_desk::ideas;
use ropewalk_desk::people::Person;
use ropewalk_desk::specifications;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::idea::{Idea, IdeaState};
use ropewalk_schemas::specification::{Complexity, SpecState};
use ropewalk_schemas::{Slug, SpecId};

use super::house::{House, user};
use super::specification::{BRIEF, README, rule, small_plan};

/// So long a model would take to answer, by a clock that stands still.
fn never(reply: &str) -> String {
    reply.replace("reply: {", "reply: {delay_ms: 3600000, ")
}

async fn asked(house: &House) {
    let called = async || (house.calls() == 1).then_some(());
    house.until("the call of the model", called).await;
}

async fn at_rest(house: &House, calls: usize) {
    let settled = async || {
        let open = house.store().open_deliveries(None, 0, 1).await.unwrap();
        open.is_empty().then_some(())
    };
    house.until("the end of all deliveries", settled).await;
    assert_eq!(house.calls(), calls, "nobody asked again");
}

/// Asks for the specification of an idea whose model never answers.
async fn requested(house: &House) -> (Slug, SpecId) {
    let idea = house.idea("pets", &[README, BRIEF]).await;
    let (person, ann) = (house.person(), user("ann"));
    let spec = specifications::request(&person, &idea, &ann, Complexity::Simple).await;
    (idea, spec.unwrap())
}

async fn abandon(house: &House, idea: &Slug) {
    let ann = Person::alone(user("ann"));
    ideas::abandon(&house.person(), idea, &ann, None)
        .await
        .unwrap();
}

fn pets() -> String {
    never(&rule("idea: pets", &small_plan("Pets")))
}

#[tokio::test]
async fn a_rejected_draft_ends_the_call_that_writes_it() {
    let house = House::new(&pets()).await;
    let (_, spec) = requested(&house).await;
    house.run().await;
    asked(&house).await;
    let ann = Person::alone(user("ann"));
    specifications::reject(&house.person(), spec, &ann, Some("too early"))
        .await
        .unwrap();
    at_rest(&house, 1).await;
    let record = house.spec(spec).await;
    assert_eq!((record.state, record.revision), (SpecState::Rejected, 0));
}

#[tokio::test]
async fn an_abandoned_idea_ends_the_call_for_its_draft() {
    let house = House::new(&pets()).await;
    let (idea, spec) = requested(&house).await;
    house.run().await;
    asked(&house).await;
    abandon(&house, &idea).await;
    at_rest(&house, 1).await;
    let record = house.spec(spec).await;
    assert_eq!((record.state, record.revision), (SpecState::Rejected, 0));
    assert_eq!(record.reason.as_deref(), Some("the idea was abandoned"));
}

#[tokio::test]
async fn an_idea_that_is_abandoned_during_a_revision_leaves_no_draft() {
    let script = rule("idea: pets", &small_plan("Pets"));
    let house = House::new(&script).await;
    let (idea, spec) = requested(&house).await;
    house.run().await;
    let made = async || {
        let made = house.spec(spec).await.state == SpecState::Generated;
        made.then_some(())
    };
    house.until("the first revision", made).await;
    let calls = house.calls();
    let (person, ann) = (house.person(), user("ann"));
    house.brake.set(true);
    specifications::revise(&person, spec, &ann, "Dogs, too.")
        .await
        .unwrap();
    let refused = specifications::revise(&person, spec, &ann, "And cats.").await;
    let refused = Words::of(&refused.unwrap_err());
    let told = format!("revision 2 of specification `{spec}` is being written");
    assert_eq!(refused.message, told);
    let next = refused.next.unwrap();
    // Whoever asked for it may have gone before it was written.
    assert!(next.contains("`ropewalk spec generate IDEA`"), "{next}");
    abandon(&house, &idea).await;
    let record = house.spec(spec).await;
    assert_eq!((record.state, record.revision), (SpecState::Rejected, 1));
    assert_eq!(record.reason.as_deref(), Some("the idea was abandoned"));
    at_rest(&house, calls).await;
    house.brake.set(false);
    at_rest(&house, calls).await;
    assert_eq!(house.spec(spec).await.state, SpecState::Rejected);
}

#[tokio::test]
async fn what_was_abandoned_before_its_turn_came_asks_no_model() {
    let house = House::new(&pets()).await;
    let (idea, spec) = requested(&house).await;
    let started = ideas::start(&house.person(), opening()).await.unwrap();
    abandon(&house, &idea).await;
    abandon(&house, &started.idea).await;
    house.run().await;
    at_rest(&house, 0).await;
    assert_eq!(house.spec(spec).await.revision, 0);
    assert_eq!(house.messages(started.session).await.len(), 1);
}

/// An idea clear enough to be talked about.
fn opening() -> ideas::Opening {
    ideas::Opening {
        user: user("ann"),
        title: None,
        text: "A program that counts my habits and tells how long each streak lasts.".to_owned(),
        slug: Some("habits".parse().unwrap()),
        kind: None,
        whole: false,
    }
}

#[tokio::test]
async fn an_abandoned_idea_ends_the_answer_to_a_message() {
    let script = never("- {agent: ideation, reply: {text: Tell me more.}}");
    let house = House::new(&script).await;
    house.run().await;
    let mut live = house.services.bus.live().subscribe();
    let started = ideas::start(&house.person(), opening()).await.unwrap();
    asked(&house).await;
    ideas::abandon(
        &house.person(),
        &started.idea,
        &Person::alone(user("ann")),
        None,
    )
    .await
    .unwrap();
    at_rest(&house, 1).await;
    assert_eq!(house.messages(started.session).await.len(), 1);
    let idea = house.store().get::<Idea>("habits").await.unwrap().unwrap();
    assert_eq!(idea.state, IdeaState::Abandoned);
    let told = tokio::time::timeout(Duration::from_secs(10), live.next());
    assert_eq!(told.await.unwrap().unwrap().event_type, "ideation.failed");
}
