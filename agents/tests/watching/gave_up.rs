//! What people are asked about a build that ended without success.

use ropewalk_schemas::build::{Build, BuildState, StopCause, TaskCounts};
use ropewalk_schemas::payload::{BuildCompleted, BuildRequest};
use ropewalk_schemas::question::Question;
use ropewalk_schemas::{Payload, Subject};
use ropewalk_store::ChangeSet;
use serde_json::json;

use crate::house::{House, build, build_id, noon, types};
use crate::pm::pm;

fn ended(status: BuildState) -> Payload {
    Payload::BuildCompleted(BuildCompleted {
        build_id: build_id(1),
        spec_id: build(1).spec,
        idea_slug: build(1).idea,
        status,
        reason: Some("too many failures: T-001".to_owned()),
        counts: TaskCounts {
            total: 4,
            failed: 4,
            ..TaskCounts::default()
        },
        duration_seconds: 60,
        quote: None,
        spent: None,
        branch: "build/habits".to_owned(),
        commits: Vec::new(),
    })
}

#[tokio::test]
async fn a_build_that_failed_is_brought_before_a_person() {
    for (status, answer, told) in [
        (BuildState::Failed, "retry", vec!["build.resume"]),
        (BuildState::Stopped, "leave", vec![]),
    ] {
        let house = House::open().await;
        house
            .put(&Build {
                state: status,
                ..build(1)
            })
            .await;
        assert_eq!(
            types(&house.give(&pm(), ended(status)).await),
            ["question.asked"]
        );
        assert_eq!(types(&house.answer(&pm(), answer).await), told);
    }
}

#[tokio::test]
async fn a_build_that_fails_as_a_whole_has_nothing_to_try_again() {
    let house = House::open().await;
    house
        .put(&Build {
            state: BuildState::Failed,
            ..build(1)
        })
        .await;
    let Payload::BuildCompleted(mut whole) = ended(BuildState::Failed) else {
        panic!("another payload");
    };
    whole.counts = TaskCounts {
        total: 4,
        complete: 3,
        skipped: 1,
        ..TaskCounts::default()
    };
    let asked = house.give(&pm(), Payload::BuildCompleted(whole)).await;
    assert_eq!(types(&asked), ["question.asked"]);
    let question = house.open_question().await.unwrap();
    let recommended = question.choices.iter().find(|choice| choice.recommended);
    assert_eq!(recommended.unwrap().id.as_str(), "leave");
    assert!(
        question.text.contains("`ropewalk spec revise "),
        "{}",
        question.text
    );
}

#[tokio::test]
async fn a_build_whose_task_is_thought_through_is_left_in_peace() {
    for (choice, told) in [("rethink", vec![]), ("manual", vec!["question.asked"])] {
        let house = House::open().await;
        let of_build = build(1);
        let question: Question = serde_json::from_value(json!({
            "id": "01970000-0000-7000-8000-00000000000a", "kind": "blocking", "trigger": "task_failed_repeatedly",
            "agent": "build", "text": "What now?", "context": "", "choices": [], "free_text": true, "consequential": true,
            "about": { "kind": "task", "build": of_build.id, "task": "T-001" }, "state": "answered",
            "answer": { "choice": choice, "text": choice, "by": "ada", "channel": "cli", "at": noon() },
            "correlation_id": "01970000-0000-7000-8000-000000000002", "asked_at": noon(),
        }))
        .unwrap();
        house.put(&question).await;
        house
            .put(&Build {
                state: BuildState::Failed,
                ..of_build
            })
            .await;
        let given = house.give(&pm(), ended(BuildState::Failed)).await;
        assert_eq!(types(&given), told, "{choice}");
    }
}

#[tokio::test]
async fn a_build_that_did_not_give_up_by_itself_is_left_in_peace() {
    let house = House::open().await;
    for (state, stop) in [
        (BuildState::Succeeded, None),
        (BuildState::Stopped, Some(StopCause::Amended)),
        (BuildState::Stopped, Some(StopCause::Abandoned)),
    ] {
        let before = build(1);
        house
            .put(&Build {
                state,
                stop,
                ..before
            })
            .await;
        assert_eq!(house.give(&pm(), ended(state)).await, [], "{stop:?}");
    }
    let stop = Payload::BuildStop(BuildRequest {
        build_id: build_id(1),
        requested_by: "ada".to_owned(),
        reason: None,
    });
    let mut changes = ChangeSet::new();
    let context = house.context("cli");
    changes.emit(context.event(Subject::build(build_id(1)), stop));
    house.commit(changes).await;
    house
        .put(&Build {
            state: BuildState::Stopped,
            ..build(1)
        })
        .await;
    assert_eq!(house.give(&pm(), ended(BuildState::Stopped)).await, []);
    assert_eq!(house.open_question().await, None);
}
