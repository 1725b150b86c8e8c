//! The lock of a database on a server outlives the sessions that hold it, or the process that had it commits no more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ropewalk_store::{CommitError, EventFilter, Instance, InstanceLock, InstanceLockError, Store};
use ropewalk_tests::servers::PostgresServer;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Row};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::support::{Bench, changes};

/// Long enough for anything that is going to happen.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long whoever met a stranger rests before it looks again.
const REST: Duration = Duration::from_millis(250);

/// Which locks of the schema say that somebody consumes.
const HELD: &str = "locktype = 'advisory' AND granted AND classid::bigint = x'726f0003'::bigint";

/// A process that consumes.
struct Process {
    lock: InstanceLock,
    store: Store,
    state: Arc<TempDir>,
}

impl Process {
    /// Starts one with a state directory of its own.
    async fn start(bench: &Bench, instance: Instance) -> Result<Self, InstanceLockError> {
        let state = Arc::new(tempfile::tempdir().unwrap());
        Self::start_in(state, bench, instance).await
    }

    async fn start_in(
        state: Arc<TempDir>,
        bench: &Bench,
        instance: Instance,
    ) -> Result<Self, InstanceLockError> {
        let location = bench.location();
        let mut lock = InstanceLock::acquire_for(&location, state.path(), instance).await?;
        let opened = Store::open_holding(&location, bench.clock.clone(), &mut lock).await;
        Ok(Self {
            lock,
            store: opened.unwrap(),
            state,
        })
    }

    async fn commit(&self, bench: &Bench) -> Result<(), CommitError> {
        let event = bench.retry("task/b/T-1");
        self.store
            .commit(changes(|c| c.emit(event)))
            .await
            .map(drop)
    }
}

/// Counts what a statement finds.
async fn count(url: &str, sql: &str) -> i64 {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let row = connection
        .fetch_one(AssertSqlSafe(format!("SELECT COUNT(*) FROM {sql}")))
        .await
        .unwrap();
    connection.close().await.unwrap();
    row.get(0)
}

async fn until_found(url: &str, sql: &str) {
    let found = async {
        while count(url, sql).await == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let found = tokio::time::timeout(PATIENCE, found).await;
    assert!(found.is_ok(), "no {sql}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_restarted_lets_nobody_else_in_once_it_is_reached_again() {
    for instance in [Instance::Alone, Instance::Sharing] {
        let mut server = PostgresServer::start().unwrap();
        let bench = Bench::on(&server.url()).await;
        let first = Process::start(&bench, instance).await.unwrap();
        let restart = tokio::task::spawn_blocking(move || {
            server.restart().unwrap();
            server
        });
        let server = restart.await.unwrap();
        // It does not wait for something to commit.
        until_found(&server.url(), &format!("pg_locks WHERE {HELD}")).await;
        let refused = Process::start(&bench, Instance::Alone).await.err();
        assert!(
            matches!(refused, Some(InstanceLockError::Taken { .. })),
            "{instance:?}: {refused:?}"
        );
        let apart = Process::start(&bench, Instance::Sharing).await.err();
        let is_refused = match instance {
            Instance::Alone => matches!(apart, Some(InstanceLockError::Taken { .. })),
            Instance::Sharing => matches!(apart, Some(InstanceLockError::Apart { .. })),
        };
        assert!(is_refused, "{instance:?}: {apart:?}");
        let state = Arc::clone(&first.state);
        let beside = Process::start_in(state, &bench, Instance::Sharing).await;
        assert_eq!(beside.is_ok(), instance == Instance::Sharing);
        first.commit(&bench).await.unwrap();
        assert!(first.lock.taken().is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_was_overtaken_is_told_and_never_commits_again() {
    let server = PostgresServer::start().unwrap();
    let bench = Bench::on(&server.url()).await;
    let first = Process::start(&bench, Instance::Alone).await.unwrap();
    first.commit(&bench).await.unwrap();

    // The other one stands in line, so that the end of the session makes it the next.
    let mut other = PgConnection::connect(&bench.location).await.unwrap();
    let mut waiting = JoinSet::new();
    waiting.spawn(async move {
        let take = "SELECT pg_advisory_lock(x'726f0003'::int, hashtext(current_schema()))";
        other.execute(take).await.unwrap();
        other
    });
    let line = "pg_locks WHERE locktype = 'advisory' AND NOT granted";
    until_found(&server.url(), line).await;
    let end = format!("(SELECT pg_terminate_backend(pid) FROM pg_locks WHERE {HELD}) AS ended");
    assert_eq!(count(&server.url(), &end).await, 1);
    let other = waiting.join_next().await.unwrap().unwrap();

    let told = tokio::time::timeout(PATIENCE, async {
        // A session that ends alone is noticed by who uses it.
        let refused = first.commit(&bench).await;
        first.lock.lost().await;
        refused
    });
    let refused = told.await.unwrap();
    assert!(
        matches!(refused, Err(CommitError::Superseded(_))),
        "{refused:?}"
    );
    let lost = first.lock.taken().unwrap();
    assert!(matches!(lost, InstanceLockError::Lost { .. }), "{lost}");
    // What it knows is old by now, even when the other one has gone.
    other.close().await.unwrap();
    let refused = first.commit(&bench).await;
    assert!(
        matches!(refused, Err(CommitError::Superseded(_))),
        "{refused:?}"
    );
    let events = bench.open().await.events(&EventFilter::default()).await;
    assert_eq!(events.unwrap().len(), 1);
}

/// Has the lock as whoever shares it from another state directory.
async fn stranger(bench: &Bench) -> PgConnection {
    let mut stranger = PgConnection::connect(&bench.location).await.unwrap();
    let take = "SELECT set_config('application_name', 'ropewalk 1/another', false), \
                pg_advisory_lock_shared(x'726f0003'::int, hashtext(current_schema()))";
    stranger.execute(take).await.unwrap();
    stranger
}

/// Lets a stranger go, and another one stay; false where the first took so long to go that it may have been met twice.
async fn only_who_stays_ends_those_who_share() -> bool {
    let server = PostgresServer::start().unwrap();
    let bench = Bench::on(&server.url()).await;
    let first = Process::start(&bench, Instance::Sharing).await.unwrap();
    first.commit(&bench).await.unwrap();
    let end = format!(
        "(SELECT pg_terminate_backend(pid) FROM pg_stat_activity JOIN pg_locks USING (pid) \
         WHERE {HELD} AND application_name NOT LIKE '%/another') AS ended"
    );

    // Whoever is refused has the lock until it has seen who else does.
    let mut other = stranger(&bench).await;
    let began = Instant::now();
    assert_eq!(count(&server.url(), &end).await, 1);
    let goes = async {
        // Long enough for one look at it, and not for two.
        tokio::time::sleep(REST / 5).await;
        let let_go = "SELECT pg_advisory_unlock_all()";
        other.execute(let_go).await.unwrap();
        began.elapsed() < REST
    };
    let (committed, went_in_time) = tokio::join!(first.commit(&bench), goes);
    if !went_in_time {
        return false;
    }
    committed.unwrap();
    other.close().await.unwrap();
    assert!(first.lock.taken().is_none());

    let other = stranger(&bench).await;
    assert_eq!(count(&server.url(), &end).await, 1);
    let refused = tokio::time::timeout(PATIENCE, first.commit(&bench)).await;
    let refused = refused.unwrap();
    assert!(
        matches!(refused, Err(CommitError::Superseded(_))),
        "{refused:?}"
    );
    assert!(first.lock.taken().is_some());
    other.close().await.unwrap();
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_another_state_directory_ends_those_who_share_only_by_staying() {
    // A machine that stands still for a moment proves nothing of a stranger who goes.
    let proof = async { while !Box::pin(only_who_stays_ends_those_who_share()).await {} };
    tokio::time::timeout(3 * PATIENCE, proof).await.unwrap();
}

/// A road to a server which the server does not see the end of.
struct Road {
    url: String,
    forget: Arc<Notify>,
    _tasks: JoinSet<()>,
}

impl Road {
    async fn build(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let forget = Arc::new(Notify::new());
        let forgets = Arc::clone(&forget);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut travellers = JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                let mut server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                let forgets = Arc::clone(&forgets);
                travellers.spawn(async move {
                    let forgotten = tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => false,
                        () = forgets.notified() => true,
                    };
                    drop(client);
                    if forgotten {
                        std::future::pending::<()>().await;
                    }
                    drop(server);
                });
            }
        });
        Self {
            url: format!("postgres://ropewalk@127.0.0.1:{port}/postgres"),
            forget,
            _tasks: tasks,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_the_server_keeps_for_nobody_does_not_keep_its_own_process_out() {
    let server = PostgresServer::start().unwrap();
    let road = Road::build(server.port()).await;
    let bench = Bench::on(&road.url).await;
    let first = Process::start(&bench, Instance::Alone).await.unwrap();
    first.commit(&bench).await.unwrap();
    road.forget.notify_waiters();
    first.commit(&bench).await.unwrap();
    assert!(first.lock.taken().is_none());
    let held = format!("pg_locks WHERE {HELD}");
    assert_eq!(count(&server.url(), &held).await, 1);
    let refused = Process::start(&bench, Instance::Alone).await.err();
    assert!(matches!(refused, Some(InstanceLockError::Taken { .. })));
}
