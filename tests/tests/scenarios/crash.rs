//! Killed at any moment of a rehearsal, `up` in the same folder goes on to the same result.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ropewalk_schemas::review::{Review, ReviewKind};
use ropewalk_store::{EventFilter, Query};
use ropewalk_tests::program::Runner;

use crate::picture::{REHEARSAL, landed, store, tree};
use crate::rehearsal::{check_at_rest, check_branches, rehearse};

/// A program that is killed when the test ends early.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn start(runner: &Runner, arguments: &[&str]) -> anyhow::Result<Running> {
    let mut command: Command = runner.command(arguments)?;
    Ok(Running(
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?,
    ))
}

/// Waits until `count` events of `event_type` are stored; fails when the program ends before that.
async fn until_events(
    rehearsal: &Path,
    program: &mut Running,
    event_type: &str,
    count: usize,
) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        if let Ok(store) = store(rehearsal).await {
            let events = store
                .events(&EventFilter {
                    limit: Some(10_000),
                    ..EventFilter::default()
                })
                .await?;
            let seen = events
                .iter()
                .filter(|stored| stored.event.event_type == event_type)
                .count();
            store.close().await?;
            if seen >= count {
                return Ok(());
            }
        }
        ensure!(
            program.0.try_wait()?.is_none(),
            "it ended before `{event_type}`"
        );
        ensure!(began.elapsed() < REHEARSAL, "no `{event_type}` in time");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Runs `up` in the folder until so many builds are reviewed, then stops it in order.
pub(crate) async fn finish(runner: &Runner, rehearsal: &Path, builds: usize) -> anyhow::Result<()> {
    let mut up = start(runner, &["up"])?;
    let began = Instant::now();
    let store = store(rehearsal).await?;
    loop {
        let reviews = store.list::<Review>(Query::new()).await?;
        let open = store.open_deliveries(None, 0, 1).await?;
        let reviewed = reviews
            .iter()
            .filter(|review| review.kind == ReviewKind::Build)
            .count();
        if reviewed == builds && open.is_empty() {
            break;
        }
        if let Some(status) = up.0.try_wait()? {
            bail!("`up` ended by itself: {status}");
        }
        ensure!(
            began.elapsed() < REHEARSAL,
            "`up` did not finish the builds in time"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    kill(Pid::from_raw(i32::try_from(up.0.id())?), Signal::SIGTERM)?;
    let stopped = Instant::now();
    while up.0.try_wait()?.is_none() {
        ensure!(
            stopped.elapsed() < Duration::from_secs(12),
            "`up` did not stop on SIGTERM"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    store.close().await?;
    Ok(())
}

#[tokio::test]
async fn a_killed_rehearsal_goes_on_to_the_same_commits() -> anyhow::Result<()> {
    let undisturbed = tempfile::tempdir()?;
    rehearse(undisturbed.path(), &[])?;
    let expected = undisturbed.path().join("rehearsal/repo");
    // One moment in each stage: chat, specification, an attempt, a landing, between the ideas, the second build.
    for (event_type, count) in [
        ("ideation.phase_changed", 1),
        ("question.answered", 1),
        ("task.started", 2),
        ("task.completed", 3),
        ("build.completed", 1),
        ("task.started", 11),
    ] {
        let directory = tempfile::tempdir()?;
        let rehearsal = directory.path().join("rehearsal");
        let folder = rehearsal.display().to_string();
        let runner = Runner::new(directory.path());
        let mut program = start(&runner, &["rehearse", "--json", "--dir", &folder])?;
        until_events(&rehearsal, &mut program, event_type, count).await?;
        program.0.kill()?;
        let status = program.0.wait()?;
        ensure!(status.code().is_none(), "it was not killed: {status}");

        let inside = Runner::new(&rehearsal);
        finish(&inside, &rehearsal, 2)
            .await
            .with_context(|| format!("killed at {event_type} {count}"))?;
        check_branches(&rehearsal).with_context(|| format!("killed at {event_type} {count}"))?;
        for (branch, package) in [
            ("build/habit-streaks", "habits"),
            ("build/bill-calendar", "bills"),
        ] {
            let repository = rehearsal.join("repo");
            assert_eq!(
                landed(&repository, branch)?,
                landed(&expected, branch)?,
                "{event_type} {count}"
            );
            assert_eq!(
                tree(&repository, branch, package)?,
                tree(&expected, branch, package)?
            );
        }
        let store = store(&rehearsal).await?;
        check_at_rest(&store).await?;
        store.close().await?;
    }
    Ok(())
}
