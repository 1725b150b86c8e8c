//! Whoever sends dies with something on its way: it is sent once more, as the same message.

use std::time::Duration;

use ropewalk_orchestrator::questions;
use ropewalk_runtime::Clock;
use ropewalk_schemas::notice::NoticeState;

use super::paper::{Paper, house, rows};
use super::{ask, begun, build, landed};
use crate::house::noon;

#[tokio::test]
async fn a_death_between_sending_and_recording_repeats_one_message_under_its_nonce()
-> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon());
    let paper = Paper::new(&["ada"]);
    let first = house(directory.path(), &clock, &paper, &[("ada", &[])]).await?;
    paper.hangs(true);
    let id = ask(&first).await?;
    let said = paper.said(&first, 1).await?;
    first.abort().await?;

    paper.hangs(false);
    let second = house(directory.path(), &clock, &paper, &[("ada", &[])]).await?;
    let again = paper.said(&second, 2).await?;
    assert_eq!(again[1].nonce, said[0].nonce);
    paper
        .until_rows(&second, |rows| rows[0].state == NoticeState::Sent)
        .await?;
    assert_eq!(rows(&second).await?[0].repeats, 1, "it is counted");
    questions::answer(&second.context("cli")?, id, "no", "ada", "cli").await?;
    paper.until(&second, || !paper.edits().is_empty()).await?;
    second.close().await
}

#[tokio::test]
async fn what_was_told_together_is_told_together_again_under_its_nonce_after_a_death()
-> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon());
    let paper = Paper::new(&["ada"]);
    let first = house(directory.path(), &clock, &paper, &[("ada", &[])]).await?;
    let build = build(&first);
    begun(&first, build, "walks").await?;
    for task in ["T-001", "T-002"] {
        landed(&first, build, task).await?;
    }
    first.settle().await?;
    paper.hangs(true);
    first.pass(Duration::from_mins(6)).await;
    let said = paper.said(&first, 1).await?;
    assert_eq!(said[0].title, "3 things happened");
    first.abort().await?;
    paper.hangs(false);

    let second = house(directory.path(), &clock, &paper, &[("ada", &[])]).await?;
    // What happened since is told by itself: it was not in the message that is repeated.
    landed(&second, build, "T-003").await?;
    second.settle().await?;
    second.pass(Duration::from_mins(6)).await;
    paper
        .until_rows(&second, |rows| rows.iter().all(|row| !row.is_open()))
        .await?;
    let told = paper.all();
    assert_eq!(told.len(), 3, "{told:#?}");
    assert_eq!(told[1].nonce, said[0].nonce);
    assert_eq!(told[1].title, "3 things happened");
    assert_eq!(told[2].title, "Task T-003 of `walks` landed");
    let rows = rows(&second).await?;
    assert!(rows.iter().all(|row| row.state == NoticeState::Sent));
    let repeats: Vec<u32> = rows.iter().map(|row| row.repeats).collect();
    assert_eq!(repeats.iter().sum::<u32>(), 3, "each is counted");
    second.close().await
}
