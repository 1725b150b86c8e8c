//! What people and programs are told of how a question ends when nobody answers.

use chrono::TimeDelta;
use ropewalk_schemas::ChoiceId;
use ropewalk_schemas::question::{Question, QuestionKind};
use ropewalk_store::ChangeSet;
use serde_json::json;

use crate::browser::HTML;
use crate::house::{ADA, House, answered};

#[tokio::test(flavor = "multi_thread")]
async fn a_question_says_what_becomes_of_it_when_nobody_answers() {
    let house = House::new().await;
    let (_, id) = house.specified().await;
    let due = house.services.clock.now() + TimeDelta::hours(4);
    let leave = ChoiceId::parse("leave").ok();
    // Its kind, the choice that it takes, whether it ends, and what the page and the form say.
    let cases = [
        (QuestionKind::Blocking, None, false, None, None),
        (
            QuestionKind::Clarifying,
            None,
            true,
            Some("goes away unanswered"),
            None,
        ),
        (
            QuestionKind::Clarifying,
            leave,
            true,
            Some("takes <code>leave</code>"),
            Some("leave"),
        ),
    ];
    for (kind, default, ends, page, taken) in cases {
        let store = &house.services.store;
        let asked = store.get::<Question>(&id.to_string()).await.unwrap();
        let asked = asked.unwrap();
        let question = Question {
            kind,
            default,
            consequential: false,
            due_at: ends.then_some(due),
            ..asked.record.clone()
        };
        let mut changes = ChangeSet::new();
        changes.update(&asked, &question);
        store.commit(changes).await.unwrap();
        let shown = house.ask("GET", &format!("/questions/{id}"), ADA);
        let shown = answered(shown.header("Accept", HTML)).await.text;
        for words in ["goes away unanswered", "takes <code>leave</code>"] {
            assert_eq!(
                shown.contains(words),
                page == Some(words),
                "{kind:?}: {words}"
            );
        }
        let form = house.read(&format!("/api/questions/{id}/answer")).await;
        assert_eq!(form["default"], json!(taken), "{form}");
        assert_eq!(form["due_at"].is_string(), ends, "{form}");
    }
    house.stop().await;
}
