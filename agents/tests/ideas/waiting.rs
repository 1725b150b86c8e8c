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

use super::house::{House, user};
use super::specification::{BRIEF, README, rule, small_plan};

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

async fn request(house: &House, idea: &Slug) -> SpecId {
    let (person, ann) = (house.person(), user("ann"));
    let asked = specifications::request(&person, idea, &ann, Complexity::Simple).await;
    asked.unwrap()
}

async fn generated(house: &House, spec: SpecId) {
    house
        .until("the specification", async || {
            (house.spec(spec).await.state == SpecState::Generated).then_some(())
        })
        .await;
}

/// Returns the open question that the work on `spec` waits for.
async fn waits_for(house: &House, spec: SpecId) -> Option<Question> {
    let open = house.open_questions().await.into_iter();
    open.map(|row| row.record).find(|question| {
        question.kind == QuestionKind::Blocking && question.about == About::Specification { spec }
    })
}

async fn question(house: &House, asked: &Question) -> Question {
    let found = house.store().get::<Question>(&asked.id.to_string()).await;
    found.unwrap().unwrap().into_inner()
}

/// Asserts that every agent goes on with other work.
async fn the_others_go_on(house: &House, boats: &Slug) {
    let other = request(house, boats).await;
    generated(house, other).await;
    house
        .until("the review of the other specification", async || {
            let reviews = house.store().list::<Review>(Query::new()).await.unwrap();
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
    let session = ideas::start(&house.person(), opening)
        .await
        .unwrap()
        .session;
    house
        .until("an answer in another conversation", async || {
            (house.messages(session).await.len() == 2).then_some(())
        })
        .await;
}

/// Lets half an hour pass and waits for the one reminder that it brings.
async fn half_an_hour(house: &House, asked: &Question) {
    let before = question(house, asked).await.reminded_at;
    let told = reminders(house).await;
    house.clock.advance(Duration::from_mins(30));
    house
        .until("a reminder", async || {
            house.clock.advance(Duration::from_secs(1));
            (question(house, asked).await.reminded_at != before).then_some(())
        })
        .await;
    assert_eq!(reminders(house).await, told + 1);
}

/// Counts the reminders that were told.
async fn reminders(house: &House) -> usize {
    let reminders = EventFilter {
        pattern: Some(EventPattern::of("question.reminded")),
        ..EventFilter::default()
    };
    house.store().events(&reminders).await.unwrap().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_question_holds_one_idea_for_fourteen_hours_and_nothing_else() {
    let mut house = House::new(&script()).await;
    let pets = house.idea("pets", &[README, BRIEF]).await;
    let boats = house.idea("boats", &[README, BRIEF]).await;
    house.run().await;
    let spec = request(&house, &pets).await;
    let asked = house
        .until("the question", async || waits_for(&house, spec).await)
        .await;
    assert_eq!(
        (asked.trigger.as_str(), asked.idea.as_ref()),
        ("multiple_architectures", Some(&pets))
    );
    assert_eq!(house.spec(spec).await.state, SpecState::Draft);
    let labels: Vec<&str> = asked
        .choices
        .iter()
        .map(|choice| choice.label.as_str())
        .collect();
    assert_eq!((labels, asked.free_text), (vec!["One", "Two"], true));
    the_others_go_on(&house, &boats).await;

    for number in 1..=28 {
        if number == 15 {
            house.restart().await;
        }
        half_an_hour(&house, &asked).await;
    }
    questions::answer_defaults(&house.person(), "ann", "cli")
        .await
        .unwrap();
    let waiting = question(&house, &asked).await;
    assert_eq!(
        (waiting.state, waiting.answer),
        (QuestionState::Pending, None)
    );
    assert_eq!(house.spec(spec).await.state, SpecState::Draft);
    let locks = house.store().list::<Lease>(Query::new()).await.unwrap();
    assert_eq!(locks.len(), 0, "nobody holds a lock for it");

    questions::answer(&house.person(), asked.id, "two", "ann", "cli")
        .await
        .unwrap();
    let answer = question(&house, &asked).await.answer.unwrap();
    assert_eq!(
        (
            answer.text.as_str(),
            answer.by.as_str(),
            answer.channel.as_str()
        ),
        ("Two", "ann", "cli")
    );
    assert_eq!(answer.at, house.clock.now());
    let open = house.open_questions().await;
    assert!(
        open.iter().all(|question| question.id != asked.id),
        "it is closed everywhere"
    );
    // The clock stands still: the work goes on within the same tick, with the answer in its prompt.
    generated(&house, spec).await;
    house.restart().await;
    assert_eq!(house.spec(spec).await.revision, 1);
}
