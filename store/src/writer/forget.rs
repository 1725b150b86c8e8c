//! Deletes old events a few at a time, in transactions of their own.

use crate::command::{Step, StepOutcome};
use crate::database::Row;
use crate::database::dialect::{Dialect, Statement, json};
use crate::error::CommitError;
use crate::writer::Writer;
use crate::writer::batch::translate;
use crate::writer::link::WriteKind;

/// How many events one step looks at.
const LOOKED_AT: i64 = 500;

impl Writer {
    /// Runs one step; what it deletes it chooses in the same transaction.
    pub(crate) async fn forget(&mut self, step: &Step) -> Result<StepOutcome, CommitError> {
        self.refuse_if_over()?;
        self.link.ready().await.map_err(translate)?;
        let outcome = self.delete_old(step).await;
        let outcome = outcome.map(|stepped| (stepped, WriteKind::Rows));
        self.end(outcome).await.map_err(translate)
    }

    async fn delete_old(&mut self, step: &Step) -> Result<StepOutcome, sqlx::Error> {
        let dialect = self.link.connection.dialect();
        let range = self.link.connection.fetch(range(step)).await?;
        let found = self.link.connection.fetch(old(dialect, step)).await?;
        let sequences: Vec<i64> = found.iter().filter_map(first).collect();
        if !sequences.is_empty() {
            for delete in deletes(dialect, &sequences) {
                self.link.connection.execute(delete).await?;
            }
        }
        Ok(StepOutcome {
            events: u64::try_from(sequences.len()).unwrap_or(u64::MAX),
            next: range.first().and_then(first),
        })
    }
}

fn first(row: &Row) -> Option<i64> {
    row.first()?.as_integer()
}

/// Returns a select of the last sequence that a step looks at; of nothing when that event is not old or not there.
pub(super) fn range(step: &Step) -> Statement {
    let mut last =
        Statement::new("SELECT sequence FROM (SELECT sequence, time FROM events WHERE sequence > ");
    last.bind(step.after)
        .push(" ORDER BY sequence LIMIT 1 OFFSET ")
        .bind(LOOKED_AT - 1)
        .push(") AS last WHERE time < ")
        .bind(step.before);
    last
}

/// Returns a select of those events of a step that nothing needs.
pub(super) fn old(dialect: Dialect, step: &Step) -> Statement {
    let mut old = Statement::new(
        "SELECT e.sequence FROM (SELECT sequence, correlation FROM events WHERE sequence > ",
    );
    old.bind(step.after)
        .push(" ORDER BY sequence LIMIT ")
        .bind(LOOKED_AT)
        .push(
            ") AS e WHERE (SELECT newest.time FROM events AS newest WHERE newest.correlation = e.correlation \
             ORDER BY newest.sequence DESC LIMIT 1) < ",
        )
        .bind(step.before)
        .push(
            " AND NOT EXISTS (SELECT 1 FROM deliveries AS d WHERE d.sequence = e.sequence \
             AND d.state IN ('open', 'dead', 'parked')) AND e.correlation NOT IN (SELECT ",
        )
        .push(dialect.scalar())
        .push(" FROM ")
        .rows(dialect, json(&step.unfinished))
        .push(")");
    old
}

pub(super) fn deletes(dialect: Dialect, sequences: &[i64]) -> [Statement; 3] {
    ["deliveries", "blobs", "events"].map(|table| {
        let mut delete = Statement::new("DELETE FROM ");
        delete
            .name(table)
            .push(" WHERE sequence IN (SELECT CAST(")
            .push(dialect.scalar())
            .push(" AS BIGINT) FROM ")
            .rows(dialect, json(&sequences))
            .push(")");
        delete
    })
}

/// Returns each statement of a step, to have it looked at.
#[cfg(test)]
pub(crate) fn statements(dialect: Dialect, step: &Step) -> Vec<Statement> {
    let mut statements = vec![range(step), old(dialect, step)];
    statements.extend(deletes(dialect, &[1]));
    statements
}
