//! A connection breaks around a commit, on either side of it, or as it is made: what was asked for happens once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future;
use ropewalk_schemas::timer::Timer;
use ropewalk_store::{EventFilter, Query};
use ropewalk_tests::servers::PostgresServer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::support::{Bench, changes};

/// Where the connection breaks.
#[derive(Debug, Clone, Copy)]
enum Cut {
    /// The server ends as it is spoken to first.
    Greeting,
    /// The server never hears of the commit.
    Before,
    /// The server commits, and the answer is lost.
    After,
}

/// A road to the server that breaks.
struct Road {
    url: String,
    /// How often it is still to break.
    cuts: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Road {
    async fn build(cut: Cut) -> Self {
        let server = PostgresServer::shared().unwrap().port();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let cuts = Arc::new(AtomicUsize::new(0));
        let shared = Arc::clone(&cuts);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut travellers = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                if matches!(cut, Cut::Greeting) && shared.load(Ordering::Acquire) > 0 {
                    shared.fetch_sub(1, Ordering::AcqRel);
                    continue;
                }
                let server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                travellers.spawn(carry(client, server, cut, Arc::clone(&shared)));
            }
        });
        Self {
            url: format!("postgres://ropewalk@127.0.0.1:{port}/postgres"),
            cuts,
            _tasks: tasks,
        }
    }
}

/// Carries bytes both ways until one side ends or a commit is cut.
async fn carry(mut client: TcpStream, mut server: TcpStream, cut: Cut, cuts: Arc<AtomicUsize>) {
    let (mut asked, mut answered) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    loop {
        tokio::select! {
            Ok(length) = client.read(&mut asked) => {
                let bytes = &asked[..length];
                let commits = bytes.windows(19).any(|text| text == b"INSERT INTO writers");
                let breaks = commits && cuts.load(Ordering::Acquire) > 0;
                if breaks && matches!(cut, Cut::Before) {
                    cuts.fetch_sub(1, Ordering::AcqRel);
                    return;
                }
                if length == 0 || server.write_all(bytes).await.is_err() {
                    return;
                }
                if breaks {
                    // The answer is sent in one piece, after the commit.
                    assert!(server.read(&mut answered).await.unwrap() > 0);
                    cuts.fetch_sub(1, Ordering::AcqRel);
                    return;
                }
            }
            Ok(length) = server.read(&mut answered) => {
                if length == 0 || client.write_all(&answered[..length]).await.is_err() {
                    return;
                }
            }
            else => return,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_connection_breaks_happens_once() {
    for cut in [Cut::Before, Cut::After] {
        let road = Road::build(cut).await;
        let bench = Bench::on(&road.url).await;
        let store = bench.open().await;
        for number in 0..6 {
            road.cuts.store(number % 3, Ordering::Release);
            // A row that is put twice has a version that shows it, even where no event could.
            let timer = bench.timer("t");
            store.commit(changes(|c| c.put(&timer))).await.unwrap();
            let event = bench.retry("task/b/T-1");
            store.commit(changes(|c| c.emit(event))).await.unwrap();
            let left = road.cuts.load(Ordering::Acquire);
            assert_eq!(left, 0, "{cut:?}: nothing was cut");
        }
        let timers = store.list::<Timer>(Query::new()).await.unwrap();
        let versions: Vec<i64> = timers.iter().map(|timer| timer.version).collect();
        assert_eq!(versions, [1; 6], "{cut:?}");
        let events = store.events(&EventFilter::default()).await.unwrap();
        let sequences: Vec<i64> = events.iter().map(|event| event.sequence).collect();
        assert_eq!(sequences, [1, 2, 3, 4, 5, 6], "{cut:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_goes_on_when_the_server_ends_as_it_is_connected_to() {
    let road = Road::build(Cut::Greeting).await;
    let bench = Bench::on(&road.url).await;
    let store = bench.open().await;
    let timer = bench.timer("t");
    store.commit(changes(|c| c.put(&timer))).await.unwrap();
    road.cuts.store(3, Ordering::Release);
    // So many at once need connections of their own.
    let reads = (0..3).map(|_| store.list::<Timer>(Query::new()));
    for found in future::join_all(reads).await {
        assert_eq!(found.unwrap().len(), 1);
    }
    let left = road.cuts.load(Ordering::Acquire);
    assert_eq!(left, 0, "nothing was cut");
}
