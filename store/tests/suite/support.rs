//! Opens stores in a temporary directory and makes records and events.

use std::path::PathBuf;

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_runtime::{Clock, Ids};
use ropewalk_schemas::lease::{Holder, Lease, LeaseState};
use ropewalk_schemas::payload::{TaskRetry, TaskSkipped};
use ropewalk_schemas::timer::Timer;
use ropewalk_schemas::{
    AttemptId, BuildId, ComponentName, CorrelationId, Event, EventId, Payload, Priority, RepoPath,
    Slug, Subject, TaskId, TimerId,
};
use ropewalk_store::{ChangeSet, Location, Store, Subscription};
use tempfile::TempDir;

/// A directory with a database, a clock that stands still and ids that repeat.
pub(crate) struct Bench {
    pub(crate) directory: TempDir,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let clock = Clock::manual(start());
        Self {
            directory: tempfile::tempdir().unwrap(),
            ids: Ids::seeded(1, clock.clone()),
            clock,
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("ropewalk.db")
    }

    /// Opens a store on the file; each call stands for another process.
    pub(crate) async fn open(&self) -> Store {
        Store::open(&Location::Sqlite(self.path()), self.clock.clone())
            .await
            .unwrap()
    }

    pub(crate) fn timer(&self, name: &str) -> Timer {
        Timer {
            id: TimerId(self.ids.next()),
            name: name.to_owned(),
            target: "task/x".to_owned(),
            due: self.clock.now() + TimeDelta::minutes(5),
            cron: None,
            correlation_id: CorrelationId(self.ids.next()),
        }
    }

    /// Makes a `task.skipped` about `subject`.
    pub(crate) fn skipped(&self, subject: &str, reason: &str) -> Event {
        self.event(
            subject,
            Payload::TaskSkipped(TaskSkipped {
                build_id: BuildId(self.ids.next()),
                task_id: TaskId::parse("T-1").unwrap(),
                idea_slug: Slug::parse("habits").unwrap(),
                skipped_by: "ada".to_owned(),
                reason: reason.to_owned(),
            }),
        )
    }

    /// Makes a `task.retry` about `subject`.
    pub(crate) fn retry(&self, subject: &str) -> Event {
        self.event(
            subject,
            Payload::TaskRetry(TaskRetry {
                build_id: BuildId(self.ids.next()),
                task_id: TaskId::parse("T-1").unwrap(),
                guidance: None,
                requested_by: "ada".to_owned(),
            }),
        )
    }

    fn event(&self, subject: &str, payload: Payload) -> Event {
        Event {
            id: EventId(self.ids.next()),
            source: name("loop-1"),
            subject: Subject::parse(subject).unwrap(),
            time: self.clock.now(),
            correlation_id: CorrelationId(self.ids.next()),
            causation_id: None,
            hop: 0,
            traceparent: None,
            priority: Priority::DEFAULT,
            payload,
        }
    }

    pub(crate) fn holder(&self) -> Holder {
        Holder {
            build: BuildId(self.ids.next()),
            task: TaskId::parse("T-1").unwrap(),
            attempt: AttemptId(self.ids.next()),
            loop_name: name("loop-1"),
        }
    }

    pub(crate) fn lease(&self, file: &str, holder: &Holder) -> Lease {
        Lease {
            path: path(file),
            holder: holder.clone(),
            state: LeaseState::Granted,
            token: 0,
            renewals: 0,
            ttl_ms: 60_000,
            reason: "declared".to_owned(),
            granted_at: self.clock.now(),
        }
    }
}

pub(crate) fn start() -> DateTime<Utc> {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

pub(crate) fn name(text: &str) -> ComponentName {
    ComponentName::parse(text).unwrap()
}

pub(crate) fn path(text: &str) -> RepoPath {
    RepoPath::parse(text).unwrap()
}

/// Makes a change set of what `fill` adds.
pub(crate) fn changes(fill: impl FnOnce(&mut ChangeSet) -> &mut ChangeSet) -> ChangeSet {
    let mut changes = ChangeSet::new();
    fill(&mut changes);
    changes
}

pub(crate) fn subscription(subscriber: &str, types: &[&str]) -> Subscription {
    Subscription::new(name(subscriber), types.iter().copied())
}
