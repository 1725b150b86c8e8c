//! The one task of a process that writes: takes what is queued, commits it together, answers, and tells the feed.

mod apply;
mod batch;
mod checkpoint;
mod evaluate;
mod forget;
mod link;
mod listen;
mod load;
#[cfg(test)]
mod plans;
mod subscribe;

use std::sync::Arc;

use ropewalk_runtime::{Clock, Supervisor};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tracing::warn;

use crate::command::{Command, CommitReply};
use crate::database::lock::Right;
use crate::database::witness::Witness;
use crate::database::{Connection, Database};
use crate::error::CommitError;
use crate::events::CommitOutcome;
use crate::feed::{FEED_CAPACITY, FeedMessage};
use crate::store::Store;
use crate::submission::Submission;
pub(crate) use batch::translate;
use checkpoint::Checkpoints;
use evaluate::Routing;
pub(crate) use link::Link;

/// How many commands may wait; whoever comes later waits before it is queued.
const QUEUE_CAPACITY: usize = 2_048;

/// The most change sets in one transaction.
const BATCH_LIMIT: usize = 512;

/// The most bytes in one transaction, so that a statement stays far below what the database takes.
const BATCH_LIMIT_BYTES: usize = 16 * 1024 * 1024;

/// The writer and what it knows between transactions.
struct Writer {
    link: Link,
    clock: Clock,
    commands: mpsc::Receiver<Command>,
    feed: broadcast::Sender<FeedMessage>,
    routing: Routing,
    /// Where they are ours to make.
    checkpoints: Option<Checkpoints>,
    /// Ends with the writer, where a server tells of other processes.
    _listening: Option<oneshot::Sender<()>>,
    witness: Option<Witness>,
    /// Why nothing can be committed any more.
    refusal: watch::Sender<Option<CommitError>>,
}

/// Starts the writer of a store on a connection whose tables are up to date, and that holds `right` if there is one.
pub(crate) async fn start(
    database: Database,
    connection: Connection,
    right: Option<Right>,
    clock: Clock,
    tasks: Supervisor,
) -> Result<Store, sqlx::Error> {
    let (sender, commands) = mpsc::channel(QUEUE_CAPACITY);
    let (feed, _) = broadcast::channel(FEED_CAPACITY);
    let (refusal, refused) = watch::channel(None);
    let store = Store {
        database: database.clone(),
        clock: clock.clone(),
        commands: sender,
        feed: feed.downgrade(),
        tasks: tasks.clone(),
        refusal: refused,
    };
    let link = Link::new(database.clone(), connection).holding(right);
    let (checkpoints, listening) = match &database {
        Database::Sqlite(_) => (Some(checkpoint::start(&database, &tasks).await?), None),
        Database::Postgres(server) => {
            let tell = listen::FeedRelay {
                own: link.id(),
                feed: feed.downgrade(),
                writer: store.commands.downgrade(),
            };
            let listening = listen::start(server.clone(), tell, &tasks).await?;
            (None, Some(listening))
        }
    };
    let writer = Writer {
        link,
        clock,
        commands,
        feed,
        routing: Routing::unknown(),
        checkpoints,
        _listening: listening,
        witness: database.witness(),
        refusal,
    };
    tasks.spawn("store-writer", writer.run());
    Ok(store)
}

impl Writer {
    async fn run(mut self) {
        let mut next = self.commands.recv().await;
        while let Some(command) = next {
            next = match command {
                Command::Commit(first, reply) => {
                    let left_over = self.commit_with_queued(first, reply).await;
                    match left_over {
                        Some(command) => Some(command),
                        None => self.commands.recv().await,
                    }
                }
                Command::Close(reply) => {
                    self.close(Some(reply)).await;
                    return;
                }
                other => {
                    self.obey(other).await;
                    self.commands.recv().await
                }
            };
        }
        self.close(None).await;
    }

    /// Commits `first` with the change sets queued behind it; returns a command of another kind met among them.
    async fn commit_with_queued(
        &mut self,
        first: Submission,
        reply: CommitReply,
    ) -> Option<Command> {
        let mut size_bytes = first.size_bytes;
        let mut batch = vec![first];
        let mut replies = vec![reply];
        let mut left_over = None;
        while batch.len() < BATCH_LIMIT && size_bytes < BATCH_LIMIT_BYTES {
            match self.commands.try_recv() {
                Ok(Command::Commit(submission, reply)) => {
                    size_bytes += submission.size_bytes;
                    batch.push(submission);
                    replies.push(reply);
                }
                Ok(other) => {
                    left_over = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.make_room().await;
        }
        ropewalk_runtime::failpoint!("store.commit.before");
        let answers = self.commit(batch).await;
        ropewalk_runtime::failpoint!("store.commit.after");
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.written(size_bytes);
        }
        self.publish(replies, answers);
        left_over
    }

    /// Answers each change set and tells the feed, in commit order.
    fn publish(
        &self,
        replies: Vec<CommitReply>,
        answers: Vec<Result<Arc<CommitOutcome>, CommitError>>,
    ) {
        for (reply, answer) in replies.into_iter().zip(answers) {
            if let Ok(committed) = &answer
                && !committed.events.is_empty()
            {
                // No reader is no problem: the deliveries are in the database.
                let told = FeedMessage::Here(Arc::clone(committed));
                self.feed.send(told).unwrap_or_default();
            }
            // A caller that went away has its effects committed all the same.
            reply.send(answer).unwrap_or_default();
        }
    }

    async fn obey(&mut self, command: Command) {
        ropewalk_runtime::failpoint!("store.subscribe.before");
        let (outcome, reply) = match command {
            Command::Subscribe(subscription, reply) => (self.subscribe(&subscription).await, reply),
            Command::Unsubscribe(name, reply) => (self.unsubscribe(&name).await, reply),
            Command::Replay(name, from, reply) => {
                let replayed = self.replay(&name, from).await;
                reply.send(replayed).unwrap_or_default();
                return;
            }
            Command::Forget(step, reply) => {
                reply.send(self.forget(&step).await).unwrap_or_default();
                return;
            }
            Command::Damaged(finding) => {
                self.refuse(CommitError::Damaged(finding));
                return;
            }
            Command::Disconnected => {
                if let Err(problem) = self.link.keep_right().await {
                    warn!("the right to consume is not held: {problem}");
                }
                return;
            }
            Command::Commit(..) | Command::Close(_) => return,
        };
        ropewalk_runtime::failpoint!("store.subscribe.after");
        reply.send(outcome).unwrap_or_default();
    }

    /// Commits nothing from now on.
    fn refuse(&self, why: CommitError) {
        self.refusal.send_replace(Some(why));
    }

    async fn close(mut self, reply: Option<oneshot::Sender<()>>) {
        self.commands.close();
        // Whatever came in behind the command to close is refused, not forgotten.
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Commit(_, reply) => {
                    reply.send(Err(CommitError::Closing)).unwrap_or_default();
                }
                Command::Subscribe(_, reply) | Command::Unsubscribe(_, reply) => {
                    reply.send(Err(CommitError::Closing)).unwrap_or_default();
                }
                Command::Replay(_, _, reply) => {
                    reply.send(Err(CommitError::Closing)).unwrap_or_default();
                }
                Command::Forget(_, reply) => {
                    reply.send(Err(CommitError::Closing)).unwrap_or_default();
                }
                Command::Damaged(_) | Command::Disconnected => {}
                Command::Close(reply) => reply.send(()).unwrap_or_default(),
            }
        }
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.stop().await;
        }
        if let Err(problem) = self.link.close().await {
            warn!("the database did not close cleanly: {problem}");
        }
        if let Some(reply) = reply {
            reply.send(()).unwrap_or_default();
        }
    }
}
