//! What the program died of is charged at the next start, tried alone, and set aside at last.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use ropewalk_orchestrator::{Agent, AgentError, Context, Profile, Suspects};
use ropewalk_runtime::{Clock, Ids, InHand};
use ropewalk_schemas::alert::Alert;
use ropewalk_schemas::deaths::Deaths;
use ropewalk_schemas::payload::BuildRequest;
use ropewalk_schemas::{BuildId, ComponentName, Event, EventPattern, Payload, Subject};
use ropewalk_store::{ChangeSet, DeliveryState, Query};

use crate::world::{FrameWorld, noon};

/// What a [`PatientAgent`] does and has done.
#[derive(Debug, Default)]
struct Record {
    /// Who is in its hands.
    holds: BTreeSet<String>,
    /// Who was, with those beside.
    done: Vec<(String, usize)>,
}

/// An agent that never lets go of some of its events.
struct PatientAgent {
    keeps: Vec<Subject>,
    record: Arc<Mutex<Record>>,
}

fn look(record: &Mutex<Record>) -> MutexGuard<'_, Record> {
    record.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Agent for PatientAgent {
    fn profile(&self) -> Profile {
        Profile {
            role: ComponentName::parse("build").unwrap_or_else(|error| panic!("{error}")),
            patterns: vec![EventPattern::of("build.*")],
            in_flight: 4,
            schedules: Vec::new(),
        }
    }

    async fn handle(&self, event: &Event, _context: &Context) -> Result<ChangeSet, AgentError> {
        let subject = event.subject.to_string();
        look(&self.record).holds.insert(subject.clone());
        if self.keeps.contains(&event.subject) {
            std::future::pending::<()>().await;
        }
        let mut record = look(&self.record);
        record.holds.remove(&subject);
        let beside = record.holds.len();
        record.done.push((subject, beside));
        Ok(ChangeSet::new())
    }
}

/// A program that is started again and again on one directory.
struct Program {
    directory: tempfile::TempDir,
    clock: Clock,
}

impl Program {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            directory: tempfile::tempdir()?,
            clock: Clock::manual(noon()),
        })
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn notes(&self) -> PathBuf {
        self.path().join("in-hand")
    }

    /// Starts it with an agent that never lets go of `keeps`.
    async fn start(&self, keeps: &[Subject]) -> anyhow::Result<(FrameWorld, Arc<Mutex<Record>>)> {
        let record = Arc::default();
        let agent = PatientAgent {
            keeps: keeps.to_vec(),
            record: Arc::clone(&record),
        };
        let (in_hand, left) = InHand::open(&self.notes())?;
        let suspects = Suspects::new(in_hand, left);
        let agents: Vec<Arc<dyn Agent>> = vec![Arc::new(agent)];
        let world =
            FrameWorld::open_counting(self.path(), self.clock.clone(), agents, suspects).await?;
        Ok((world, record))
    }

    /// Ends it as a kill does: what it noted stays as it is.
    async fn kill(&self, world: FrameWorld) -> anyhow::Result<()> {
        let noted = fs::read(self.notes())?;
        world.abort().await?;
        Ok(fs::write(self.notes(), noted)?)
    }

    /// Starts it, waits until it has all of `keeps` in hand, and kills it.
    async fn die_of(&self, keeps: &[Subject]) -> anyhow::Result<Record> {
        let (world, record) = self.start(keeps).await?;
        world
            .until("the handlers", || async {
                world.pass(Duration::from_secs(1)).await;
                Ok((look(&record).holds.len() == keeps.len()).then_some(()))
            })
            .await?;
        self.kill(world).await?;
        Ok(std::mem::take(&mut *look(&record)))
    }
}

/// Emits one event for a fresh build and returns its subject.
async fn emit(world: &FrameWorld) -> anyhow::Result<Subject> {
    let context = world.context("cli")?;
    let build = BuildId(context.ids.next());
    let payload = BuildRequest {
        build_id: build,
        requested_by: "pat".to_owned(),
        reason: None,
    };
    let subject = Subject::build(build);
    let mut changes = ChangeSet::new();
    changes.emit(context.event(subject.clone(), Payload::BuildPause(payload)));
    world.services.store.commit(changes).await?;
    Ok(subject)
}

async fn deaths(world: &FrameWorld) -> anyhow::Result<Vec<u32>> {
    let rows = world.services.store.list::<Deaths>(Query::new()).await?;
    Ok(rows.iter().map(|row| row.count).collect())
}

#[tokio::test]
async fn a_killer_is_set_aside_with_an_alert_after_five_deaths_and_the_innocent_beside_it_goes_free()
-> anyhow::Result<()> {
    let program = Program::new()?;
    let (world, record) = program.start(&[]).await?;
    let (killer, innocent) = (emit(&world).await?, emit(&world).await?);
    // Handled once, so that what follows is a history of its own.
    world.settle().await?;
    look(&record).done.clear();
    world.close().await?;
    let (world, _) = program.start(&[killer.clone(), innocent.clone()]).await?;
    for subject in [&killer, &innocent] {
        again(&world, subject).await?;
    }
    world.abort().await?;

    for _ in 0..2 {
        program.die_of(&[killer.clone(), innocent.clone()]).await?;
    }
    // From now on one at a time: the innocent ends with nothing beside it, at the latest when it died less often.
    let mut done = Vec::new();
    for _ in 0..2 {
        let record = program.die_of(std::slice::from_ref(&killer)).await?;
        done.extend(record.done);
    }
    assert_eq!(done, [(innocent.to_string(), 0)]);
    program.die_of(std::slice::from_ref(&killer)).await?;

    let (world, record) = program.start(&[killer]).await?;
    world.settle().await?;
    assert!(look(&record).holds.is_empty());
    let dead = world.services.bus.dead_letters().list(10).await?;
    let told: Vec<&str> = dead.iter().filter_map(|row| row.error.as_deref()).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("ended 5 times in a row while `build`"),
        "{told:?}"
    );
    let alerts = world.services.store.list::<Alert>(Query::new()).await?;
    assert_eq!(alerts.len(), 1);
    assert!(alerts[0].cause.starts_with("dead-letter/") && alerts[0].message == told[0]);
    assert_eq!(deaths(&world).await?, Vec::<u32>::new());
    // Who decides about the letter needs the alert no more.
    let letters = world.services.bus.dead_letters();
    letters.discard(&dead[0].key, "given up".to_owned()).await?;
    assert_eq!(world.services.store.count::<Alert>(Query::new()).await?, 0);
    world.close().await
}

/// Emits one more event about `subject`.
async fn again(world: &FrameWorld, subject: &Subject) -> anyhow::Result<()> {
    let mut context = world.context("cli")?;
    // Each start seeds its ids alike, on a clock that stands still: they would be those of the events before.
    context.ids = Ids::system(context.clock.clone());
    let payload = BuildRequest {
        build_id: BuildId(context.ids.next()),
        requested_by: "pat".to_owned(),
        reason: None,
    };
    let mut changes = ChangeSet::new();
    changes.emit(context.event(subject.clone(), Payload::BuildPause(payload)));
    world.services.store.commit(changes).await?;
    Ok(())
}

#[tokio::test]
async fn a_start_that_is_killed_while_it_waits_acquits_and_an_orderly_stop_charges_nothing()
-> anyhow::Result<()> {
    let program = Program::new()?;
    let (world, _) = program.start(&[]).await?;
    let subject = emit(&world).await?;
    world.settle().await?;
    world.close().await?;
    let keeps = [subject.clone()];
    let (world, _) = program.start(&keeps).await?;
    again(&world, &subject).await?;
    world.abort().await?;
    for _ in 0..2 {
        program.die_of(&keeps).await?;
    }
    // Nothing is handed out before the clock has moved.
    let (world, record) = program.start(&keeps).await?;
    assert_eq!(deaths(&world).await?, [2]);
    world
        .until("the wait", || async {
            let noted = fs::read_to_string(program.notes())?;
            Ok(noted.contains("0 nothing").then_some(()))
        })
        .await?;
    assert!(look(&record).holds.is_empty());
    program.kill(world).await?;

    let (world, record) = program.start(&keeps).await?;
    assert_eq!(deaths(&world).await?, Vec::<u32>::new());
    world
        .until("the handler", || async {
            Ok((look(&record).holds.len() == 1).then_some(()))
        })
        .await?;
    world.abort().await?;

    let (world, record) = program.start(&[]).await?;
    assert_eq!(deaths(&world).await?, Vec::<u32>::new());
    world.settle().await?;
    assert_eq!(look(&record).done.len(), 1);
    let done = world.services.bus.dead_letters().list(10).await?;
    assert!(done.iter().all(|row| row.state != DeliveryState::Dead));
    world.close().await
}
