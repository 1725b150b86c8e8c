//! Learns what people like from what they answer when they are asked.

use ropewalk_schemas::knowledge::{KnowledgeItem, KnowledgeKind, KnowledgeState};
use ropewalk_schemas::payload::QuestionAnswered;
use ropewalk_schemas::question::{About, Question};
use ropewalk_schemas::{Payload, QuestionId};
use serde_json::json;
use uuid::Uuid;

use crate::workshop::Workshop;
use crate::world::{build, types};

fn question(number: u128, kind: &str) -> serde_json::Result<Question> {
    let id = QuestionId(Uuid::from_u128(number));
    serde_json::from_value(json!({
        "id": id, "kind": kind, "trigger": "multiple_architectures", "agent": "ideation",
        "text": "Tabs or\nspaces?", "context": "", "choices": [], "free_text": true, "consequential": false,
        "about": { "kind": "nothing" }, "state": "answered",
        "correlation_id": "01970000-0000-7000-8000-000000000002", "asked_at": "2026-11-22T12:00:00Z",
    }))
}

/// Has a question asked and answered; returns the types of what follows.
async fn answered(workshop: &Workshop, question: &Question, answer: &str) -> Vec<&'static str> {
    workshop.world.put(question).await;
    let answer = Payload::QuestionAnswered(QuestionAnswered {
        question_id: question.id,
        trigger: question.trigger.clone(),
        choice: None,
        answer: answer.to_owned(),
        says_why: false,
        answered_by: "ada".to_owned(),
        channel: "cli".to_owned(),
        about: About::Nothing,
        idea_slug: Some(build(1).idea),
    });
    let given = workshop.world.give(&workshop.improvement, answer).await;
    types(&given)
}

#[tokio::test]
async fn what_people_answer_of_what_they_like_holds_until_they_answer_otherwise() {
    let workshop = Workshop::open("[]").await;
    let held = async || {
        let items = workshop.world.list::<KnowledgeItem>().await.into_iter();
        let held = items.filter(|item| item.state == KnowledgeState::Confirmed);
        held.map(|item| (item.kind, item.content, item.executions.len()))
            .collect::<Vec<_>>()
    };
    let other = question(1, "clarifying").unwrap();
    assert_eq!(answered(&workshop, &other, "Tabs").await, [""; 0]);
    assert_eq!(held().await, []);
    // The last delivery comes twice, and changes nothing the second time.
    for (number, answer, times) in [
        (2, "Tabs", 1),
        (3, "Tabs", 2),
        (4, "Spaces", 3),
        (4, "Spaces", 3),
    ] {
        let question = question(number, "preference").unwrap();
        answered(&workshop, &question, answer).await;
        let content = format!("Tabs or spaces? {answer}");
        assert_eq!(held().await, [(KnowledgeKind::Preference, content, times)]);
    }
    // What is asked in other words is another question, however much alike it is.
    for (number, text) in [(5, "Spaces or tabs?"), (6, "Tabs or spaces? Or neither?")] {
        let mut alike = question(number, "preference").unwrap();
        alike.text = text.to_owned();
        answered(&workshop, &alike, "Tabs").await;
    }
    let mut said: Vec<String> = held().await.into_iter().map(|item| item.1).collect();
    said.sort();
    let expected = [
        "Spaces or tabs? Tabs",
        "Tabs or spaces? Or neither? Tabs",
        "Tabs or spaces? Spaces",
    ];
    assert_eq!(said, expected);
}
