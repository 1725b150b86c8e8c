//! A blocking question holds exactly one piece of work, for as long as it takes (V21).

use std::time::Duration;

use ropewalk_desk::{ideas, specifications};
use ropewalk_orchestrator::questions;
use ropewalk_schemas::lease::Lease;
use ropewalk_schemas::question::{About, Question, QuestionKind, QuestionState};
use ropewalk_schemas::review::{Review, ReviewKind};
use ropewalk_schemas::specification::{Complexity, SpecState};
use ropewalk_schemas::{EventPattern, Slug, SpecId};
use ropewalk_store::{EventFilter, Query};
use serde_json::json;

use super::specification::{BRIEF, README, rule, small_plan};
use super::world::{IdeaWorld, user};

/// A model that wants to know one thing about one idea, and nothing about any other.
fn script() -> String {
    let question = json!({ "question": {
        "type": "blocking", "text": "One process or two?", "context": "It shapes everything.",
        "options": [{ "label": "One", "recommended": true }, { "label": "Two" }], "allowFreeText": true,
    } });
    format!(
        "{}{}{}{}",
        rule("idea: pets, absent: 'The answer: Two'", &question),
        rule(
            "idea: pets, contains: ['One process or two?', 'The answer: Two']",
            &small_plan("Pets")
        ),
        rule("idea: boats", &small_plan("Boats")),
        "- {agent: ideation, reply: {tools: [{name: reply, input: {text: 'Go on.'}}]}}\n"
    )
}

async fn request(world: &IdeaWorld, idea: &Slug) -> SpecId {
    let (person, ann) = (world.person(), user("ann"));
    let asked = specifications::request(&person, idea, &ann, Complexity::Simple).await;
    asked.unwrap()
}

async fn generated(world: &IdeaWorld, spec: SpecId) {
    world
        .until("the specification", async || {
            (world.spec(spec).await.state == SpecState::Generated).then_some(())
        })
        .await;
}

/// Returns the open question that the work on `spec` waits for.
async fn waits_for(world: &IdeaWorld, spec: SpecId) -> Option<Question> {
    let open = world.open_questions().await.into_iter();
    open.map(|row| row.record).find(|question| {
        question.kind == QuestionKind::Blocking && question.about == About::Specification { spec }
    })
}

async fn question(world: &IdeaWorld, asked: &Question) -> Question {
    let found = world.store().get::<Question>(&asked.id.to_string()).await;
    found.unwrap().unwrap().into_inner()
}

/// Asserts that every agent goes on with other work.
async fn the_others_go_on(world: &IdeaWorld, boats: &Slug) {
    let other = request(world, boats).await;
    generated(world, other).await;
    world
        .until("the review of the other specification", async || {
            let reviews = world.store().list::<Review>(Query::new()).await.unwrap();
            let of_other = |review: &Review| {
                review.kind == ReviewKind::Specification && review.spec == Some(other)
            };
            reviews.iter().any(|review| of_other(review)).then_some(())
        })
        .await;
    let opening = ideas::Opening {
        user: user("ann"),
        title: None,
        text: "People who keep habits lose their streaks because they count days by hand."
            .to_owned(),
        slug: None,
        kind: None,
        whole: false,
    };
    let session = ideas::start(&world.person(), opening)
        .await
        .unwrap()
        .session;
    world
        .until("an answer in another conversation", async || {
            (world.messages(session).await.len() == 2).then_some(())
        })
        .await;
}

/// Lets half an hour pass and waits for the one reminder that it brings.
async fn half_an_hour(world: &IdeaWorld, asked: &Question) {
    let before = question(world, asked).await.reminded_at;
    let told = reminders(world).await;
    world.clock.advance(Duration::from_mins(30));
    world
        .until("a reminder", async || {
            world.clock.advance(Duration::from_secs(1));
            (question(world, asked).await.reminded_at != before).then_some(())
        })
        .await;
    assert_eq!(reminders(world).await, told + 1);
}

/// Counts the reminders that were told.
async fn reminders(world: &IdeaWorld) -> usize {
    let reminders = EventFilter {
        pattern: Some(EventPattern::of("question.reminded")),
        ..EventFilter::default()
    };
    world.store().events(&reminders).await.unwrap().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_question_holds_one_idea_for_fourteen_hours_and_nothing_else() {
    let mut world = IdeaWorld::new(&script()).await;
    let pets = world.idea("pets", &[README, BRIEF]).await;
    let boats = world.idea("boats", &[README, BRIEF]).await;
    world.run().await;
    let spec = request(&world, &pets).await;
    let asked = world
        .until("the question", async || waits_for(&world, spec).await)
        .await;
    assert_eq!(
        (asked.trigger.as_str(), asked.idea.as_ref()),
        ("multiple_architectures", Some(&pets))
    );
    assert_eq!(world.spec(spec).await.state, SpecState::Draft);
    let labels: Vec<&str> = asked
        .choices
        .iter()
        .map(|choice| choice.label.as_str())
        .collect();
    assert_eq!((labels, asked.free_text), (vec!["One", "Two"], true));
    the_others_go_on(&world, &boats).await;

    for number in 1..=28 {
        if number == 15 {
            world.restart().await;
        }
        half_an_hour(&world, &asked).await;
    }
    questions::answer_defaults(&world.person(), "ann", "cli")
        .await
        .unwrap();
    let waiting = question(&world, &asked).await;
    assert_eq!(
        (waiting.state, waiting.answer),
        (QuestionState::Pending, None)
    );
    assert_eq!(world.spec(spec).await.state, SpecState::Draft);
    let locks = world.store().list::<Lease>(Query::new()).await.unwrap();
    assert_eq!(locks.len(), 0, "nobody holds a lock for it");

    questions::answer(&world.person(), asked.id, "two", "ann", "cli")
        .await
        .unwrap();
    let answer = question(&world, &asked).await.answer.unwrap();
    assert_eq!(
        (
            answer.text.as_str(),
            answer.by.as_str(),
            answer.channel.as_str()
        ),
        ("Two", "ann", "cli")
    );
    assert_eq!(answer.at, world.clock.now());
    let open = world.open_questions().await;
    assert!(
        open.iter().all(|question| question.id != asked.id),
        "it is closed everywhere"
    );
    // The clock stands still: the work goes on within the same tick, with the answer in its prompt.
    generated(&world, spec).await;
    world.restart().await;
    assert_eq!(world.spec(spec).await.revision, 1);
}
