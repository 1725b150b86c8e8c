//! That half of a build is done is told once, with what else holds nothing up.

use std::time::Duration;

use ropewalk_runtime::Clock;
use ropewalk_schemas::BuildId;
use ropewalk_schemas::build::TaskCounts;
use ropewalk_schemas::notice::Notice;
use ropewalk_schemas::person::Role;
use ropewalk_schemas::question::{About, QuestionKind};
use ropewalk_store::Versioned;

use super::paper::{Paper, SentNotice, world};
use super::{begun, build, landed_of};
use crate::questions::{asking, open};
use crate::world::{FrameWorld, noon};

const HALF: &str = "Half of `walks` is done";

/// Lands so many of five tasks, from the first of them on.
async fn lands(
    world: &FrameWorld,
    build: BuildId,
    numbers: std::ops::RangeInclusive<u32>,
) -> anyhow::Result<()> {
    for complete in numbers {
        let counts = TaskCounts {
            total: 5,
            complete,
            ..TaskCounts::default()
        };
        landed_of(world, build, &format!("T-00{complete}"), counts).await?;
    }
    Ok(())
}

/// Returns the messages to somebody that say that half is done.
fn halves(paper: &Paper, name: &str) -> Vec<SentNotice> {
    let all = paper.all().into_iter();
    let to = all.filter(|said| said.to == name);
    to.filter(|said| said.title.contains(HALF) || said.body.contains(HALF))
        .collect()
}

#[tokio::test]
async fn half_of_a_build_is_told_once_together_with_what_else_happened_over_a_death()
-> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon());
    let paper = Paper::new(&["ada", "bob"]);
    let people: [(&str, &[Role]); 2] = [("ada", &[Role::Product]), ("bob", &[Role::Technical])];
    let first = world(directory.path(), &clock, &paper, &people).await?;
    let build = build(&first);
    begun(&first, build, "walks").await?;
    lands(&first, build, 1..=3).await?;
    first.settle().await?;
    assert_eq!(paper.count(), 0, "it is gathered");
    paper.hangs(true);
    first.pass(Duration::from_mins(6)).await;
    let said = paper.said(&first, 1).await?;
    // It dies with the first of the messages on its way, and nobody knows whether that arrived.
    first.abort().await?;
    paper.hangs(false);

    let second = world(directory.path(), &clock, &paper, &people).await?;
    let is_over = |rows: &[Versioned<Notice>]| rows.iter().all(|row| !row.is_open());
    paper.until_rows(&second, is_over).await?;
    lands(&second, build, 4..=5).await?;
    second.settle().await?;
    second.pass(Duration::from_mins(6)).await;
    paper.until_rows(&second, is_over).await?;
    for (name, whole) in [("ada", "2 things happened"), ("bob", "3 things happened")] {
        let mut told = halves(&paper, name);
        if said[0].to == name {
            let unsure = told.remove(0);
            assert_eq!(unsure.nonce, told[0].nonce, "the one that was on its way");
        }
        assert_eq!(told.len(), 1, "{name}: {told:#?}");
        assert_eq!(told[0].title, whole);
        let body = &told[0].body;
        assert!(
            body.contains("Task T-003 is complete, 3 of 5 tasks are."),
            "{body}"
        );
    }
    second.close().await
}

#[tokio::test]
async fn half_of_a_build_is_told_by_the_question_where_one_is_put() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon());
    let paper = Paper::new(&["ada"]);
    let world = world(directory.path(), &clock, &paper, &[("ada", &[])]).await?;
    let build = build(&world);
    let mut asking = asking(QuestionKind::Celebratory, false);
    "milestone_reached".clone_into(&mut asking.trigger);
    asking.about = About::Build { build };
    let question = open(&world, asking).await?;
    lands(&world, build, 3..=3).await?;
    world.settle().await?;
    assert_eq!(
        paper.count(),
        0,
        "a question that holds nothing up is no hurry"
    );
    world.pass(Duration::from_mins(6)).await;
    let said = paper.said(&world, 2).await?;
    let asked: Vec<_> = said.iter().filter_map(|said| said.question).collect();
    assert_eq!(asked, [question]);
    assert_eq!(halves(&paper, "ada"), []);
    world.close().await
}

#[tokio::test]
async fn what_is_asked_at_the_end_of_a_way_is_told_at_once() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon());
    let paper = Paper::new(&["ada"]);
    let world = world(directory.path(), &clock, &paper, &[("ada", &[])]).await?;
    let mut asking = asking(QuestionKind::Celebratory, false);
    "spec_complete".clone_into(&mut asking.trigger);
    let question = open(&world, asking).await?;
    let said = paper.said(&world, 1).await?;
    assert_eq!(said[0].question, Some(question));
    world.close().await
}
