//! Decides by the seed who goes on, who fails and when the process dies, and checks what came of it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use chrono::{DateTime, Utc};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use ropewalk_runtime::{Clock, Ids};
use ropewalk_schemas::{BuildId, EventId, EventPattern, Subject};
use ropewalk_store::{ChangeSet, EventFilter, OpenDelivery, Store};

use crate::actors::{Cue, EFFECT, opening};
use crate::ledger;
use crate::process::Process;

/// How many chains of events one history has, about fewer builds.
const CHAINS: usize = 6;
const BUILDS: usize = 4;
/// More steps than any history needs.
const STEPS: u32 = 1_000;
/// How long everybody may take to come, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);
/// A delivery that failed so often goes on, so that nothing ends among the dead letters.
const TRIES: u32 = 3;

/// What one seed came to.
pub(crate) struct History {
    pub(crate) trace: Vec<String>,
    pub(crate) hash: u64,
    pub(crate) steps: u32,
    pub(crate) crashes: u32,
    pub(crate) failures: u32,
}

/// A simulation in the middle.
struct Play {
    directory: tempfile::TempDir,
    clock: Clock,
    ids: Ids,
    random: StdRng,
    /// None only while one life ends and the next begins.
    process: Option<Process>,
    history: History,
}

/// Plays one seed to its end.
pub(crate) async fn play(seed: u64) -> anyhow::Result<History> {
    // In memory where there is such a place: no disk decides how long this takes.
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
    let clock = Clock::manual(DateTime::UNIX_EPOCH);
    // The same for every seed: histories differ by what the director chooses, and by nothing else.
    let ids = Ids::seeded(0, clock.clone());
    let process = Process::start(directory.path(), &clock, &ids).await?;
    let mut play = Play {
        directory,
        clock,
        ids,
        random: StdRng::seed_from_u64(seed),
        process: Some(process),
        history: History {
            trace: Vec::new(),
            hash: 0,
            steps: 0,
            crashes: 0,
            failures: 0,
        },
    };
    let expected = play.open().await?;
    while play.step().await? {
        play.history.steps += 1;
        ensure!(play.history.steps < STEPS, "it never ends");
    }
    play.check(&expected).await?;
    let mut hasher = DefaultHasher::new();
    play.history.trace.hash(&mut hasher);
    play.history.hash = hasher.finish();
    if let Some(process) = play.process.take() {
        process.crash().await?;
    }
    Ok(play.history)
}

impl Play {
    /// Begins every chain; returns the effects that must follow.
    async fn open(&mut self) -> anyhow::Result<Vec<String>> {
        let builds: Vec<BuildId> = (0..BUILDS).map(|_| BuildId(self.ids.next())).collect();
        let mut expected = Vec::new();
        for number in 0..CHAINS {
            let build = builds[number % BUILDS];
            let event = opening(&self.process()?.context()?, build);
            let task = Subject::task(build, &ropewalk_schemas::TaskId::parse("T-001")?);
            expected.push(format!("two build.pause {}", event.subject));
            expected.push(format!("three task.retry {task}"));
            let mut changes = ChangeSet::new();
            changes.emit(event);
            self.process()?.services.store.commit(changes).await?;
        }
        Ok(expected)
    }

    /// Lets one delivery go on, or time pass; answers `false` when nothing is left.
    async fn step(&mut self) -> anyhow::Result<bool> {
        let (ready, next_due) = heads(&self.process()?.services.store, self.clock.now()).await?;
        if ready.is_empty() {
            let Some(due) = next_due else {
                return Ok(false);
            };
            self.note(format!("time {due}"));
            self.clock.advance((due - self.clock.now()).to_std()?);
            return Ok(true);
        }
        self.until_all_wait(&ready).await?;
        let chosen = &ready[self.random.random_range(0..ready.len())];
        let name = format!(
            "{} {} {} {}",
            chosen.key, chosen.event.event_type, chosen.event.subject, chosen.event.id
        );
        match self.random.random_range(0..100) {
            0..12 => {
                self.note(format!("crash before {name}"));
                self.restart().await?;
            }
            12..22 => {
                self.let_go(chosen, Cue::GoOn).await?;
                self.note(format!("crash after {name}"));
                self.restart().await?;
            }
            22..32 if chosen.attempts < TRIES => self.fail(chosen, Cue::Fail, &name).await?,
            32..40 if chosen.attempts < TRIES => self.fail(chosen, Cue::Panic, &name).await?,
            roll => {
                if roll >= 85 {
                    // Another look brings everything that is known already once more.
                    self.process()?.services.bus.poke();
                }
                self.let_go(chosen, Cue::GoOn).await?;
                self.note(format!("done {name}"));
            }
        }
        Ok(true)
    }

    async fn fail(&mut self, chosen: &OpenDelivery, cue: Cue, name: &str) -> anyhow::Result<()> {
        self.let_go(chosen, cue).await?;
        self.history.failures += 1;
        self.note(format!("{cue:?} {name}"));
        Ok(())
    }

    async fn restart(&mut self) -> anyhow::Result<()> {
        if let Some(process) = self.process.take() {
            process.crash().await?;
        }
        let fresh = Process::start(self.directory.path(), &self.clock, &self.ids).await?;
        self.process = Some(fresh);
        self.history.crashes += 1;
        Ok(())
    }

    fn process(&self) -> anyhow::Result<&Process> {
        self.process.as_ref().context("the process is dead")
    }

    fn note(&mut self, line: String) {
        self.history.trace.push(line);
    }

    /// Waits until exactly those who can be handled wait for their cue.
    async fn until_all_wait(&self, ready: &[OpenDelivery]) -> anyhow::Result<()> {
        let mut wanted: Vec<(String, EventId)> = ready.iter().map(actor).collect();
        wanted.sort();
        let began = Instant::now();
        loop {
            let waiting = self.process()?.stage.waiting();
            if waiting == wanted {
                return Ok(());
            }
            let late = began.elapsed() > PATIENCE;
            ensure!(!late, "{waiting:?} came instead of {wanted:?}");
            tokio::time::sleep(Duration::from_micros(300)).await;
        }
    }

    /// Gives a cue and waits until what follows from it is stored.
    async fn let_go(&self, chosen: &OpenDelivery, cue: Cue) -> anyhow::Result<()> {
        let given = self.process()?.stage.cue(&actor(chosen), cue);
        ensure!(given, "nobody took the cue");
        let (began, store) = (Instant::now(), &self.process()?.services.store);
        loop {
            let rows = store
                .open_deliveries(Some(&chosen.key.subscriber), 0, STEPS)
                .await?;
            let row = rows.iter().find(|row| row.key == chosen.key);
            if row.is_none_or(|row| row.attempts > chosen.attempts) {
                return Ok(());
            }
            ensure!(
                began.elapsed() < PATIENCE,
                "`{}` is not settled",
                chosen.key
            );
            tokio::time::sleep(Duration::from_micros(300)).await;
        }
    }

    /// Checks that every chain had its effects once.
    async fn check(&self, expected: &[String]) -> anyhow::Result<()> {
        let filter = EventFilter {
            pattern: Some(EventPattern::of(EFFECT)),
            limit: Some(STEPS),
            ..EventFilter::default()
        };
        let effects = self.process()?.services.store.events(&filter).await?;
        let found: Vec<String> = effects
            .iter()
            .filter_map(|effect| effect.event.data["cause"].as_str().map(str::to_owned))
            .collect();
        // Chains about one build have effects of one name.
        ledger::check("effects", &numbered(expected), &numbered(&found))
            .with_context(|| self.history.trace.join("\n"))
    }
}

/// Tells equal names apart by counting them.
fn numbered(names: &[String]) -> Vec<String> {
    let mut seen = std::collections::BTreeMap::<&str, u32>::new();
    names
        .iter()
        .map(|name| {
            let number = seen.entry(name).or_default();
            *number += 1;
            format!("{name} #{number}")
        })
        .collect()
}

fn actor(row: &OpenDelivery) -> (String, EventId) {
    (row.key.subscriber.to_string(), row.event.id)
}

/// Returns the first open delivery of each entity that is due, and when the next one of the others is.
async fn heads(
    store: &Store,
    now: DateTime<Utc>,
) -> anyhow::Result<(Vec<OpenDelivery>, Option<DateTime<Utc>>)> {
    let mut rows = store.open_deliveries(None, 0, STEPS).await?;
    rows.sort_by_key(|row| (row.key.sequence, row.key.subscriber.to_string()));
    let mut lanes = std::collections::BTreeSet::new();
    rows.retain(|row| {
        lanes.insert((
            row.key.subscriber.to_string(),
            row.event.subject.to_string(),
        ))
    });
    let next_due = rows
        .iter()
        .map(|row| row.due)
        .filter(|due| *due > now)
        .min();
    rows.retain(|row| row.due <= now);
    Ok((rows, next_due))
}
