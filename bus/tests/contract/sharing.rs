//! Several processes take the same subscriber on one server: each delivery is with one of them at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use ropewalk_bus::{BusOptions, Failure, Inbox, SharingOptions};
use ropewalk_runtime::Clock;
use ropewalk_store::{ChangeSet, CommitError, Location, Store};
use ropewalk_tests::servers::PostgresServer;
use tokio::task::JoinSet;

use crate::support::{PATIENCE, RunningBus, World, finish_all, next, nothing_more};

/// Longer than a test.
const LONG: Duration = Duration::from_mins(10);
/// Long enough for a few renewals on a busy machine.
const SHORT: Duration = Duration::from_secs(5);

/// A server for the store and one for the bus.
struct Team {
    postgres: PostgresServer,
    world: World,
}

impl Team {
    fn new() -> Result<Self> {
        Ok(Self {
            postgres: PostgresServer::start()?,
            world: World::jetstream()?,
        })
    }

    async fn store(&self) -> Result<Store> {
        let location = Location::parse(&self.postgres.url(), self.world.directory.path())?;
        Ok(Store::open(&location, Clock::system()).await?)
    }

    /// Starts a bus as the process `name` would.
    async fn process(&self, name: &str, claim_lasts: Duration) -> Result<RunningBus> {
        self.process_at(name, claim_lasts, Clock::system()).await
    }

    /// Starts one whose time is that of `clock`.
    async fn process_at(
        &self,
        name: &str,
        claim_lasts: Duration,
        clock: Clock,
    ) -> Result<RunningBus> {
        let sharing = SharingOptions {
            claim_lasts,
            ..SharingOptions::new(name)
        };
        let options = BusOptions {
            sharing: Some(sharing),
            ..self.world.options.clone()
        };
        let (store, transport) = (self.store().await?, self.world.transport()?);
        RunningBus::start_at(store, transport, options, clock).await
    }
}

/// What was handled, in order: by whom, the entity, the sequence, and whether that began or ended.
type Journal = Arc<Mutex<Vec<(usize, String, i64, bool)>>>;

async fn work(process: usize, mut inbox: Inbox, journal: Journal) -> Result<()> {
    let mut in_hand = JoinSet::new();
    while let Some(mut delivery) = inbox.next().await {
        let journal = Arc::clone(&journal);
        in_hand.spawn(async move {
            let (entity, sequence) = (delivery.event.subject.to_string(), delivery.key().sequence);
            let note = |begins| {
                let entry = (process, entity.clone(), sequence, begins);
                let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
                journal.push(entry);
            };
            note(true);
            tokio::time::sleep(Duration::from_millis(3)).await;
            note(false);
            delivery.finish(ChangeSet::new()).await
        });
        while let Some(done) = in_hand.try_join_next() {
            done??;
        }
    }
    while let Some(done) = in_hand.join_next().await {
        done??;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_handle_each_delivery_once_and_each_entity_in_order() -> Result<()> {
    const EVENTS: usize = 240;
    let team = Team::new()?;
    let processes = [
        team.process("p1", LONG).await?,
        team.process("p2", LONG).await?,
    ];
    let journal = Journal::default();
    let mut workers = JoinSet::new();
    for (number, process) in processes.iter().enumerate() {
        let inbox = process.consume_at_most("build", &["task.*"], 4).await?;
        workers.spawn(work(number, inbox, Arc::clone(&journal)));
    }
    for number in 0..EVENTS {
        let subject = format!("task/b/T-{}", number % 12);
        let store = &processes[number % 2].store;
        team.world.emit(store, &subject, "go").await?;
    }
    let done = async {
        while processes[0].store.statistics().await?.open_deliveries > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(PATIENCE, done).await??;
    try_join_all(processes.map(RunningBus::stop)).await?;
    while let Some(ended) = workers.join_next().await {
        ended??;
    }

    let journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(journal.len(), 2 * EVENTS);
    let mut entities: BTreeMap<&str, Vec<(i64, bool)>> = BTreeMap::new();
    for (_, entity, sequence, begins) in journal.iter() {
        entities
            .entry(entity)
            .or_default()
            .push((*sequence, *begins));
    }
    assert_eq!(entities.len(), 12);
    for (entity, seen) in entities {
        // Each is ended before the next begins, and none comes twice.
        let mut expected: Vec<i64> = seen.iter().map(|(sequence, _)| *sequence).collect();
        expected.sort_unstable();
        expected.dedup();
        let expected: Vec<_> = expected
            .into_iter()
            .flat_map(|sequence| [(sequence, true), (sequence, false)])
            .collect();
        assert_eq!(seen, expected, "{entity}");
    }
    for process in 0..2 {
        let share = journal.iter().filter(|entry| entry.0 == process).count();
        ensure!(share > 0, "process {process} had nothing to do");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_delivery_of_a_process_that_stands_still_passes_on() -> Result<()> {
    let team = Team::new()?;
    let (frozen, other) = (
        team.process("p1", SHORT).await?,
        team.process("p2", SHORT).await?,
    );
    let mut first = frozen.consume("build", &["task.*"]).await?;
    let sequences = [
        team.world.emit(&frozen.store, "task/b/T-1", "1").await?,
        team.world.emit(&frozen.store, "task/b/T-1", "2").await?,
    ];
    let mut held = next(&mut first).await?;
    let mut second = other.consume("build", &["task.*"]).await?;
    // As long as it lives it keeps what it has, however long that takes.
    let early = tokio::time::timeout(SHORT * 3 / 2, second.next()).await;
    ensure!(early.is_err(), "{early:?}");
    frozen.supervisor.shutdown().abort();
    assert_eq!(finish_all(&mut second, 2).await?, sequences);
    let late = held.finish(ChangeSet::new()).await;
    ensure!(matches!(late, Err(CommitError::Closed { .. })), "{late:?}");
    nothing_more(&mut second).await?;
    other.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_stops_gives_back_what_it_has_not_done() -> Result<()> {
    let team = Team::new()?;
    let (leaving, staying) = (
        team.process("p1", LONG).await?,
        team.process("p2", LONG).await?,
    );
    let mut first = leaving.consume("build", &["task.*"]).await?;
    let sequence = team.world.emit(&leaving.store, "task/b/T-1", "1").await?;
    let held = next(&mut first).await?;
    let mut second = staying.consume("build", &["task.*"]).await?;
    nothing_more(&mut second).await?;
    leaving.supervisor.shutdown().begin();
    // What is in hand stays so until its handler has given it back.
    nothing_more(&mut second).await?;
    held.release();
    assert_eq!(finish_all(&mut second, 1).await?, [sequence]);
    leaving.stop().await?;
    staying.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_process_failed_at_another_may_try() -> Result<()> {
    let team = Team::new()?;
    let processes = [
        team.process("p1", LONG).await?,
        team.process("p2", LONG).await?,
    ];
    let mut first = processes[0].consume("build", &["task.*"]).await?;
    team.world
        .emit(&processes[0].store, "task/b/T-1", "1")
        .await?;
    let failing = next(&mut first).await?;
    let mut second = processes[1].consume("build", &["task.*"]).await?;
    nothing_more(&mut second).await?;
    // From here on only the other one takes any.
    drop(first);
    failing.fail(Failure::Transient("no".to_owned())).await?;
    let mut again = next(&mut second).await?;
    assert_eq!(again.attempt, 2);
    again.finish(ChangeSet::new()).await?;
    try_join_all(processes.map(RunningBus::stop)).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_tells_whoever_follows_the_timeline_what_another_process_committed() -> Result<()>
{
    let team = Team::new()?;
    // Time stands still: nobody looks by themselves.
    let clock = Clock::manual(Clock::system().now());
    let running = team.process_at("1", LONG, clock).await?;
    let mut heard = running.bus.tail().listen().await?;
    let other = team.store().await?;
    for number in 0..3 {
        let guidance = format!("there {number}");
        let there = team.world.emit(&other, "a", &guidance).await?;
        let came = tokio::time::timeout(PATIENCE, heard.next()).await??;
        assert_eq!(came.sequence, there);
    }
    other.close().await?;
    running.stop().await
}
