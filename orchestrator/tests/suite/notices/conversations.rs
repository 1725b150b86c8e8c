//! What a conversation asks is for those who talk in it, before it is for anybody else.

use std::time::Duration;

use ropewalk_orchestrator::notices::Listener;
use ropewalk_orchestrator::questions::QuestionRequest;
use ropewalk_runtime::Clock;
use ropewalk_schemas::idea::Session;
use ropewalk_schemas::person::{Right, Role};
use ropewalk_schemas::question::{About, Choice, QuestionKind};
use ropewalk_schemas::{ChoiceId, QuestionId};
use ropewalk_store::ChangeSet;
use serde_json::json;
use tempfile::TempDir;

use super::paper::{Paper, listeners, world_of};
use crate::questions::{asking, open};
use crate::world::{FrameWorld, noon};

/// Ada decides what is built, bob how, and the idea is that of cleo.
const PEOPLE: [(&str, &[Role]); 3] = [
    ("ada", &[Role::Product]),
    ("bob", &[Role::Technical]),
    ("cleo", &[Role::Operations]),
];

/// Opens a world in which the conversation of cleo asks what she wants.
async fn asked(paper: &Paper) -> anyhow::Result<(TempDir, FrameWorld, QuestionId)> {
    let asks = asking(QuestionKind::Blocking, false);
    asked_of(paper, listeners(&PEOPLE)?, asks).await
}

/// Opens a world in which the conversation of cleo asks something, and `people` are told.
async fn asked_of(
    paper: &Paper,
    people: Vec<Listener>,
    asks: QuestionRequest,
) -> anyhow::Result<(TempDir, FrameWorld, QuestionId)> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon());
    let world = world_of(directory.path(), &clock, paper, people, None).await?;
    let ids = &world.services.ids;
    let session: Session = serde_json::from_value(json!({
        "id": ids.next(), "idea": "walks", "user": "cleo", "phase": "exploring", "signals": { "confidence": 0.0 },
        "correlation_id": ids.next(), "created_at": noon(), "updated_at": noon(),
    }))?;
    let mut changes = ChangeSet::new();
    changes.insert(&session);
    world.services.store.commit(changes).await?;
    let request = QuestionRequest {
        about: About::Session {
            session: session.id,
        },
        ..asks
    };
    let id = open(&world, request).await?;
    Ok((directory, world, id))
}

#[tokio::test]
async fn a_question_of_a_conversation_goes_to_whose_it_is_and_to_everybody_when_time_is_over()
-> anyhow::Result<()> {
    let paper = Paper::new(&["ada", "bob", "cleo"]);
    let (_directory, world, id) = asked(&paper).await?;
    let said = paper.said(&world, 1).await?;
    assert_eq!((said[0].to.as_str(), said[0].question), ("cleo", Some(id)));
    world.pass_until(noon() + Duration::from_mins(59)).await;
    assert_eq!((paper.to("ada"), paper.to("bob")), (0, 0), "not yet");
    world.pass(Duration::from_mins(2)).await;
    paper
        .until(&world, || paper.to("ada") >= 1 && paper.to("bob") >= 1)
        .await?;
    world.close().await
}

#[tokio::test]
async fn where_who_talks_is_not_reached_those_of_the_role_are_asked() -> anyhow::Result<()> {
    let paper = Paper::new(&["ada", "bob"]);
    let (_directory, world, id) = asked(&paper).await?;
    let said = paper.said(&world, 1).await?;
    assert_eq!((said[0].to.as_str(), said[0].question), ("ada", Some(id)));
    world.settle().await?;
    assert_eq!(paper.count(), 1);
    world.close().await
}

#[tokio::test]
async fn where_who_talks_is_not_reached_who_may_decide_is_asked_beside_the_role_and_not_in_its_place()
-> anyhow::Result<()> {
    let paper = Paper::new(&["ada", "bob"]);
    let mut people = listeners(&PEOPLE)?;
    people[0].rights = [Right::Approve].into();
    let allow = Choice {
        recommended: true,
        ..Choice::new(ChoiceId::parse("allow-call")?, "Allow it")
    };
    let asks = QuestionRequest {
        trigger: "decision_needed".to_owned(),
        choices: vec![allow],
        ..asking(QuestionKind::Blocking, false)
    };
    let (_directory, world, _) = asked_of(&paper, people, asks).await?;
    paper.said(&world, 2).await?;
    assert_eq!((paper.to("ada"), paper.to("bob")), (1, 1));
    world.close().await
}
