//! Runs one transaction: load, evaluate, apply, commit.

use std::sync::Arc;

use tracing::warn;

use crate::dialect::{self, Statement};
use crate::error::CommitError;
use crate::events::Committed;
use crate::maintenance::{is_damage, primary};
use crate::reader;
use crate::row;
use crate::submission::Submission;
use crate::writer::evaluate::{Routing, evaluate};
use crate::writer::{Writer, apply, load};

type Answer = Result<Arc<Committed>, CommitError>;

impl Writer {
    /// Commits a batch; when the database refuses it as a whole, each change set is tried alone.
    pub(crate) async fn commit(&mut self, batch: Vec<Submission>) -> Vec<Answer> {
        if let Some(finding) = &self.damage {
            let refusal = CommitError::Damaged(finding.clone());
            return batch.iter().map(|_| Err(refusal.clone())).collect();
        }
        let refusal = match self.transact(&batch).await {
            Ok(answers) => return answers,
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

    async fn transact(&mut self, batch: &[Submission]) -> Result<Vec<Answer>, sqlx::Error> {
        self.begin().await?;
        let outcome = self.write(batch).await;
        self.end(outcome).await
    }

    async fn write(&mut self, batch: &[Submission]) -> Result<Vec<Answer>, sqlx::Error> {
        let loaded = load::load(&mut self.connection, batch).await?;
        self.route(loaded.epoch).await?;
        let now = self.clock.now();
        let evaluated = evaluate(&loaded, &self.routing, batch, now);
        if !evaluated.writes.is_empty() {
            for statement in apply::statements(&evaluated.writes, now) {
                self.connection.execute(statement).await?;
            }
        }
        Ok(evaluated.answers)
    }

    /// Loads the subscriptions again when this or another process has changed them.
    async fn route(&mut self, epoch: i64) -> Result<(), sqlx::Error> {
        if self.routing.epoch == epoch {
            return Ok(());
        }
        let rows = self
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

    pub(crate) async fn begin(&mut self) -> Result<(), sqlx::Error> {
        self.connection
            .execute(Statement::new(dialect::BEGIN))
            .await
            .map(drop)
    }

    /// Commits after a success, rolls back after a failure.
    pub(crate) async fn end<T>(
        &mut self,
        outcome: Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        let committed = match outcome {
            Ok(value) => self
                .connection
                .execute(Statement::new("COMMIT"))
                .await
                .map(|_| value),
            Err(problem) => Err(problem),
        };
        if committed.is_err() {
            // The routing may have been read inside a transaction that is now undone.
            self.routing = Routing::unknown();
            // Some errors have ended the transaction already; then there is nothing to undo.
            let undone = self.connection.execute(Statement::new("ROLLBACK")).await;
            if let Err(problem) = undone {
                tracing::debug!("nothing to roll back: {problem}");
            }
        }
        committed
    }
}

/// Says in words of this crate why the database refused.
pub(crate) fn translate(problem: sqlx::Error) -> CommitError {
    let code = match &problem {
        sqlx::Error::Database(error) => error.code().map(std::borrow::Cow::into_owned),
        _ => None,
    };
    match primary(code.as_deref()) {
        Some(13) => CommitError::NoSpace,
        Some(8) => CommitError::ReadOnly,
        Some(5 | 6) => CommitError::Busy,
        _ if is_damage(code.as_deref()) => CommitError::Damaged(problem.to_string()),
        _ => CommitError::Storage(Arc::new(problem)),
    }
}
