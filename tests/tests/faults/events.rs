//! Events that are poison, unknown, too large, or very many.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use ropewalk_runtime::{Clock, Ids};
use ropewalk_schemas::payload::AlertCleared;
use ropewalk_schemas::{ComponentName, Event, Payload, Priority, Subject};
use ropewalk_store::{ChangeSet, DeliveryFilter, DeliveryState, Store};
use ropewalk_tests::soak::count;

use crate::ledger;
use crate::picture::{events_of, store};
use crate::project::{PATIENCE, Project};
use crate::running::{RunningProgram, start, stop, until_events, until_ready};
use crate::trial::approved;

/// What a process may take of memory while a backlog drains.
const MEMORY_KIB: u64 = 300 * 1024;

async fn rows(project: &Project, states: &[DeliveryState]) -> anyhow::Result<Vec<String>> {
    let store = store(project.path()).await?;
    let filter = DeliveryFilter {
        states: states.to_vec(),
        limit: Some(1_000_000),
        ..DeliveryFilter::default()
    };
    let rows = store.deliveries(&filter).await?;
    store.close().await?;
    Ok(rows.iter().map(|row| row.key.to_string()).collect())
}

/// Waits until exactly `wanted` deliveries are in one of `states`, and returns them.
async fn until_rows(
    project: &Project,
    states: &[DeliveryState],
    wanted: usize,
) -> anyhow::Result<Vec<String>> {
    let began = Instant::now();
    loop {
        let found = rows(project, states).await?;
        if found.len() == wanted {
            return Ok(found);
        }
        let late = began.elapsed() > PATIENCE;
        ensure!(!late, "{} are {states:?}: {}", found.len(), project.said());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn an_event_whose_handler_crashes_is_set_aside_and_everything_else_goes_on()
-> anyhow::Result<()> {
    let project = approved()?;
    let poison = "frame.handle.improvement.build.completed:1:panic";
    let mut up = start(&project.runner.failing(poison), &["up"])?;
    until_events(project.path(), &mut up, "build.completed", 1).await?;
    let dead = until_rows(&project, &[DeliveryState::Dead], 1).await?;
    let shown = project.verb(&["dead-letter", "list"], "")?;
    let error = shown.pointer("/0/error").and_then(|error| error.as_str());
    ensure!(
        error.is_some_and(|error| error.contains("failpoint")),
        "{shown}"
    );
    // Its neighbours are done, the same process serves on.
    until_rows(&project, &[DeliveryState::Open], 0).await?;
    project.verb(&["idea", "new", "Another idea", "--slug", "another"], "")?;
    stop(&mut up).await?;
    let mut up = start(&project.runner, &["up"])?;
    until_ready(project.path(), &mut up).await?;
    project.verb(&["dead-letter", "replay", &dead[0]], "")?;
    until_rows(&project, &[DeliveryState::Dead, DeliveryState::Open], 0).await?;
    stop(&mut up).await?;
    project.finish_and_check().await
}

#[tokio::test]
async fn the_last_words_of_a_crash_hold_no_secret() -> anyhow::Result<()> {
    // A key that is called as the place that crashes is in the words of every crash there.
    let place = "frame.handle.improvement.build.completed";
    let project = approved()?;
    let runner = project
        .runner
        .failing(&format!("{place}:1:panic"))
        .with_variable("ANTHROPIC_API_KEY", place);
    let mut up = start(&runner, &["up"])?;
    until_rows(&project, &[DeliveryState::Dead], 1).await?;
    stop(&mut up).await?;
    let said = std::fs::read_to_string(project.runner.log())?;
    ensure!(said.contains("failpoint `[secret]`"), "{said}");
    ensure!(!said.contains(place), "{said}");
    let shown = project.verb(&["dead-letter", "list"], "")?.to_string();
    ensure!(!shown.contains(place), "{shown}");
    let kept = holding(&project.path().join("state"), place)?;
    ensure!(kept.is_empty(), "{kept:?}");
    let crashed = holding(&project.path().join("state"), "failpoint `[secret]`")?;
    ensure!(!crashed.is_empty(), "no row says that it crashed");
    Ok(())
}

/// Returns the files below `directory` that hold `word`.
fn holding(directory: &Path, word: &str) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            found.extend(holding(&path, word)?);
        } else if let Ok(content) = fs::read(&path)
            && String::from_utf8_lossy(&content).contains(word)
        {
            found.push(path);
        }
    }
    Ok(found)
}

#[tokio::test]
async fn an_event_of_a_newer_version_is_parked_and_shown() -> anyhow::Result<()> {
    let project = approved()?;
    project.verb(&["idea", "new", "Another idea", "--slug", "another"], "")?;
    let forge = "import sqlite3, sys\n\
        connection = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
        changed = connection.execute(\"UPDATE events SET body = replace(body, '\\\"schemaversion\\\":1', \
        '\\\"schemaversion\\\":99') WHERE sequence = (SELECT MAX(sequence) FROM events)\").rowcount\n\
        assert changed == 1, changed\n";
    let forged = std::process::Command::new("python3")
        .args(["-c", forge])
        .arg(project.path().join("state/ropewalk.db"))
        .status()?;
    ensure!(forged.success(), "the event could not be forged");
    let mut up = start(&project.runner, &["up"])?;
    let parked = until_rows(&project, &[DeliveryState::Parked], 1).await?;
    let shown = project.verb(&["dead-letter", "list"], "")?;
    let reason = shown.pointer("/0/error").and_then(|error| error.as_str());
    ensure!(
        reason.is_some_and(|reason| reason.contains("schema version 99")),
        "{shown}"
    );
    until_events(project.path(), &mut up, "build.completed", 1).await?;
    // Whoever is told of the end of the build is done with it, too.
    until_rows(&project, &[DeliveryState::Open], 0).await?;
    stop(&mut up).await?;
    project.verb(&["dead-letter", "discard", &parked[0]], "")?;
    let open = rows(&project, &[DeliveryState::Open, DeliveryState::Dead]).await?;
    ensure!(open.is_empty(), "{open:?}");
    Ok(())
}

#[tokio::test]
async fn a_message_that_is_too_large_is_refused_before_anything_is_written() -> anyhow::Result<()> {
    let project = approved()?;
    project.verb(&["idea", "new", "Another idea", "--slug", "another"], "")?;
    let before = messages(&project).await?;
    let huge = format!("{}\n", "x".repeat((1 << 20) + 1));
    let chat = ["idea", "chat", "another"];
    let output = project.runner.run_with_input(&chat, &huge, PATIENCE)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    ensure!(
        said.len() < 4_000 && said.contains("65536 is the most"),
        "{said}"
    );
    assert_eq!(messages(&project).await?, before);
    project.finish_and_check().await
}

async fn messages(project: &Project) -> anyhow::Result<Vec<String>> {
    let store = store(project.path()).await?;
    let events = events_of(&store, "ideation.message").await?;
    store.close().await?;
    let ids = events.iter().map(|stored| stored.event.id.to_string());
    Ok(ids.collect())
}

#[tokio::test]
async fn soak_a_backlog_drains_within_bounded_memory_through_kills() -> anyhow::Result<()> {
    let wanted = count("ROPEWALK_SOAK_EVENTS", 10_000)?;
    let project = approved()?;
    // The first start makes the subscriptions.
    let mut up = start(&project.runner, &["up"])?;
    until_events(project.path(), &mut up, "build.completed", 1).await?;
    stop(&mut up).await?;
    let emitted = backlog(&project, wanted).await?;
    let open = rows(&project, &[DeliveryState::Open]).await?.len();
    ensure!(
        open >= emitted.len(),
        "{open} deliveries wait for {wanted} events"
    );
    let mut kills = 0;
    let mut most = 0;
    let began = Instant::now();
    loop {
        let mut up = start(&project.runner, &["up"])?;
        let last = kills >= 3;
        let left = drain(&project, &mut up, last, &mut most).await?;
        if left == 0 {
            until_ready(project.path(), &mut up).await?;
            stop(&mut up).await?;
            break;
        }
        project.kill(up).await?;
        kills += 1;
    }
    ensure!(kills > 0, "it was never killed");
    ensure!(most > 0 && most <= MEMORY_KIB, "it took {most} KiB");
    let done = rows(&project, &[DeliveryState::Done]).await?;
    let done: Vec<String> = done
        .iter()
        .filter_map(|key| key.strip_suffix("/pm").map(str::to_owned))
        .filter(|sequence| emitted.contains(sequence))
        .collect();
    ledger::check("events of the backlog", &emitted, &done)?;
    println!(
        "{wanted} events drained in {:?} through {kills} kills with at most {} MiB: 0 lost, 0 doubled",
        began.elapsed(),
        most / 1024
    );
    project.finish_and_check().await
}

/// Watches until nothing is open, or until something was done and it is time for a kill; answers what is open.
async fn drain(
    project: &Project,
    up: &mut RunningProgram,
    to_the_end: bool,
    most: &mut u64,
) -> anyhow::Result<usize> {
    let (began, store) = (Instant::now(), store(project.path()).await?);
    let before = open(&store).await?;
    loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        *most = (*most).max(peak_kib(up)?);
        let left = open(&store).await?;
        if left == 0 || (!to_the_end && left < before) {
            store.close().await?;
            return Ok(left);
        }
        ensure!(up.0.try_wait()?.is_none(), "`up` ended: {}", project.said());
        ensure!(began.elapsed() < PATIENCE * 5, "{left} are still open");
    }
}

async fn open(store: &Store) -> anyhow::Result<usize> {
    Ok(store.open_deliveries(None, 0, 1_000_000).await?.len())
}

/// Returns the most memory that a process ever had.
fn peak_kib(up: &RunningProgram) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", up.pid()?))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.context("no `VmHWM`")?.parse()?)
}

/// Commits events that PM takes and that ask nothing of it; returns their sequences.
async fn backlog(project: &Project, count: u32) -> anyhow::Result<Vec<String>> {
    let store = store(project.path()).await?;
    let ids = Ids::system(Clock::system());
    let mut sequences = Vec::new();
    let numbers: Vec<u32> = (0..count).collect();
    for batch in numbers.chunks(500) {
        let mut changes = ChangeSet::new();
        for number in batch {
            let name = ComponentName::parse(&format!("part-{}", number % 997))?;
            changes.emit(Event {
                id: ids.next().into(),
                source: ComponentName::parse("monitor")?,
                subject: Subject::component(&name),
                time: Clock::system().now(),
                correlation_id: ids.next().into(),
                causation_id: None,
                hop: 0,
                traceparent: None,
                priority: Priority::DEFAULT,
                payload: Payload::ComponentDownCleared(AlertCleared {
                    cause: format!("component/{name}"),
                    message: "It is back.".to_owned(),
                }),
            });
        }
        let committed = store.commit(changes).await?;
        sequences.extend(
            committed
                .events
                .iter()
                .map(|stored| stored.sequence.to_string()),
        );
    }
    store.close().await?;
    Ok(sequences)
}
