//! What people give up while a model works on it costs nothing more, and nothing comes of it.

use std::time::Duration;

use ropewalk_desk::ideas;
use ropewalk_desk::people::Person;
use ropewalk_desk::specifications;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::idea::{Idea, IdeaState};
use ropewalk_schemas::specification::{Complexity, SpecState};
use ropewalk_schemas::{Slug, SpecId};

use super::specification::{BRIEF, README, rule, small_plan};
use super::world::{IdeaWorld, user};

/// So long a model would take to answer, by a clock that stands still.
fn never(reply: &str) -> String {
    reply.replace("reply: {", "reply: {delay_ms: 3600000, ")
}

async fn asked(world: &IdeaWorld) {
    let called = async || (world.calls() == 1).then_some(());
    world.until("the call of the model", called).await;
}

async fn at_rest(world: &IdeaWorld, calls: usize) {
    let settled = async || {
        let open = world.store().open_deliveries(None, 0, 1).await.unwrap();
        open.is_empty().then_some(())
    };
    world.until("the end of all deliveries", settled).await;
    assert_eq!(world.calls(), calls, "nobody asked again");
}

/// Asks for the specification of an idea whose model never answers.
async fn requested(world: &IdeaWorld) -> (Slug, SpecId) {
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let (person, ann) = (world.person(), user("ann"));
    let spec = specifications::request(&person, &idea, &ann, Complexity::Simple).await;
    (idea, spec.unwrap())
}

async fn abandon(world: &IdeaWorld, idea: &Slug) {
    let ann = Person::alone(user("ann"));
    ideas::abandon(&world.person(), idea, &ann, None)
        .await
        .unwrap();
}

fn pets() -> String {
    never(&rule("idea: pets", &small_plan("Pets")))
}

#[tokio::test]
async fn a_rejected_draft_ends_the_call_that_writes_it() {
    let world = IdeaWorld::new(&pets()).await;
    let (_, spec) = requested(&world).await;
    world.run().await;
    asked(&world).await;
    let ann = Person::alone(user("ann"));
    specifications::reject(&world.person(), spec, &ann, Some("too early"))
        .await
        .unwrap();
    at_rest(&world, 1).await;
    let record = world.spec(spec).await;
    assert_eq!((record.state, record.revision), (SpecState::Rejected, 0));
}

#[tokio::test]
async fn an_abandoned_idea_ends_the_call_for_its_draft() {
    let world = IdeaWorld::new(&pets()).await;
    let (idea, spec) = requested(&world).await;
    world.run().await;
    asked(&world).await;
    abandon(&world, &idea).await;
    at_rest(&world, 1).await;
    let record = world.spec(spec).await;
    assert_eq!((record.state, record.revision), (SpecState::Rejected, 0));
    assert_eq!(record.reason.as_deref(), Some("the idea was abandoned"));
}

#[tokio::test]
async fn an_idea_that_is_abandoned_during_a_revision_leaves_no_draft() {
    let script = rule("idea: pets", &small_plan("Pets"));
    let world = IdeaWorld::new(&script).await;
    let (idea, spec) = requested(&world).await;
    world.run().await;
    let made = async || {
        let made = world.spec(spec).await.state == SpecState::Generated;
        made.then_some(())
    };
    world.until("the first revision", made).await;
    let calls = world.calls();
    let (person, ann) = (world.person(), user("ann"));
    world.brake.set(true);
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
    abandon(&world, &idea).await;
    let record = world.spec(spec).await;
    assert_eq!((record.state, record.revision), (SpecState::Rejected, 1));
    assert_eq!(record.reason.as_deref(), Some("the idea was abandoned"));
    at_rest(&world, calls).await;
    world.brake.set(false);
    at_rest(&world, calls).await;
    assert_eq!(world.spec(spec).await.state, SpecState::Rejected);
}

#[tokio::test]
async fn what_was_abandoned_before_its_turn_came_asks_no_model() {
    let world = IdeaWorld::new(&pets()).await;
    let (idea, spec) = requested(&world).await;
    let started = ideas::start(&world.person(), opening()).await.unwrap();
    abandon(&world, &idea).await;
    abandon(&world, &started.idea).await;
    world.run().await;
    at_rest(&world, 0).await;
    assert_eq!(world.spec(spec).await.revision, 0);
    assert_eq!(world.messages(started.session).await.len(), 1);
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
    let world = IdeaWorld::new(&script).await;
    world.run().await;
    let mut live = world.services.bus.live().subscribe();
    let started = ideas::start(&world.person(), opening()).await.unwrap();
    asked(&world).await;
    ideas::abandon(
        &world.person(),
        &started.idea,
        &Person::alone(user("ann")),
        None,
    )
    .await
    .unwrap();
    at_rest(&world, 1).await;
    assert_eq!(world.messages(started.session).await.len(), 1);
    let idea = world.store().get::<Idea>("habits").await.unwrap().unwrap();
    assert_eq!(idea.state, IdeaState::Abandoned);
    let told = tokio::time::timeout(Duration::from_mins(1), live.next());
    assert_eq!(told.await.unwrap().unwrap().event_type, "ideation.failed");
}
