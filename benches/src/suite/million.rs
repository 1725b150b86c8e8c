//! A database of 1,000,000 handled events: until it serves again, after a clean stop and after a kill.

use std::time::Duration;

use anyhow::Result;

use crate::disk;
use crate::figure::{Figure, Goal};
use crate::process::{Role, text};
use crate::raw::store::RawStore;
use crate::sample::{count, millis};

const EVENTS: usize = 1_000_000;

/// How long a process writes before it is killed.
const WRITE: Duration = Duration::from_secs(4);

/// Measures the time from the start of a process to its first durable step.
pub(crate) async fn run() -> Result<Vec<Figure>> {
    let directory = disk::directory()?;
    let path = text(directory.path())?;
    disk::tables(directory.path()).await?;
    let mut filler = RawStore::open(directory.path()).await?;
    filler.fill(EVENTS).await?;
    filler.close().await?;
    // What the filling left to write must not be waited for by the measured commits.
    nix::unistd::sync();
    let raw = seconds(Role::start("raw-first-step", path)?.ready_after);
    let clean = Role::start("first-step", path)?;
    let (clean_seconds, memory) = (seconds(clean.ready_after), clean.memory_bytes()?);
    drop(clean);
    let writer = Role::start("write", path)?;
    tokio::time::sleep(WRITE).await;
    drop(writer);
    let log = std::fs::metadata(directory.path().join("ropewalk.db-wal"))?.len();
    let crashed = seconds(Role::start("first-step", path)?.ready_after);
    let raw_is = "a process that opens it and commits a row";
    let log = count(usize::try_from(log / 1_048_576)?);
    Ok(vec![
        Figure::cost(
            "1,000,000 events: start to first durable step, clean stop",
            "s",
            clean_seconds,
        )
        .beside(raw, raw_is)
        .goal(Goal::Value(1.0)),
        Figure::cost(
            "1,000,000 events: the same after a kill under load",
            "s",
            crashed,
        )
        .beside(raw, raw_is)
        .goal(Goal::Value(10.0)),
        Figure::cost(
            "1,000,000 events: memory at that moment",
            "MiB",
            memory / 1_048_576.0,
        ),
        Figure::cost("1,000,000 events: log that the kill left", "MiB", log),
    ])
}

fn seconds(time: Duration) -> f64 {
    millis(time) / 1_000.0
}
