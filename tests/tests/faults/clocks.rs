//! A machine whose clock somebody moves while everything runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::ensure;
use chrono::TimeDelta;
use ropewalk_runtime::{Clock, Ids};
use ropewalk_schemas::attempt::{Attempt, AttemptState};
use ropewalk_schemas::timer::Timer;
use ropewalk_store::{ChangeSet, Query};

use crate::picture::{TIMER, events_of, store};
use crate::project::Project;
use crate::running::{RunningProgram, start, stop, until_events};
use crate::trial::{UNTIL_FAULT, approved};

/// Builds the library that moves the clock of a process that loads it first.
fn shim(directory: &Path) -> anyhow::Result<PathBuf> {
    let library = directory.join("clock.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/faults/clock.c");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(source)
        .arg("-ldl")
        .status()?;
    ensure!(built.success(), "cannot build `{source}`");
    Ok(library)
}

/// Moves the clock of everybody who loaded the library, and makes sure that it is moved, and that `up` was told so.
async fn move_clock(
    library: &Path,
    offset: &Path,
    seconds: i64,
    up: &RunningProgram,
) -> anyhow::Result<()> {
    fs::write(offset, seconds.to_string())?;
    let shown = Command::new("date")
        .arg("+%s")
        .env("LD_PRELOAD", library)
        .env("ROPEWALK_TEST_CLOCK", offset)
        .output()?;
    let shown: i64 = String::from_utf8(shown.stdout)?.trim().parse()?;
    let moved = shown - Clock::system().now().timestamp();
    ensure!((moved - seconds).abs() < 30, "moved by {moved} s");
    let told = format!("{} {seconds}", up.pid()?);
    let began = Instant::now();
    while !fs::read_to_string(offset.with_extension("seen"))?
        .lines()
        .any(|line| line == told)
    {
        ensure!(began.elapsed() < UNTIL_FAULT, "`up` does not look at it");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Stores a timer that is due after that time.
async fn remind(project: &Project, name: &str, after: TimeDelta) -> anyhow::Result<()> {
    let (clock, store) = (Clock::system(), store(project.path()).await?);
    let ids = Ids::system(clock.clone());
    let mut changes = ChangeSet::new();
    changes.insert(&Timer {
        id: ids.next().into(),
        name: name.to_owned(),
        target: String::new(),
        due: clock.now() + after,
        cron: None,
        correlation_id: ids.next().into(),
    });
    store.commit(changes).await?;
    Ok(store.close().await?)
}

async fn fired(project: &Project, name: &str) -> anyhow::Result<usize> {
    let store = store(project.path()).await?;
    let events = events_of(&store, TIMER).await?;
    store.close().await?;
    let named = events
        .iter()
        .filter(|stored| stored.event.data["name"] == name);
    Ok(named.count())
}

#[tokio::test]
async fn a_clock_that_is_moved_by_days_fires_nothing_early_and_costs_no_lease() -> anyhow::Result<()>
{
    let mut project = approved()?;
    let (library, offset) = (shim(project.path())?, project.path().join("offset"));
    fs::write(&offset, "0")?;
    project.runner = project
        .runner
        .clone()
        .with_variable("LD_PRELOAD", &library.display().to_string())
        .with_variable("ROPEWALK_TEST_CLOCK", &offset.display().to_string());
    remind(&project, "trial.tomorrow", TimeDelta::days(1)).await?;
    let mut up = start(&project.runner, &["up"])?;
    until_events(project.path(), &mut up, "task.started", 1).await?;
    move_clock(&library, &offset, 3 * 86_400, &up).await?;
    until_events(project.path(), &mut up, "task.completed", 4).await?;
    move_clock(&library, &offset, -2 * 3_600, &up).await?;
    until_events(project.path(), &mut up, "build.completed", 1).await?;
    remind(&project, "trial.soon", TimeDelta::seconds(1)).await?;
    for _ in 0..1_000 {
        if fired(&project, "trial.soon").await? > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(fired(&project, "trial.soon").await?, 1, "time stands still");
    assert_eq!(
        fired(&project, "trial.tomorrow").await?,
        0,
        "it fired early"
    );
    stop(&mut up).await?;
    fs::write(&offset, "0")?;
    let store = store(project.path()).await?;
    let attempts = store.list::<Attempt>(Query::new()).await?;
    store.close().await?;
    let lost = attempts
        .iter()
        .filter(|attempt| attempt.state != AttemptState::Landed);
    assert_eq!(lost.count(), 0, "an attempt lost its lock");
    project.finish_and_check().await
}
