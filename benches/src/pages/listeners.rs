//! A thousand who listen, some of whom ask for everything and do not read it, beside somebody who asks 200 times a second.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use ropewalk_schemas::ComponentName;
use ropewalk_store::ChangeSet;
use tokio::task::JoinSet;

use super::connections;
use super::served::ServerFixture;
use crate::disk;
use crate::figure::{Figure, Goal};
use crate::process;
use crate::raw::store::RawStore;
use crate::sample::{Times, count};
use crate::words::Words;

/// How many listen and read.
const READERS: usize = 900;
/// How many ask for all that ever happened, and read none of it while the others are measured.
const STALLED: usize = 100;
/// How much happened before: more than the buffers of a connection hold.
const HAPPENED_BEFORE: usize = 25_000;
/// How many of those who stalled read everything in the end.
const RECOVERED: usize = 5;
/// How long it goes on.
const LASTS: Duration = Duration::from_mins(1);
/// The time between two requests of the one who asks.
const ASKS_EVERY: Duration = Duration::from_millis(5);
/// The time between two events.
const HAPPENS_EVERY: Duration = Duration::from_secs(1);
/// The time between two who come, so that nobody is told to come back later.
const COMES_EVERY: Duration = Duration::from_millis(5);
/// How long the last event may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// When each event was committed, by its position.
type CommitTimes = Arc<Mutex<HashMap<i64, Instant>>>;

/// Measures them all in one process, so that the memory is that of the server and of everybody who listens.
pub(crate) async fn run() -> Result<Vec<Figure>> {
    let directory = disk::directory()?;
    disk::tables(directory.path()).await?;
    let mut filler = RawStore::open(directory.path()).await?;
    filler.fill(HAPPENED_BEFORE).await?;
    filler.close().await?;
    let (served, _) = ServerFixture::open(directory.path()).await?;
    let committed = CommitTimes::default();
    let mut readers = JoinSet::new();
    let mut stalled = Vec::new();
    for number in 0..READERS + STALLED {
        tokio::time::sleep(COMES_EVERY).await;
        if number < STALLED {
            stalled.push(served.listen(Some(0)).await?);
        } else {
            let stream = served.listen(None).await?;
            readers.spawn(read(stream, Arc::clone(&committed)));
        }
    }
    let (asked, happened) = tokio::join!(ask(&served), happen(&served, &committed));
    let (asked, happened) = (asked?, happened?);
    let memory = process::own_peak_bytes()?;
    let waiting = connections::unread(served.port())?;
    ensure!(waiting >= STALLED, "only {waiting} have stalled");
    let last = served.store().last_sequence().await?;
    for stream in stalled.drain(..RECOVERED) {
        read_up_to(stream, last).await?;
    }
    tokio::time::sleep(PATIENCE).await;
    served.close().await?;
    let mut reached = Times::default();
    while let Some(times) = readers.join_next().await {
        reached.join(times??);
    }
    drop(stalled);
    figures(&asked, &reached, happened, memory)
}

fn figures(asked: &Times, reached: &Times, happened: usize, memory: f64) -> Result<Vec<Figure>> {
    let share = count(reached.len()) / count(happened * READERS) * 100.0;
    ensure!(share >= 99.0, "{share} % of the events were seen");
    Ok(vec![
        Figure::cost(
            format!("an idea is read beside {READERS} who listen and {STALLED} who stall, p99"),
            "ms",
            asked.millis(99)?,
        )
        .goal(Goal::Value(50.0)),
        Figure::cost(
            format!("an event reaches {READERS} who listen, p99"),
            "ms",
            reached.millis(99)?,
        )
        .goal(Goal::Value(1_000.0)),
        Figure::cost(
            "memory of the server and of everybody who listens",
            "MB",
            memory / 1e6,
        )
        .goal(Goal::Value(300.0)),
    ])
}

/// Asks as often as `ASKS_EVERY` says, whether or not the answers come in time.
async fn ask(served: &ServerFixture) -> Result<Times> {
    let begun = Instant::now();
    let mut turns = tokio::time::interval(ASKS_EVERY);
    let mut answers = JoinSet::new();
    while begun.elapsed() < LASTS {
        turns.tick().await;
        let asked = served.request("/api/ideation/sessions/idea-7");
        answers.spawn(async move {
            let begun = Instant::now();
            let answer = asked.send().await?.error_for_status()?;
            answer.bytes().await?;
            Ok::<_, reqwest::Error>(begun.elapsed())
        });
    }
    let mut times = Times::default();
    while let Some(time) = answers.join_next().await {
        times.add(time??);
    }
    Ok(times)
}

/// Lets something happen as often as `HAPPENS_EVERY` says; returns how often.
async fn happen(served: &ServerFixture, committed: &CommitTimes) -> Result<usize> {
    let (begun, words) = (Instant::now(), Words::new());
    let source = ComponentName::parse("build")?;
    let mut turns = tokio::time::interval(HAPPENS_EVERY);
    let mut happened = 0;
    while begun.elapsed() < LASTS {
        turns.tick().await;
        let mut changes = ChangeSet::new();
        changes.emit(words.event(&source, happened + 1)?);
        let outcome = served.store().commit(changes).await?;
        let at = Instant::now();
        let position = outcome.events.last().context("no event")?.sequence;
        let mut known = committed.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(position, at);
        happened += 1;
    }
    Ok(happened)
}

/// Reads the stream of one who stalled up to the position `last`: nothing is missing, and nothing comes twice.
async fn read_up_to(stream: reqwest::Response, last: i64) -> Result<()> {
    let mut chunks = stream.bytes_stream();
    let (mut text, mut seen) = (String::new(), 0);
    while seen < last {
        let chunk = chunks.next().await.context("the stream has ended")??;
        text.push_str(&String::from_utf8_lossy(&chunk));
        for position in positions(&mut text) {
            ensure!(position == seen + 1, "{position} came after {seen}");
            seen = position;
        }
    }
    Ok(())
}

/// Takes from `text` what came whole; returns the positions of the events that are stored.
fn positions(text: &mut String) -> Vec<i64> {
    let whole = text.rfind("\n\n").map_or(0, |end| end + 2);
    let told: String = text.drain(..whole).collect();
    let lines = told.lines().filter_map(|line| line.strip_prefix("id:"));
    lines.filter_map(|id| id.trim().parse().ok()).collect()
}

/// Reads a stream to its end; returns how long each event took.
async fn read(stream: reqwest::Response, committed: CommitTimes) -> Result<Times> {
    let mut times = Times::default();
    let mut chunks = stream.bytes_stream();
    let mut text = String::new();
    while let Some(chunk) = chunks.next().await {
        // The server stops while everybody still listens.
        let Ok(chunk) = chunk else { break };
        let now = Instant::now();
        text.push_str(&String::from_utf8_lossy(&chunk));
        for position in positions(&mut text) {
            let known = committed.lock().unwrap_or_else(PoisonError::into_inner);
            // One that came before its commit was noted took no time.
            let at = known.get(&position).copied().unwrap_or(now);
            times.add(now.saturating_duration_since(at));
        }
    }
    Ok(times)
}
