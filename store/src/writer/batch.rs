//! Runs one transaction: load, evaluate, apply, commit.

use std::sync::Arc;

use tracing::warn;

use crate::database::{Fault, fault, is_lost, superseded};
use crate::error::CommitError;
use crate::events::CommitOutcome;
use crate::reader;
use crate::row;
use crate::submission::Submission;
use crate::writer::evaluate::{Routing, evaluate};
use crate::writer::link::WriteKind;
use crate::writer::{Writer, apply, load};

/// How often one batch is begun again because the connection broke.
const BROKEN_LIMIT: u32 = 5;

type Answer = Result<Arc<CommitOutcome>, CommitError>;

impl Writer {
    /// Commits a batch; when the database refuses it as a whole, each change set is tried alone.
    pub(crate) async fn commit(&mut self, batch: Vec<Submission>) -> Vec<Answer> {
        let refusal = self.refusal.borrow().clone();
        if let Some(refusal) = refusal {
            return batch.iter().map(|_| Err(refusal.clone())).collect();
        }
        let refusal = match self.transact(&batch).await {
            Ok(answers) => return self.witnessed(answers),
            Err(problem) => translate(problem),
        };
        // Only an error that one change set can cause may be another's fault.
        if batch.len() == 1 || !matches!(refusal, CommitError::Storage(_)) {
            return batch.iter().map(|_| Err(refusal.clone())).collect();
        }
        warn!(
            "a batch of {} change sets was refused: {refusal}",
            batch.len()
        );
        let mut answers = Vec::with_capacity(batch.len());
        for submission in batch {
            let alone = self.transact(std::slice::from_ref(&submission)).await;
            let answer = alone
                .map_err(translate)
                .and_then(|mut answers| answers.pop().unwrap_or(Err(CommitError::Closing)));
            answers.push(answer);
        }
        answers
    }

    /// Notes how far the database has come; what went into a file that lies nowhere any more is not committed.
    fn witnessed(&self, answers: Vec<Answer>) -> Vec<Answer> {
        let Some(witness) = &self.witness else {
            return answers;
        };
        if !witness.is_in_place() {
            let gone = CommitError::Gone(witness.path().to_owned());
            self.refuse(gone.clone());
            return answers.iter().map(|_| Err(gone.clone())).collect();
        }
        let committed = answers.iter().filter_map(|answer| answer.as_ref().ok());
        let events = committed.flat_map(|committed| &committed.events);
        if let Some(last) = events.map(|event| event.sequence).max() {
            witness.note(last);
        }
        answers
    }

    /// Runs the batch as one transaction, again when the connection broke before it was committed.
    async fn transact(&mut self, batch: &[Submission]) -> Result<Vec<Answer>, sqlx::Error> {
        let mut broken = 0;
        loop {
            let outcome = self.attempt(batch).await;
            match outcome {
                Err(problem) if is_lost(&problem) && broken < BROKEN_LIMIT => {
                    broken += 1;
                    warn!("the connection to the database broke, trying again: {problem}");
                    self.link.mend().await?;
                }
                outcome => return outcome,
            }
        }
    }

    async fn attempt(&mut self, batch: &[Submission]) -> Result<Vec<Answer>, sqlx::Error> {
        let outcome = self.write(batch).await;
        if outcome.is_err() {
            self.undo().await;
        }
        outcome
    }

    /// Goes to the database twice: to begin and load, and to write and commit.
    async fn write(&mut self, batch: &[Submission]) -> Result<Vec<Answer>, sqlx::Error> {
        let loaded = load::begin(&mut self.link, batch).await?;
        self.route(loaded.epoch).await?;
        let now = self.clock.now();
        let evaluated = evaluate(&loaded, &self.routing, batch, now);
        let writes = &evaluated.writes;
        let written = if writes.is_empty() {
            WriteKind::Nothing
        } else if writes.events.is_empty() && writes.closes.is_empty() {
            WriteKind::Rows
        } else {
            WriteKind::Events
        };
        let statements = apply::statements(self.link.connection.dialect(), writes, now);
        self.link.write(statements, written, now).await?;
        Ok(evaluated.answers)
    }

    /// Loads the subscriptions again when this or another process has changed them.
    async fn route(&mut self, epoch: i64) -> Result<(), sqlx::Error> {
        if self.routing.epoch == epoch {
            return Ok(());
        }
        let rows = self
            .link
            .connection
            .fetch(reader::select_subscriptions())
            .await?;
        let mut subscriptions = Vec::with_capacity(rows.len());
        for values in rows {
            match row::subscription(values) {
                Ok(subscription) => subscriptions.push(subscription),
                Err(problem) => return Err(sqlx::Error::Decode(Box::new(problem))),
            }
        }
        self.routing = Routing {
            epoch,
            subscriptions,
        };
        Ok(())
    }

    /// Commits after a success, rolls back after a failure.
    pub(crate) async fn end<T>(
        &mut self,
        outcome: Result<(T, WriteKind), sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        let committed = match outcome {
            Ok((value, written)) => {
                let now = self.clock.now();
                self.link.commit(written, now).await.map(|()| value)
            }
            Err(problem) => Err(problem),
        };
        if committed.is_err() {
            self.undo().await;
        }
        committed
    }

    async fn undo(&mut self) {
        // The routing may have been read inside a transaction that is now undone.
        self.routing = Routing::unknown();
        self.link.roll_back().await;
    }
}

/// Says in words of this crate why the database refused.
pub(crate) fn translate(problem: sqlx::Error) -> CommitError {
    if let Some(by) = superseded(&problem) {
        return CommitError::Superseded(by.0.clone());
    }
    match fault(&problem) {
        Fault::NoSpace => CommitError::NoSpace,
        Fault::ReadOnly => CommitError::ReadOnly,
        Fault::Busy => CommitError::Busy,
        Fault::Damaged | Fault::NotADatabase => CommitError::Damaged(problem.to_string()),
        Fault::Lost => CommitError::Unreachable(problem.to_string()),
        Fault::Superseded | Fault::Unwritten | Fault::Other => {
            CommitError::Storage(Arc::new(problem))
        }
    }
}
