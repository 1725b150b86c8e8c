//! A store with tasks, locks and waits.

use std::time::Duration;

use anyhow::{Context as _, Result};
use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_coordination::deadlock;
use ropewalk_coordination::locks::{self, LockRequest};
use ropewalk_runtime::{Clock, Ids};
use ropewalk_schemas::attempt::{Attempt, AttemptState};
use ropewalk_schemas::lease::{Holder, Lease};
use ropewalk_schemas::task::{Action, Task, TaskBlock, TaskState, Validation};
use ropewalk_schemas::wait::{Party, Resource, Wait};
use ropewalk_schemas::{
    BuildId, CommitId, ComponentName, Event, Payload, Priority, RepoPath, Subject, TaskId,
};
use ropewalk_store::{ChangeSet, CommitError, EventFilter, Location, Query, Store, Versioned};
use tempfile::TempDir;
use uuid::Uuid;

pub(crate) struct World {
    _directory: TempDir,
    location: Location,
    pub(crate) store: Store,
    ids: Ids,
}

impl World {
    pub(crate) async fn new() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let location = Location::Sqlite(directory.path().join("ropewalk.db"));
        Ok(Self {
            store: Store::open(&location, Clock::system()).await?,
            location,
            ids: Ids::system(Clock::system()),
            _directory: directory,
        })
    }

    /// Opens the same database once more, as another process does.
    pub(crate) async fn other(&self) -> Result<Self> {
        Ok(Self {
            store: Store::open(&self.location, Clock::system()).await?,
            location: self.location.clone(),
            ids: Ids::system(Clock::system()),
            _directory: tempfile::tempdir()?,
        })
    }

    pub(crate) fn announce(&self, subject: Subject, payload: Payload) -> Event {
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

    pub(crate) async fn take(
        &self,
        number: u128,
        files: &[&str],
    ) -> Result<Result<i64, CommitError>> {
        let request = request(number, files)?;
        let mut changes = ChangeSet::new();
        locks::acquire(&mut changes, &request, at(0));
        match self.store.commit(changes).await {
            Ok(committed) => Ok(Ok(committed.token.context("no token")?)),
            Err(error) => Ok(Err(error)),
        }
    }

    pub(crate) async fn held(&self, number: u128) -> Result<Vec<Versioned<Lease>>> {
        Ok(locks::held_by(&self.store, Uuid::from_u128(number).into()).await?)
    }

    /// Stores a task with a priority, as the detector asks for it.
    pub(crate) async fn task(&self, number: u128, priority: u8) -> Result<()> {
        let Party::Task { build, task } = party(number) else {
            unreachable!("a task")
        };
        let mut changes = ChangeSet::new();
        let file = RepoPath::parse("a.ts")?;
        let check = Validation::passes("true");
        let block = TaskBlock {
            priority: Some(priority),
            ..TaskBlock::new(task, "code", Action::Update, file, check)
        };
        changes.insert(&Task {
            state: TaskState::Working,
            attempts: 1,
            ..Task::planned(build, 1, block)
        });
        self.store.commit(changes).await?;
        Ok(())
    }

    /// Stores that an attempt at a task gave way.
    pub(crate) async fn gave_way(&self, number: u128, attempt: u32) -> Result<()> {
        let mut changes = ChangeSet::new();
        changes.insert(&Attempt {
            id: self.ids.next().into(),
            build: build(),
            task: task_id(number),
            number: attempt,
            round: 1,
            tries: Vec::new(),
            loop_name: name(),
            state: AttemptState::Interrupted,
            token: 0,
            base: CommitId::parse(&"0".repeat(40))?,
            candidate: None,
            preserve_ref: None,
            granted: Vec::new(),
            gotchas: Vec::new(),
            failure: None,
            summary: None,
            tokens: 0,
            started_at: at(0),
            ended_at: Some(at(1)),
        });
        self.store.commit(changes).await?;
        Ok(())
    }

    /// Gives back everything that a task holds.
    pub(crate) async fn release(&self, number: u128) -> Result<()> {
        let held = self.held(number).await?;
        let announce = |subject, payload| self.announce(subject, payload);
        let mut changes = ChangeSet::new();
        locks::release(&mut changes, &held, &announce);
        self.store.commit(changes).await?;
        Ok(())
    }

    pub(crate) async fn wait(&self, waits: &[Wait]) -> Result<Option<deadlock::Deadlock>> {
        let announce = |subject, payload| self.announce(subject, payload);
        Ok(deadlock::wait(&self.store, &ChangeSet::new(), waits, at(9), &announce).await?)
    }

    pub(crate) async fn events(&self, event_type: &str) -> Result<Vec<Event>> {
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

    pub(crate) async fn waits(&self) -> Result<Vec<Versioned<Wait>>> {
        Ok(self.store.list(Query::new()).await?)
    }
}

pub(crate) fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
}

fn name() -> ComponentName {
    ComponentName::parse("build").unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn build() -> BuildId {
    Uuid::from_u128(1).into()
}

pub(crate) fn task_id(number: u128) -> TaskId {
    TaskId::parse(&format!("T-{number:03}")).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn party(number: u128) -> Party {
    Party::Task {
        build: build(),
        task: task_id(number),
    }
}

pub(crate) fn request(number: u128, files: &[&str]) -> Result<LockRequest> {
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

pub(crate) fn lease_wait(waiter: u128, file: &str, holder: u128) -> Result<Wait> {
    Ok(Wait {
        waiter: party(waiter),
        resource: Resource::Lease {
            path: RepoPath::parse(file)?,
        },
        holder: Some(party(holder)),
        since: at(1),
    })
}
