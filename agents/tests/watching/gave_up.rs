//! What people are asked about a build that ended without success.

use ropewalk_schemas::build::{Build, BuildState, StopCause, TaskCounts};
use ropewalk_schemas::payload::{BuildCompleted, BuildRequest};
use ropewalk_schemas::question::Question;
use ropewalk_schemas::{Payload, Subject};
use ropewalk_store::ChangeSet;
use serde_json::json;

use crate::pm::pm;
use crate::world::{WatchWorld, build, build_id, noon, types};

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
        let world = WatchWorld::open().await;
        world
            .put(&Build {
                state: status,
                ..build(1)
            })
            .await;
        assert_eq!(
            types(&world.give(&pm(), ended(status)).await),
            ["question.asked"]
        );
        assert_eq!(types(&world.answer(&pm(), answer).await), told);
    }
}

#[tokio::test]
async fn a_build_that_fails_as_a_whole_has_nothing_to_try_again() {
    let world = WatchWorld::open().await;
    world
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
    let asked = world.give(&pm(), Payload::BuildCompleted(whole)).await;
    assert_eq!(types(&asked), ["question.asked"]);
    let question = world.open_question().await.unwrap();
    let offered: Vec<(&str, bool)> = question
        .choices
        .iter()
        .map(|choice| (choice.id.as_str(), choice.recommended))
        .collect();
    // Another round has no task to try. The whole may hold when something outside has changed.
    assert_eq!(offered, [("leave", true)]);
    let resume = format!("`ropewalk build resume {}`", build_id(1));
    for verb in ["`ropewalk spec revise habits WORDS`", resume.as_str()] {
        assert!(question.text.contains(verb), "{verb}: {}", question.text);
    }
}

#[tokio::test]
async fn a_build_whose_task_is_thought_through_is_left_in_peace() {
    for (choice, told) in [("rethink", vec![]), ("manual", vec!["question.asked"])] {
        let world = WatchWorld::open().await;
        let of_build = build(1);
        let question: Question = serde_json::from_value(json!({
            "id": "01970000-0000-7000-8000-00000000000a", "kind": "blocking", "trigger": "task_failed_repeatedly",
            "agent": "build", "text": "What now?", "context": "", "choices": [], "free_text": true, "consequential": true,
            "about": { "kind": "task", "build": of_build.id, "task": "T-001" }, "state": "answered",
            "answer": { "choice": choice, "text": choice, "by": "ada", "channel": "cli", "at": noon() },
            "correlation_id": "01970000-0000-7000-8000-000000000002", "asked_at": noon(),
        }))
        .unwrap();
        world.put(&question).await;
        world
            .put(&Build {
                state: BuildState::Failed,
                ..of_build
            })
            .await;
        let given = world.give(&pm(), ended(BuildState::Failed)).await;
        assert_eq!(types(&given), told, "{choice}");
    }
}

#[tokio::test]
async fn a_build_that_did_not_give_up_by_itself_is_left_in_peace() {
    let world = WatchWorld::open().await;
    for (state, stop) in [
        (BuildState::Succeeded, None),
        (BuildState::Stopped, Some(StopCause::Amended)),
        (BuildState::Stopped, Some(StopCause::Abandoned)),
    ] {
        let before = build(1);
        world
            .put(&Build {
                state,
                stop,
                ..before
            })
            .await;
        assert_eq!(world.give(&pm(), ended(state)).await, [], "{stop:?}");
    }
    let stop = Payload::BuildStop(BuildRequest {
        build_id: build_id(1),
        requested_by: "ada".to_owned(),
        reason: None,
    });
    let mut changes = ChangeSet::new();
    let context = world.context("cli");
    changes.emit(context.event(Subject::build(build_id(1)), stop));
    world.commit(changes).await;
    world
        .put(&Build {
            state: BuildState::Stopped,
            ..build(1)
        })
        .await;
    assert_eq!(world.give(&pm(), ended(BuildState::Stopped)).await, []);
    assert_eq!(world.open_question().await, None);
}
