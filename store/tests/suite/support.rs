//! Opens stores on each kind of database and makes records and events.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_runtime::{Clock, Ids};
use ropewalk_schemas::lease::{Holder, Lease, LeaseState};
use ropewalk_schemas::notice::{Notice, NoticeState, NoticeText};
use ropewalk_schemas::payload::{TaskRetry, TaskSkipped};
use ropewalk_schemas::timer::Timer;
use ropewalk_schemas::{
    AttemptId, BuildId, ComponentName, CorrelationId, Event, EventId, Payload, Priority, RepoPath,
    Slug, Subject, TaskId, TimerId,
};
use ropewalk_store::{ChangeSet, Location, Store, Subscription};
use ropewalk_tests::servers::PostgresServer;
use sqlx::migrate::Migrator;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqliteConnection};
use tempfile::TempDir;

/// Runs each test, a function of a [`Bench`], on each kind of database.
macro_rules! on_each_database {
    ($($test:ident),+ $(,)?) => { $(
        mod $test {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_sqlite() {
                super::$test(crate::support::Bench::new()).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_postgres() {
                super::$test(crate::support::Bench::postgres().await).await;
            }
        }
    )+ };
}

/// A database of its own, a clock that stands still and ids that repeat.
pub(crate) struct Bench {
    pub(crate) directory: TempDir,
    pub(crate) location: String,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
}

/// Counts the schemas of this run.
static SCHEMAS: AtomicUsize = AtomicUsize::new(1);

impl Bench {
    /// Returns a bench with a file that is not there yet.
    pub(crate) fn new() -> Self {
        let clock = Clock::manual(start());
        let directory = tempfile::tempdir().unwrap();
        Self {
            location: format!("sqlite:{}", directory.path().join("ropewalk.db").display()),
            directory,
            ids: Ids::seeded(1, clock.clone()),
            clock,
        }
    }

    /// Returns a bench with an empty schema on the server of this run.
    pub(crate) async fn postgres() -> Self {
        let server = PostgresServer::shared().unwrap();
        Self::on(&server.url()).await
    }

    /// Returns a bench with an empty schema on a server.
    pub(crate) async fn on(url: &str) -> Self {
        let schema = format!("bench_{}", SCHEMAS.fetch_add(1, Ordering::Relaxed));
        let mut connection = PgConnection::connect(url).await.unwrap();
        let create = format!("CREATE SCHEMA {schema}");
        connection.execute(AssertSqlSafe(create)).await.unwrap();
        connection.close().await.unwrap();
        Self {
            location: format!("{url}?options=-c%20search_path%3D{schema}"),
            ..Self::new()
        }
    }

    /// Returns where the file is, or would be.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("ropewalk.db")
    }

    /// Returns whether large data lies in files; a server keeps it in a table.
    pub(crate) fn has_files(&self) -> bool {
        self.location.starts_with("sqlite:")
    }

    pub(crate) fn location(&self) -> Location {
        Location::parse(&self.location, self.directory.path()).unwrap()
    }

    /// Opens a store on the database; each call stands for another process.
    pub(crate) async fn open(&self) -> Store {
        Store::open(&self.location(), self.clock.clone())
            .await
            .unwrap()
    }

    /// Makes the tables as they were up to a version, in a database that has none.
    pub(crate) async fn make_tables(&self, version: i64) {
        let before = |mut steps: Migrator| {
            let old = steps.iter().filter(|step| step.version <= version);
            steps.migrations = Cow::Owned(old.cloned().collect());
            steps
        };
        if self.has_files() {
            let mut raw = self.raw_file().await;
            let steps = before(sqlx::migrate!("./migrations/sqlite"));
            steps.run(&mut raw).await.unwrap();
            raw.close().await.unwrap();
        } else {
            let mut raw = PgConnection::connect(&self.location).await.unwrap();
            let steps = before(sqlx::migrate!("./migrations/postgres"));
            steps.run(&mut raw).await.unwrap();
            raw.close().await.unwrap();
        }
    }

    /// Runs statements past the store.
    pub(crate) async fn run(&self, sql: &str) {
        let sql = AssertSqlSafe(sql.to_owned());
        if self.has_files() {
            let mut raw = self.raw_file().await;
            raw.execute(sql).await.unwrap();
            raw.close().await.unwrap();
        } else {
            let mut raw = PgConnection::connect(&self.location).await.unwrap();
            raw.execute(sql).await.unwrap();
            raw.close().await.unwrap();
        }
    }

    /// Lays a row past the store, as an earlier version of the program left it: `columns` are those that this table had beside
    /// the key, the version and the body.
    pub(crate) async fn lay(&self, table: &str, key: &str, columns: &[(&str, &str)], body: &str) {
        let fixed = [("key", key), ("version", "1"), ("body", body)];
        let row = || fixed.iter().chain(columns);
        let names: Vec<&str> = row().map(|(name, _)| *name).collect();
        // Each database reads the digits of a number in a text.
        let values = row().map(|(_, value)| format!("'{}'", value.replace('\'', "''")));
        let values: Vec<String> = values.collect();
        let (names, values) = (names.join(", "), values.join(", "));
        self.run(&format!("INSERT INTO {table} ({names}) VALUES ({values})"))
            .await;
    }

    async fn raw_file(&self) -> SqliteConnection {
        let made = format!("{}?mode=rwc", self.location);
        SqliteConnection::connect(&made).await.unwrap()
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
                may_resume: false,
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

    pub(crate) fn notice(&self, nonce: &str) -> Notice {
        Notice {
            key: "telegram 1 ada".to_owned(),
            port: "telegram".to_owned(),
            receiver: "ada".to_owned(),
            event_type: "question.asked".to_owned(),
            subject: Subject::parse("task/b/T-1").unwrap(),
            question: None,
            text: NoticeText::default(),
            urgent: false,
            state: NoticeState::Waiting,
            outdated: false,
            nonce: nonce.to_owned(),
            messages: Vec::new(),
            earlier: Vec::new(),
            pieces: 0,
            tries: 0,
            repeats: 0,
            error: None,
            due: self.clock.now(),
            created_at: self.clock.now(),
            sent_at: None,
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
