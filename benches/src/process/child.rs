//! What this program does as the process that a benchmark looks at: it starts, says when it is ready, and waits.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use ropewalk_bus::TransportOptions;
use sqlx::Executor as _;

use crate::builds;
use crate::chain::{self, Route};
use crate::pipeline::Pipeline;
use crate::raw::store;
use crate::settings::READY;

/// How long a child waits to be killed before it gives up on its parent.
const PATIENCE: Duration = Duration::from_mins(10);

/// Takes the role that `words` name.
pub(crate) async fn run(words: &[String]) -> Result<()> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["first-step", directory] => first_step(Path::new(directory)).await,
        ["raw-first-step", directory] => raw_first_step(Path::new(directory)).await,
        ["idle", directory] => idle(Path::new(directory)).await,
        ["builds", directory] => {
            let project = builds::build(Path::new(directory)).await?;
            let result = ready().await;
            drop(project);
            result
        }
        ["write", directory] => write(Path::new(directory)).await,
        ["raw-crowd", builds] => raw_crowd(builds.parse()?).await,
        other => bail!("a child cannot be `{}`", other.join(" ")),
    }
}

/// Opens everything, commits an event and says when its first step is committed.
async fn first_step(directory: &Path) -> Result<()> {
    let pipeline = Pipeline::open(directory).await?;
    let mut feed = pipeline.world.services.store.feed();
    pipeline.walk(&mut feed, 1).await?;
    ready().await
}

/// Opens a database without a store around it and commits one row.
async fn raw_first_step(directory: &Path) -> Result<()> {
    let mut connection = store::connect(directory, true).await?;
    let known = sqlx::query("SELECT name FROM sqlite_schema WHERE name = 'events'")
        .fetch_optional(&mut connection)
        .await?;
    if known.is_none() {
        connection.execute("CREATE TABLE steps (body TEXT)").await?;
        connection
            .execute("INSERT INTO steps VALUES ('first')")
            .await?;
    } else {
        connection
            .execute("SELECT MAX(sequence) FROM events")
            .await?;
        connection
            .execute("UPDATE counters SET value = value + 1 WHERE name = 'token'")
            .await?;
    }
    ready().await
}

/// Opens everything and has nothing to do.
async fn idle(directory: &Path) -> Result<()> {
    let pipeline = Pipeline::open(directory).await?;
    let result = ready().await;
    drop(pipeline);
    result
}

/// Writes as fast as it can until it is killed.
async fn write(directory: &Path) -> Result<()> {
    say(READY)?;
    chain::ours(
        directory,
        TransportOptions::Embedded,
        Route::Chain,
        PATIENCE,
    )
    .await?;
    Ok(())
}

/// Holds what a build would cost without Ropewalk: six tasks that each wait on a channel.
async fn raw_crowd(builds: usize) -> Result<()> {
    let mut tasks = tokio::task::JoinSet::new();
    let mut senders = Vec::with_capacity(builds * 6);
    for _ in 0..builds * 6 {
        let (sender, mut receiver) = tokio::sync::mpsc::channel::<String>(8);
        senders.push(sender);
        tasks.spawn(async move { receiver.recv().await });
    }
    let result = ready().await;
    drop(senders);
    while tasks.join_next().await.is_some() {}
    result
}

async fn ready() -> Result<()> {
    say(READY)?;
    tokio::time::sleep(PATIENCE).await;
    Ok(())
}

fn say(line: &str) -> Result<()> {
    let mut output = std::io::stdout();
    writeln!(output, "{line}")?;
    output.flush()?;
    Ok(())
}
