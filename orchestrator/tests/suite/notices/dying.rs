//! Whoever sends dies, or a port breaks off, with something on its way: it goes on as the same message, in the same order.

use std::collections::BTreeMap;
use std::time::Duration;

use ropewalk_orchestrator::questions;
use ropewalk_runtime::Clock;
use ropewalk_schemas::alert::Severity;
use ropewalk_schemas::notice::{Notice, NoticeState};
use ropewalk_schemas::payload::ComponentDown;
use ropewalk_schemas::{ComponentName, Payload, Subject};
use ropewalk_store::Versioned;

use super::paper::{Paper, SentNotice, rows, world};
use super::{ask, begun, build, landed, tell};
use crate::world::{FrameWorld, noon};

/// Tells that a component is silent, which holds nothing up and waits for nothing but the end of quiet hours.
async fn silent(world: &FrameWorld, component: &str) -> anyhow::Result<()> {
    let component = ComponentName::parse(component)?;
    let down = ComponentDown {
        component: component.clone(),
        silent_seconds: 90,
        severity: Some(Severity::Error),
    };
    let subject = Subject::component(&component);
    tell(world, subject, Payload::ComponentDown(down)).await
}

/// Lets so many tasks land, a second apart, and waits until each is to be told; no time passes otherwise.
async fn land(world: &FrameWorld, paper: &Paper, count: usize) -> anyhow::Result<()> {
    let build = build(world);
    for number in 1..=count {
        landed(world, build, &format!("T-{number:03}")).await?;
        paper.until_rows(world, |rows| rows.len() == number).await?;
        world.clock.advance(Duration::from_secs(1));
    }
    Ok(())
}

/// Lists the numbers of the tasks that a message says have landed, in its order.
fn landings(said: &SentNotice) -> Vec<usize> {
    let told = format!("{}\n{}", said.title, said.body);
    let numbers = told.split("Task T-").skip(1);
    numbers
        .filter_map(|rest| rest.get(..3)?.parse().ok())
        .collect()
}

/// Breaks a message off that is told in three pieces after the second one, at the end of quiet hours, for more than one try.
async fn break_off(world: &FrameWorld, paper: &Paper) -> anyhow::Result<()> {
    paper.tells_in(3);
    paper.breaks_after(2);
    world.pass_until(noon() + Duration::from_hours(19)).await;
    paper.until(world, || paper.tries() > 2).await?;
    let is_put_off = |row: &Versioned<Notice>| row.pieces == 2 && row.state == NoticeState::Waiting;
    paper
        .until_rows(world, |rows| rows.iter().any(is_put_off))
        .await?;
    world.pass(Duration::from_secs(6)).await;
    paper.away(false);
    Ok(())
}

#[tokio::test]
async fn a_death_between_sending_and_recording_repeats_one_message_under_its_nonce()
-> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon());
    let paper = Paper::new(&["ada"]);
    let first = world(directory.path(), &clock, &paper, &[("ada", &[])]).await?;
    paper.hangs(true);
    let id = ask(&first).await?;
    let said = paper.said(&first, 1).await?;
    first.abort().await?;

    paper.hangs(false);
    let second = world(directory.path(), &clock, &paper, &[("ada", &[])]).await?;
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
    let first = world(directory.path(), &clock, &paper, &[("ada", &[])]).await?;
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

    let second = world(directory.path(), &clock, &paper, &[("ada", &[])]).await?;
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
    assert_eq!(told[2].title, "Task T-003 of `walks` is complete");
    let rows = rows(&second).await?;
    assert!(rows.iter().all(|row| row.state == NoticeState::Sent));
    let repeats: Vec<u32> = rows.iter().map(|row| row.repeats).collect();
    assert_eq!(repeats.iter().sum::<u32>(), 3, "each is counted");
    second.close().await
}

#[tokio::test]
async fn what_is_told_together_goes_on_in_the_order_in_which_it_began() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    // The first is gathered, and due after the others, which wait for seven o'clock.
    let clock = Clock::manual(noon() + Duration::from_hours(19) - Duration::from_mins(4));
    let paper = Paper::new(&["ada"]);
    let world = world(directory.path(), &clock, &paper, &[("ada", &[])]).await?;
    let heard = async |count: usize| {
        paper.until_rows(&world, |rows| rows.len() == count).await?;
        world.clock.advance(Duration::from_secs(1));
        anyhow::Ok(())
    };
    begun(&world, build(&world), "walks").await?;
    heard(1).await?;
    silent(&world, "loop-1-1").await?;
    heard(2).await?;
    silent(&world, "loop-1-2").await?;
    heard(3).await?;
    let due: Vec<_> = rows(&world).await?.iter().map(|row| row.due).collect();
    assert!(due[0] > due[1] && due[1] == due[2], "{due:?}");
    break_off(&world, &paper).await?;
    let said = paper.said(&world, 3).await?;
    let pieces: Vec<u32> = said.iter().map(|said| said.piece).collect();
    assert_eq!(pieces, [0, 1, 2], "each once");
    for piece in &said {
        assert_eq!(
            (piece.title.as_str(), &piece.body, &piece.nonce),
            ("3 things happened", &said[0].body, &said[0].nonce)
        );
    }
    let places = ["loop-1-2", "loop-1-1", "The build of `walks` began"];
    let places = places.map(|part| said[0].body.find(part));
    assert!(places.iter().all(Option::is_some) && places.is_sorted());
    world.settle().await?;
    assert_eq!(paper.count(), 3);
    world.close().await
}

#[tokio::test]
async fn of_much_that_waits_each_message_tells_the_newest_and_nothing_twice() -> anyhow::Result<()>
{
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon() + Duration::from_hours(11));
    let paper = Paper::new(&["ada"]);
    let world = world(directory.path(), &clock, &paper, &[("ada", &[])]).await?;
    land(&world, &paper, 60).await?;
    assert_eq!(paper.count(), 0, "nobody is woken");
    world.pass(Duration::from_hours(9)).await;
    let said = paper.said(&world, 3).await?;
    world.settle().await?;
    let told: Vec<usize> = said.iter().flat_map(landings).collect();
    let newest_first: Vec<usize> = (1..=60).rev().collect();
    assert_eq!(told, newest_first);
    for message in &said {
        assert_eq!(message.title, "20 things happened");
    }
    assert_eq!(paper.count(), 3);
    world.close().await
}

#[tokio::test]
async fn a_message_that_broke_off_stays_whole_however_much_else_waits() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon() + Duration::from_hours(11));
    let paper = Paper::new(&["ada"]);
    let world = world(directory.path(), &clock, &paper, &[("ada", &[])]).await?;
    // More than one look of the sender takes: it sees only a part of what is in that message.
    land(&world, &paper, 270).await?;
    break_off(&world, &paper).await?;
    world
        .until("the last message", || async {
            world.pass(Duration::from_secs(1)).await;
            let open = rows(&world).await?.iter().any(|row| row.is_open());
            Ok((!open).then_some(()))
        })
        .await?;
    let said = paper.all();
    let mut bodies: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for piece in &said {
        let pieces = bodies.entry(&piece.nonce).or_default();
        pieces.push(&piece.body);
    }
    for pieces in bodies.values() {
        assert_eq!(pieces.len(), 3, "each once");
        assert!(pieces.iter().all(|piece| piece == &pieces[0]));
    }
    let firsts = said.iter().filter(|said| said.piece == 0);
    let mut told: Vec<usize> = firsts.flat_map(landings).collect();
    told.sort_unstable();
    assert_eq!(told, (1..=270).collect::<Vec<_>>());
    world.close().await
}
