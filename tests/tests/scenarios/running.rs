//! The program while it runs: started, watched through its store, stopped.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ropewalk_bus::Poker;
use ropewalk_schemas::review::{Review, ReviewKind};
use ropewalk_store::Query;
use ropewalk_tests::program::Runner;

use crate::picture::{REHEARSAL, events_of, store};

/// A program that is killed when the test ends early.
pub(crate) struct RunningProgram(pub(crate) Child);

impl RunningProgram {
    /// Returns its process id.
    pub(crate) fn pid(&self) -> anyhow::Result<Pid> {
        Ok(Pid::from_raw(i32::try_from(self.0.id())?))
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Starts the program; what it says is added to the log of the runner.
pub(crate) fn start(runner: &Runner, arguments: &[&str]) -> anyhow::Result<RunningProgram> {
    let mut command: Command = runner.command(arguments)?;
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(runner.log())?;
    Ok(RunningProgram(
        command.stdout(Stdio::null()).stderr(log).spawn()?,
    ))
}

/// Waits until `up` takes what other processes tell it, and listens to signals.
pub(crate) async fn until_ready(directory: &Path, up: &mut RunningProgram) -> anyhow::Result<()> {
    let began = Instant::now();
    while !Poker::poke(&directory.join("state"))? {
        ensure!(up.0.try_wait()?.is_none(), "`up` ended while it started");
        ensure!(began.elapsed() < REHEARSAL, "`up` does not get ready");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// Waits until `count` events of `event_type` are stored; fails when the program ends before that.
pub(crate) async fn until_events(
    rehearsal: &Path,
    program: &mut RunningProgram,
    event_type: &str,
    count: usize,
) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        if let Ok(store) = store(rehearsal).await {
            let seen = events_of(&store, event_type).await?.len();
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
    until_ready(rehearsal, &mut up).await?;
    until_reviewed(rehearsal, &mut up, builds).await?;
    stop(&mut up).await.map(drop)
}

/// Waits until so many builds are reviewed and nothing is left to be handled.
pub(crate) async fn until_reviewed(
    rehearsal: &Path,
    up: &mut RunningProgram,
    builds: usize,
) -> anyhow::Result<()> {
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
    Ok(store.close().await?)
}

/// Asks the program to stop and returns how long that took; fails when it takes too long or ends in an error.
pub(crate) async fn stop(up: &mut RunningProgram) -> anyhow::Result<Duration> {
    kill(up.pid()?, Signal::SIGTERM)?;
    let stopped = Instant::now();
    loop {
        if let Some(status) = up.0.try_wait()? {
            ensure!(status.success(), "`up` was stopped and ended with {status}");
            return Ok(stopped.elapsed());
        }
        ensure!(
            stopped.elapsed() < REHEARSAL,
            "`up` did not stop on SIGTERM"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
