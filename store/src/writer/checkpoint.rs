//! Moves committed pages from the log into the database, on a connection of its own, off the commit path.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ropewalk_runtime::Supervisor;
use tokio::sync::{mpsc, oneshot};
use tracing::warn;

use crate::database::{Connection, Database};
use crate::dialect::Statement;

/// After so many written bytes a checkpoint runs beside the writer.
const STEP_BYTES: u64 = 4 * 1024 * 1024;

/// At this size of the log the writer waits for a checkpoint.
const LOG_LIMIT_BYTES: u64 = 64 * 1024 * 1024;

/// What a change costs in the log beyond its own size: pages of the table and of its indexes.
const OVERHEAD: u64 = 3;

/// The size of a page.
const PAGE_BYTES: u64 = 4096;

/// Asks for one checkpoint.
type Request = oneshot::Sender<()>;

/// The writer's side: counts what it writes and asks for checkpoints.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    requests: mpsc::Sender<Request>,
    log: Arc<Log>,
    since_last: u64,
    /// Answers by being dropped, when the checkpointer has ended.
    ended: oneshot::Receiver<()>,
}

/// What is known about the log.
#[derive(Debug, Default)]
struct Log {
    size_bytes: AtomicU64,
    running: AtomicBool,
}

/// Starts the checkpointer.
pub(crate) async fn start(
    database: &Database,
    tasks: &Supervisor,
) -> Result<Checkpoints, sqlx::Error> {
    let connection = database.connect(false).await?;
    let (requests, receiver) = mpsc::channel(1);
    let log = Arc::new(Log::default());
    let (end, ended) = oneshot::channel();
    let shared = Arc::clone(&log);
    tasks.spawn("store-checkpoints", async move {
        run(connection, receiver, &shared).await;
        drop::<oneshot::Sender<()>>(end);
    });
    Ok(Checkpoints {
        requests,
        log,
        since_last: 0,
        ended,
    })
}

impl Checkpoints {
    /// Counts what a commit wrote, and has a checkpoint run beside the next commits when it is time.
    pub(crate) fn written(&mut self, size_bytes: usize) {
        let bytes = u64::try_from(size_bytes).unwrap_or(u64::MAX) * OVERHEAD + 4 * PAGE_BYTES;
        self.log.size_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.since_last += bytes;
        if self.since_last >= STEP_BYTES && !self.log.running.load(Ordering::Relaxed) {
            self.since_last = 0;
            let (reply, _) = oneshot::channel();
            // A full channel means that one is about to run.
            self.requests.try_send(reply).unwrap_or_default();
        }
    }

    /// Waits for a checkpoint while the log is too large, so that it cannot outgrow the disk.
    pub(crate) async fn make_room(&mut self) {
        if self.log.size_bytes.load(Ordering::Relaxed) < LOG_LIMIT_BYTES {
            return;
        }
        let (reply, done) = oneshot::channel();
        self.since_last = 0;
        if self.requests.send(reply).await.is_ok() {
            // A checkpointer that is gone must not stop the writer.
            done.await.unwrap_or_default();
        }
        // A reader may hold the log open; then it is asked for again one step later, not at every commit.
        let size = self.log.size_bytes.load(Ordering::Relaxed);
        let bounded = size.min(LOG_LIMIT_BYTES - STEP_BYTES);
        self.log.size_bytes.store(bounded, Ordering::Relaxed);
    }

    /// Ends the checkpointer; closing the last connection moves what is left.
    pub(crate) async fn stop(&mut self) {
        let (requests, _) = mpsc::channel(1);
        // Without a sender the checkpointer ends by itself.
        drop(std::mem::replace(&mut self.requests, requests));
        (&mut self.ended).await.unwrap_or_default();
    }
}

async fn run(mut connection: Connection, mut requests: mpsc::Receiver<Request>, log: &Log) {
    while let Some(reply) = requests.recv().await {
        log.running.store(true, Ordering::Relaxed);
        match checkpoint(&mut connection).await {
            Ok(left) => log.size_bytes.store(left, Ordering::Relaxed),
            Err(problem) => warn!("a checkpoint failed: {problem}"),
        }
        log.running.store(false, Ordering::Relaxed);
        reply.send(()).unwrap_or_default();
    }
    if let Err(problem) = connection.close().await {
        warn!("the checkpoint connection did not close cleanly: {problem}");
    }
}

/// Moves what can be moved without waiting for anybody; returns the bytes that stay in the log.
async fn checkpoint(connection: &mut Connection) -> Result<u64, sqlx::Error> {
    let rows = connection
        .fetch(Statement::new("PRAGMA wal_checkpoint(PASSIVE)"))
        .await?;
    let number = |index: usize| {
        rows.first()
            .and_then(|row| row.get(index)?.as_integer())
            .and_then(|number| u64::try_from(number).ok())
            .unwrap_or(0)
    };
    let (pages, moved) = (number(1), number(2));
    // A log that was moved whole is written from its beginning again.
    Ok(if moved == pages {
        0
    } else {
        pages * PAGE_BYTES
    })
}
