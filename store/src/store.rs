//! The handle that everybody holds: commits through the writer, reads beside it.

pub(crate) mod leaving;
pub(crate) mod maintenance;
mod open;
pub(crate) mod retention;

use std::sync::Arc;

use ropewalk_runtime::{Clock, Supervisor};
use ropewalk_schemas::ComponentName;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use crate::change_set::ChangeSet;
use crate::command::Command;
use crate::database::Database;
use crate::error::CommitError;
use crate::events::{CommitOutcome, Subscription, traced};
use crate::feed::{CommitFeed, FeedMessage};
use crate::submission::Submission;

/// The truth of one project; cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) database: Database,
    pub(crate) clock: Clock,
    pub(crate) commands: mpsc::Sender<Command>,
    // Weak, so that the feeds end with the writer and not with the last clone of this handle.
    pub(crate) feed: broadcast::WeakSender<FeedMessage>,
    pub(crate) tasks: Supervisor,
    /// Why nothing can be committed any more.
    pub(crate) refusal: watch::Receiver<Option<CommitError>>,
}

impl Store {
    /// Commits a change set as a whole, or answers why nothing of it was written.
    pub async fn commit(&self, changes: ChangeSet) -> Result<CommitOutcome, CommitError> {
        let submission = Submission::prepare(changes)?;
        self.keep_blobs(&submission).await?;
        let (reply, answer) = oneshot::channel();
        self.send(Command::Commit(submission, reply)).await?;
        let committed = answer.await.map_err(|_| CommitError::Closing)??;
        traced::show(&committed.events);
        Ok(Arc::unwrap_or_clone(committed))
    }

    /// Writes the data of large events where it is to lie before anything refers to it.
    async fn keep_blobs(&self, submission: &Submission) -> Result<(), CommitError> {
        let Some(files) = self.database.blobs() else {
            return Ok(());
        };
        for blob in submission.blobs().cloned() {
            let (files, now) = (files.clone(), self.clock.now().into());
            let path = files.path(&blob.hash);
            let kept = tokio::task::spawn_blocking(move || files.keep(&blob.hash, &blob.text, now));
            let kept = kept.await.unwrap_or_else(|stopped| Err(stopped.into()));
            kept.map_err(|problem| match problem.kind() {
                std::io::ErrorKind::StorageFull => CommitError::NoSpace,
                _ => CommitError::Blob {
                    path,
                    reason: problem.to_string(),
                },
            })?;
        }
        Ok(())
    }

    /// Waits until nothing can be committed any more, because the database is damaged or gone, and says why; never
    /// ends for a store that is closed in order.
    pub fn refusing(&self) -> impl Future<Output = CommitError> + use<> {
        let mut refusal = self.refusal.clone();
        async move {
            let known = refusal.wait_for(Option::is_some).await;
            let known = known.ok().and_then(|why| why.clone());
            match known {
                Some(why) => why,
                None => std::future::pending().await,
            }
        }
    }

    /// Returns why nothing can be committed any more, if that is so.
    pub fn refusal(&self) -> Option<CommitError> {
        self.refusal.borrow().clone()
    }

    /// Follows every commit of this process from here on that emits at least one event; a server also tells of
    /// those of other processes.
    pub fn feed(&self) -> CommitFeed {
        CommitFeed(self.feed.upgrade().map(|sender| sender.subscribe()))
    }

    /// Registers a subscriber, or changes what it takes.
    pub async fn subscribe(&self, subscription: &Subscription) -> Result<(), CommitError> {
        if subscription.patterns.is_empty() {
            return Err(CommitError::NoPattern(subscription.name.clone()));
        }
        let (reply, answer) = oneshot::channel();
        self.send(Command::Subscribe(subscription.clone(), reply))
            .await?;
        answer.await.map_err(|_| CommitError::Closing)?
    }

    /// Removes a subscriber and closes its open deliveries.
    pub async fn unsubscribe(&self, name: &ComponentName) -> Result<(), CommitError> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Unsubscribe(name.clone(), reply)).await?;
        answer.await.map_err(|_| CommitError::Closing)?
    }

    /// Delivers stored events from a position on to a subscriber that has not got them, because it began later; what it
    /// got once is not delivered again. Returns how many, at most 10,000 at once, or nothing where nobody is called so.
    pub async fn replay(
        &self,
        name: &ComponentName,
        from: i64,
    ) -> Result<Option<u64>, CommitError> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Replay(name.clone(), from, reply))
            .await?;
        answer.await.map_err(|_| CommitError::Closing)?
    }

    /// Commits what is queued, then closes; later commits through any clone are answered with `Closing`.
    pub async fn close(self) -> Result<(), CommitError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.send(Command::Close(reply)).await;
        if sent.is_ok() {
            answer.await.map_err(|_| CommitError::Closing)?;
        }
        self.database.close().await;
        self.tasks.shutdown().begin();
        Ok(())
    }

    pub(crate) async fn send(&self, command: Command) -> Result<(), CommitError> {
        self.commands
            .send(command)
            .await
            .map_err(|_| CommitError::Closing)
    }
}
