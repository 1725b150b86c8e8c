//! Moves committed pages from the log into the database, on a connection of its own, off the commit path.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ropewalk_runtime::Supervisor;
use tokio::sync::{mpsc, oneshot};
use tracing::warn;

use crate::database::dialect::{self, Statement};
use crate::database::{Connection, Database};

/// After about so many written bytes a checkpoint runs beside the writer.
const STEP_BYTES: u64 = 4 * 1024 * 1024;

/// At this size of the log the writer waits for a checkpoint.
const LOG_LIMIT_BYTES: u64 = 64 * 1024 * 1024;

/// How much further the log may grow when something else, such as a long read, holds it open.
const HELD_OPEN_BYTES: u64 = 16 * 1024 * 1024;

/// About what a commit costs in the log beyond what it says: a page of each table and index that it touches.
const COMMIT_BYTES: u64 = 12 * 4096;

/// Asks for one checkpoint.
type Request = oneshot::Sender<()>;

/// The writer's side: watches the log and asks for checkpoints.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    database: Database,
    requests: mpsc::Sender<Request>,
    running: Arc<AtomicBool>,
    since_last: u64,
    /// The limit while nobody holds the log open.
    usual_limit: u64,
    limit: u64,
    /// Answers by being dropped, when the checkpointer has ended.
    ended: oneshot::Receiver<()>,
}

/// Starts the checkpointer.
pub(crate) async fn start(
    database: &Database,
    tasks: &Supervisor,
) -> Result<Checkpoints, sqlx::Error> {
    let connection = database.connect(false).await?;
    let (requests, receiver) = mpsc::channel(1);
    let running = Arc::new(AtomicBool::new(false));
    let (end, ended) = oneshot::channel();
    let shared = Arc::clone(&running);
    tasks.spawn("store-checkpoints", async move {
        run(connection, receiver, &shared).await;
        drop::<oneshot::Sender<()>>(end);
    });
    Ok(Checkpoints {
        database: database.clone(),
        requests,
        running,
        since_last: 0,
        usual_limit: LOG_LIMIT_BYTES,
        limit: LOG_LIMIT_BYTES,
        ended,
    })
}

impl Checkpoints {
    /// Counts what a commit wrote, and has a checkpoint run beside the next commits when it is time.
    pub(crate) fn written(&mut self, size_bytes: usize) {
        let size = u64::try_from(size_bytes).unwrap_or(u64::MAX);
        self.since_last = self
            .since_last
            .saturating_add(size.saturating_mul(2).saturating_add(COMMIT_BYTES));
        if self.since_last >= STEP_BYTES && !self.running.load(Ordering::Relaxed) {
            self.since_last = 0;
            let (reply, _) = oneshot::channel();
            // A full channel means that one is about to run.
            self.requests.try_send(reply).unwrap_or_default();
        }
    }

    /// Waits for a checkpoint while the log is too large, so that it cannot outgrow the disk.
    ///
    /// Beside a writer that never rests a checkpoint never comes to the end of the log, and only a log that was
    /// moved whole is written from its beginning again. Here the writer rests.
    pub(crate) async fn make_room(&mut self) {
        let size = self.database.log_bytes();
        if size < self.limit {
            if size < self.usual_limit {
                self.limit = self.usual_limit;
            }
            return;
        }
        self.since_last = 0;
        let (reply, done) = oneshot::channel();
        if self.requests.send(reply).await.is_ok() {
            // A checkpointer that is gone must not stop the writer.
            done.await.unwrap_or_default();
        }
        // The file shrinks with the next commit; if somebody holds the log open, it grows on for a while.
        self.limit = size + HELD_OPEN_BYTES;
    }

    /// Ends the checkpointer; closing the last connection moves what is left.
    pub(crate) async fn stop(&mut self) {
        let (requests, _) = mpsc::channel(1);
        // Without a sender the checkpointer ends by itself.
        drop(std::mem::replace(&mut self.requests, requests));
        (&mut self.ended).await.unwrap_or_default();
    }
}

async fn run(
    mut connection: Connection,
    mut requests: mpsc::Receiver<Request>,
    running: &AtomicBool,
) {
    // Moves what can be moved without waiting for anybody.
    let checkpoint = Statement::new(dialect::CHECKPOINT);
    while let Some(reply) = requests.recv().await {
        running.store(true, Ordering::Relaxed);
        if let Err(problem) = connection.fetch(checkpoint.clone()).await {
            warn!("a checkpoint failed: {problem}");
        }
        running.store(false, Ordering::Relaxed);
        reply.send(()).unwrap_or_default();
    }
    if let Err(problem) = connection.close().await {
        warn!("the checkpoint connection did not close cleanly: {problem}");
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_runtime::Shutdown;

    use super::*;

    const LIMIT: u64 = 17 * 1024 * 1024;

    /// Writes 40 MiB and returns the size that the log had at most.
    async fn largest_log(database: &Database, checkpoints: &mut Checkpoints) -> u64 {
        let mut writer = database.connect(false).await.unwrap();
        let mut largest = 0;
        for _ in 0..40 {
            checkpoints.make_room().await;
            let insert = "INSERT INTO t VALUES (zeroblob(1048576))";
            writer.execute(Statement::new(insert)).await.unwrap();
            largest = largest.max(database.log_bytes());
        }
        largest
    }

    #[tokio::test]
    async fn the_log_is_bounded_unless_a_reader_holds_it_open_and_then_the_writer_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::sqlite(&directory.path().join("log.db"));
        let mut reader = database.connect(true).await.unwrap();
        let table = Statement::new("CREATE TABLE t (body BLOB)");
        reader.execute(table).await.unwrap();
        let tasks = Supervisor::new(Shutdown::new());
        let mut checkpoints = start(&database, &tasks).await.unwrap();
        (checkpoints.usual_limit, checkpoints.limit) = (LIMIT, LIMIT);
        let largest = largest_log(&database, &mut checkpoints).await;
        assert!(largest < LIMIT + 2 * 1024 * 1024, "{largest}");

        reader.execute(Statement::new("BEGIN")).await.unwrap();
        let read = Statement::new("SELECT COUNT(*) FROM t");
        reader.fetch(read).await.unwrap();
        let held = largest_log(&database, &mut checkpoints).await;
        assert!(held > 2 * LIMIT, "{held}");
        reader.execute(Statement::new("COMMIT")).await.unwrap();
        largest_log(&database, &mut checkpoints).await;
        assert!(
            database.log_bytes() < held,
            "the log shrinks once it is free"
        );
        checkpoints.stop().await;
    }
}
