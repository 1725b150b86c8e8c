//! Locks, ownership and rings of waits on a real store.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_bus::judge::Judge;
use ropewalk_bus::locks::{self, LockRequest};
use ropewalk_bus::{deadlock, ownership};
use ropewalk_runtime::{Clock, Ids};
use ropewalk_schemas::alert::Alert;
use ropewalk_schemas::lease::{Holder, Lease, LeaseState};
use ropewalk_schemas::payload::DeadlockDetected;
use ropewalk_schemas::task::{Action, Expectation, Task, TaskBlock, TaskState, Validation};
use ropewalk_schemas::wait::{Party, Resource, Wait};
use ropewalk_schemas::{
    BuildId, ComponentName, Event, Payload, Priority, RepoPath, Subject, TaskId,
};
use ropewalk_store::{
    ChangeSet, CommitError, EventFilter, Location, Query, Store, Versioned, path_key,
};
use tempfile::TempDir;
use uuid::Uuid;

struct World {
    _directory: TempDir,
    location: Location,
    store: Store,
    ids: Ids,
}

impl World {
    async fn new() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let location = Location::Sqlite(directory.path().join("ropewalk.db"));
        Ok(Self {
            store: Store::open(&location, Clock::system()).await?,
            location,
            ids: Ids::system(Clock::system()),
            _directory: directory,
        })
    }

    fn announce(&self, subject: Subject, payload: Payload) -> Event {
        Event {
            id: self.ids.next().into(),
            source: name(),
            subject,
            time: at(0),
            correlation_id: self.ids.next().into(),
            causation_id: None,
            hop: 0,
            traceparent: None,
            priority: Priority::DEFAULT,
            payload,
        }
    }

    async fn take(&self, number: u128, files: &[&str]) -> Result<Result<i64, CommitError>> {
        let request = request(number, files)?;
        let mut changes = ChangeSet::new();
        locks::acquire(&mut changes, &request, at(0));
        match self.store.commit(changes).await {
            Ok(committed) => Ok(Ok(committed.token.context("no token")?)),
            Err(error) => Ok(Err(error)),
        }
    }

    async fn held(&self, number: u128) -> Result<Vec<Versioned<Lease>>> {
        Ok(locks::held_by(&self.store, Uuid::from_u128(number).into()).await?)
    }

    /// Stores a task with a priority, as the detector asks for it.
    async fn task(&self, number: u128, priority: u8) -> Result<()> {
        let Party::Task { build, task } = party(number) else {
            unreachable!("a task")
        };
        let mut changes = ChangeSet::new();
        changes.insert(&Task {
            build,
            id: task.clone(),
            number: 1,
            block: TaskBlock {
                id: task,
                phase: "code".to_owned(),
                action: Action::Update,
                file: RepoPath::parse("a.ts")?,
                more_files: Vec::new(),
                requirements: Vec::new(),
                gotchas: Vec::new(),
                validation: Validation {
                    command: "true".to_owned(),
                    expected: Expectation::ExitZero,
                },
                code_template: None,
                depends_on: Vec::new(),
                priority: Some(priority),
                estimate_minutes: None,
                notes: None,
            },
            state: TaskState::Working,
            reason: None,
            waiting_for: None,
            question: None,
            blocked_by: Vec::new(),
            attempts: 1,
            tries: 0,
            installs: 0,
            rebases: 0,
            failures: Vec::new(),
            guidance: Vec::new(),
            not_before: None,
            assigned_to: None,
            attempt: None,
            cause: None,
            resume_from: None,
            commit: None,
            claimed_at: None,
            progress_at: None,
            completed_at: None,
        });
        self.store.commit(changes).await?;
        Ok(())
    }

    async fn wait(&self, waits: &[Wait]) -> Result<Option<deadlock::Deadlock>> {
        let announce = |subject, payload| self.announce(subject, payload);
        Ok(deadlock::wait(&self.store, &ChangeSet::new(), waits, at(9), &announce).await?)
    }

    async fn events(&self, event_type: &str) -> Result<Vec<Event>> {
        let filter = EventFilter {
            pattern: Some(ropewalk_schemas::EventPattern::of(event_type)),
            ..EventFilter::default()
        };
        let stored = self.store.events(&filter).await?;
        stored
            .into_iter()
            .map(|stored| Ok(Event::try_from(stored.event.as_ref())?))
            .collect()
    }

    async fn waits(&self) -> Result<Vec<Versioned<Wait>>> {
        Ok(self.store.list(Query::new()).await?)
    }
}

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
}

fn name() -> ComponentName {
    ComponentName::parse("build").unwrap_or_else(|error| panic!("{error}"))
}

fn build() -> BuildId {
    Uuid::from_u128(1).into()
}

fn task_id(number: u128) -> TaskId {
    TaskId::parse(&format!("T-{number:03}")).unwrap_or_else(|error| panic!("{error}"))
}

fn party(number: u128) -> Party {
    Party::Task {
        build: build(),
        task: task_id(number),
    }
}

fn request(number: u128, files: &[&str]) -> Result<LockRequest> {
    Ok(LockRequest {
        holder: Holder {
            build: build(),
            task: task_id(number),
            attempt: Uuid::from_u128(number).into(),
            loop_name: ComponentName::parse(&format!("loop-{number}"))?,
        },
        files: files
            .iter()
            .map(|file| RepoPath::parse(file))
            .collect::<Result<_, _>>()?,
        ttl: Duration::from_millis(300),
        reason: "test".to_owned(),
        since: at(0),
    })
}

fn lease_wait(waiter: u128, file: &str, holder: u128) -> Result<Wait> {
    Ok(Wait {
        waiter: party(waiter),
        resource: Resource::Lease {
            path: RepoPath::parse(file)?,
        },
        holder: Some(party(holder)),
        since: at(1),
    })
}

#[tokio::test]
async fn of_five_simultaneous_takers_exactly_one_wins_and_nobody_holds_half_a_set() -> Result<()> {
    let world = World::new().await?;
    let sets = [["a", "b"], ["b", "c"], ["a", "c"], ["c", "a"], ["b", "a"]];
    let takers = (1_u128..)
        .zip(&sets)
        .map(|(number, files)| world.take(number, files));
    let results = futures::future::try_join_all(takers).await?;
    let won = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(won, 1, "{results:?}");
    for result in results.iter().filter_map(|result| result.as_ref().err()) {
        ensure!(matches!(result, CommitError::Held { .. }), "{result}");
    }
    assert_eq!(locks::all_held(&world.store).await?.len(), 2);
    Ok(())
}

#[tokio::test]
async fn a_holder_may_take_again_and_nobody_else_may_release() -> Result<()> {
    let world = World::new().await?;
    let first = world.take(1, &["src/a.rs"]).await??;
    let again = world.take(1, &["SRC/A.rs", "src/b.rs"]).await??;
    ensure!(again > first);
    let mine = world.held(1).await?;
    assert_eq!(mine.len(), 2);
    let mut foreign = ChangeSet::new();
    foreign.release(&RepoPath::parse("src/a.rs")?, first);
    let refused = world.store.commit(foreign).await;
    ensure!(
        matches!(refused, Err(CommitError::Fenced { .. })),
        "{refused:?}"
    );

    let announce = |subject, payload| world.announce(subject, payload);
    let mut changes = ChangeSet::new();
    locks::release(&mut changes, &mine, &announce);
    world.store.commit(changes).await?;
    ensure!(world.held(1).await?.is_empty());
    let released = world.events("lock.released").await?;
    let Some(Payload::LockReleased(released)) = released.first().map(|event| &event.payload) else {
        anyhow::bail!("{released:?}")
    };
    assert_eq!(released.files.len(), 2);
    Ok(())
}

#[tokio::test]
async fn a_lease_that_nobody_renews_expires_and_its_late_landing_is_fenced() -> Result<()> {
    let world = World::new().await?;
    let announce = |subject, payload| world.announce(subject, payload);
    let token = world.take(1, &["a"]).await??;
    let mut judge = Judge::new();
    let looks = |ms| Duration::from_millis(ms);
    ensure!(judge.observe(&world.held(1).await?, looks(0)).is_empty());
    let mut changes = ChangeSet::new();
    locks::renew(&mut changes, &world.held(1).await?);
    world.store.commit(changes).await?;
    let seen = world.held(1).await?;
    ensure!(
        judge.observe(&seen, looks(300)).is_empty(),
        "it was renewed"
    );
    let dead = judge.observe(&seen, looks(600));
    assert_eq!(dead.len(), 1);

    // A renewal between the look and the sentence saves it.
    let mut renewal = ChangeSet::new();
    locks::renew(&mut renewal, &seen);
    world.store.commit(renewal).await?;
    let mut sentence = ChangeSet::new();
    locks::expire(&mut sentence, &dead, &announce);
    let saved = world.store.commit(sentence).await;
    ensure!(
        matches!(saved, Err(CommitError::Conflict { .. })),
        "{saved:?}"
    );

    let frozen = world.held(1).await?;
    ensure!(judge.observe(&frozen, looks(700)).is_empty());
    let mut sentence = ChangeSet::new();
    locks::expire(
        &mut sentence,
        &judge.observe(&frozen, looks(1_000)),
        &announce,
    );
    world.store.commit(sentence).await?;
    let key = path_key(&RepoPath::parse("a")?);
    let lease = world.store.get::<Lease>(&key).await?.context("gone")?;
    assert_eq!(lease.state, LeaseState::Expired);
    let next = world.take(2, &["a"]).await??;
    ensure!(next > token);
    let mut landing = ChangeSet::new();
    locks::fence(&mut landing, &frozen);
    let late = world.store.commit(landing).await;
    ensure!(matches!(late, Err(CommitError::Fenced { .. })), "{late:?}");
    assert_eq!(world.events("lock.revoked").await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_ring_of_two_is_broken_when_its_second_edge_appears() -> Result<()> {
    let world = World::new().await?;
    world.task(1, 1).await?;
    world.task(2, 2).await?;
    world.take(1, &["a.ts"]).await??;
    world.take(2, &["b.ts"]).await??;
    assert_eq!(world.wait(&[lease_wait(1, "b.ts", 2)?]).await?, None);
    assert_eq!(world.waits().await?.len(), 1);

    let found = world
        .wait(&[lease_wait(2, "a.ts", 1)?])
        .await?
        .context("no ring")?;
    assert_eq!(found.victim, Some(party(2)));
    ensure!(
        world.held(2).await?.is_empty(),
        "the victim's locks are free"
    );
    assert_eq!(world.held(1).await?.len(), 1);
    let waits = world.waits().await?;
    assert_eq!(waits.len(), 1, "only the survivor still waits");
    assert_eq!(waits[0].waiter, party(1));
    let alerts = world.events("alert.deadlock").await?;
    let [alert] = &alerts[..] else {
        anyhow::bail!("one alert, not {alerts:?}")
    };
    let expected = DeadlockDetected {
        cycle: vec![party(1).to_string(), party(2).to_string()],
        victim: Some(party(2).to_string()),
        resolved: true,
    };
    assert_eq!(alert.payload, Payload::DeadlockDetected(expected));
    let revoked = world.events("lock.revoked").await?;
    assert_eq!(revoked.len(), 1, "the victim's attempt is told");
    let record = world.store.get::<Alert>(&found.cause()).await?;
    ensure!(record.context("no record")?.cleared_at.is_some());
    world.take(1, &["b.ts"]).await??;
    Ok(())
}

#[tokio::test]
async fn two_halves_of_a_ring_added_at_once_are_found_and_one_gives_way() -> Result<()> {
    for _ in 0..10 {
        let world = World::new().await?;
        world.task(1, 1).await?;
        world.task(2, 2).await?;
        world.take(1, &["a"]).await??;
        world.take(2, &["b"]).await??;
        let other = World {
            store: Store::open(&world.location, Clock::system()).await?,
            location: world.location.clone(),
            ids: Ids::system(Clock::system()),
            _directory: tempfile::tempdir()?,
        };
        let (one, two) = ([lease_wait(1, "b", 2)?], [lease_wait(2, "a", 1)?]);
        let (first, second) = tokio::try_join!(world.wait(&one), other.wait(&two))?;
        ensure!(first.is_some() || second.is_some(), "nobody saw the ring");
        ensure!(deadlock::find_all(&world.store, at(9)).await?.is_empty());
        assert_eq!(world.events("alert.deadlock").await?.len(), 1);
        ensure!(world.held(2).await?.is_empty());
        assert_eq!(world.held(1).await?.len(), 1);
    }
    Ok(())
}

#[tokio::test]
async fn the_second_net_reports_a_ring_once_and_breaks_it_when_told_to() -> Result<()> {
    let world = World::new().await?;
    world.task(1, 1).await?;
    world.task(2, 2).await?;
    world.take(1, &["a"]).await??;
    world.take(2, &["b"]).await??;
    let mut unchecked = ChangeSet::new();
    unchecked
        .insert(&lease_wait(1, "b", 2)?)
        .insert(&lease_wait(2, "a", 1)?);
    world.store.commit(unchecked).await?;
    let announce = |subject, payload| world.announce(subject, payload);
    for _ in 0..2 {
        let rings = deadlock::find_all(&world.store, at(9)).await?;
        let [ring] = &rings[..] else {
            anyhow::bail!("one ring, not {rings:?}")
        };
        let mut changes = ChangeSet::new();
        ring.report(&mut changes, at(9), &announce);
        world.store.commit(changes).await?;
    }
    let alerts = world.events("alert.deadlock").await?;
    let [alert] = &alerts[..] else {
        anyhow::bail!("one alert, not {alerts:?}")
    };
    ensure!(
        matches!(&alert.payload, Payload::DeadlockDetected(found) if !found.resolved),
        "{alert:?}"
    );
    let rings = deadlock::find_all(&world.store, at(9)).await?;
    let mut changes = ChangeSet::new();
    rings[0].resolve(&mut changes, at(10), &announce);
    world.store.commit(changes).await?;
    ensure!(deadlock::find_all(&world.store, at(11)).await?.is_empty());
    assert_eq!(
        world.events("alert.deadlock").await?.len(),
        1,
        "no second alert"
    );
    Ok(())
}

#[tokio::test]
async fn a_file_has_one_owning_build_until_it_is_given_up() -> Result<()> {
    let world = World::new().await?;
    let files = [RepoPath::parse("types/session.ts")?];
    let other: BuildId = Uuid::from_u128(2).into();
    let claim = |build| {
        let mut changes = ChangeSet::new();
        ownership::claim(&mut changes, build, &files, &[], at(0));
        world.store.commit(changes)
    };
    claim(build()).await?;
    ensure!(matches!(
        claim(other).await,
        Err(CommitError::Conflict { .. })
    ));
    let owners = ownership::owners_of(&world.store, &files).await?;
    let decided = ownership::decide_all(other, &files, &owners);
    assert_eq!(decided[0].1, ownership::Access::Denied { owner: build() });

    let request = ownership::ChangeRequest {
        build: other,
        task: task_id(1),
        owner: build(),
        file: files[0].clone(),
        change: "add a field".to_owned(),
    };
    let announce = |subject, payload| world.announce(subject, payload);
    let mut changes = ChangeSet::new();
    request.file(&mut changes, &announce);
    world.store.commit(changes).await?;
    assert_eq!(world.wait(&[request.wait(at(1))]).await?, None);
    assert_eq!(world.events("change.requested").await?.len(), 1);

    let mut changes = ChangeSet::new();
    ownership::release(
        &mut changes,
        &ownership::owned_by(&world.store, build()).await?,
    );
    world.store.commit(changes).await?;
    claim(other).await?;
    Ok(())
}
