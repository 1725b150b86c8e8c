//! Lets several processes handle the deliveries of one database: one process at a time has a delivery.
//!
//! A claim keeps two processes from doing the same work at once. What makes it safe is not the claim but that a
//! delivery is closed once: who lost a claim and does not know it is answered `Closed`.

use std::sync::Arc;
use std::time::Duration;

use ropewalk_runtime::Clock;
use ropewalk_schemas::ComponentName;
use tokio::sync::Mutex;

use crate::database::dialect::{self, CHANNEL, Dialect, Statement, json};
use crate::database::{Database, Row, is_lost};
use crate::deliveries::{DeliveryKey, DeliveryPosition};
use crate::error::ReadError;
use crate::row;
use crate::store::Store;
use crate::writer::Link;

/// Claims deliveries for one process; cheap to clone.
///
/// How long a claim lasts is measured by the clock of the database, so that all processes agree on it.
#[derive(Debug, Clone)]
pub struct Claims {
    database: Database,
    clock: Clock,
    process: Arc<str>,
    lasts_ms: i64,
    /// Made when it is first needed, and apart from the writer, so that a claim waits for no batch.
    link: Arc<Mutex<Option<Link>>>,
}

impl Store {
    /// Returns the means to claim deliveries under the name of `process`, each for as long as it says.
    ///
    /// No two processes that run may have the same name; one that comes after another of its name has its claims.
    pub fn claims(&self, process: &str, lasts: Duration) -> Claims {
        Claims {
            database: self.database.clone(),
            clock: self.clock.clone(),
            process: process.into(),
            lasts_ms: i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX),
            link: Arc::default(),
        }
    }
}

impl Claims {
    /// Claims a delivery that is open, due, the first open one of its entity, and that no other process has.
    ///
    /// Answers how often it was tried; `None` when it may not be handled here now.
    pub async fn take(&self, key: &DeliveryKey) -> Result<Option<u32>, ReadError> {
        let rows = self.run(self.statement_to_take(key)).await?;
        rows.into_iter().next().map(row::attempts).transpose()
    }

    /// Says how those of the deliveries stand that are open still.
    pub async fn look(
        &self,
        subscriber: &ComponentName,
        sequences: &[i64],
    ) -> Result<Vec<DeliveryPosition>, ReadError> {
        let rows = self
            .database
            .read(self.statement_to_look(subscriber, sequences));
        rows.await?.into_iter().map(row::standing).collect()
    }

    /// Makes the claims on `keys` last anew; one that another process has taken over stays with that.
    pub async fn renew(&self, keys: &[DeliveryKey]) -> Result<(), ReadError> {
        self.run(self.statement_to_renew(keys)).await.map(drop)
    }

    /// Gives back every claim of this process, and tells the others.
    pub async fn give_back(&self) -> Result<(), ReadError> {
        self.run(self.statement_to_give_back()).await?;
        if self.database.dialect() == Dialect::Postgres {
            let mut tell = Statement::new(&format!("SELECT CAST(pg_notify({CHANNEL}, "));
            tell.bind(&*self.process).push(") AS TEXT)");
            self.run(tell).await?;
        }
        if let Some(link) = self.link.lock().await.take() {
            link.close().await?;
        }
        Ok(())
    }

    /// Runs a statement; each of them may run twice.
    async fn run(&self, statement: Statement) -> Result<Vec<Row>, ReadError> {
        let mut kept = self.link.lock().await;
        let link = match kept.take() {
            Some(link) => link,
            None => Link::new(self.database.clone(), self.database.connect(false).await?),
        };
        let link = kept.insert(link);
        match link.connection.fetch(statement.clone()).await {
            Err(problem) if is_lost(&problem) => {
                link.mend().await?;
                Ok(link.connection.fetch(statement).await?)
            }
            outcome => Ok(outcome?),
        }
    }

    fn statement_to_take(&self, key: &DeliveryKey) -> Statement {
        let now = self.database.dialect().now();
        let mut take = Statement::new("UPDATE deliveries SET claimed_by = ");
        take.bind(&*self.process)
            .push(", claimed_until = ")
            .push(now)
            .push(" + ")
            .bind(self.lasts_ms)
            .push(" WHERE state = 'open' AND sequence = ")
            .bind(key.sequence)
            .push(" AND subscriber = ")
            .bind(&key.subscriber)
            .push(" AND due <= ")
            .bind(self.clock.now())
            .push(" AND (claimed_by IS NULL OR claimed_until <= ")
            .push(now)
            .push(" OR claimed_by = ")
            .bind(&*self.process)
            .push(") AND NOT ")
            .push(&behind("deliveries"))
            .push(" RETURNING attempts");
        take
    }

    fn statement_to_look(&self, subscriber: &ComponentName, sequences: &[i64]) -> Statement {
        let dialect = self.database.dialect();
        let now = dialect.now();
        let mut look = Statement::new(&format!(
            "SELECT d.sequence, d.attempts, d.due, CASE WHEN {} THEN 1 ELSE 0 END, \
             CASE WHEN d.claimed_until > {now} AND d.claimed_by <> ",
            behind("d")
        ));
        look.bind(&*self.process)
            .push(&format!(
                " THEN d.claimed_until - {now} ELSE 0 END FROM deliveries AS d \
                 WHERE d.state = 'open' AND d.subscriber = "
            ))
            .bind(subscriber)
            .push(&format!(
                " AND d.sequence IN (SELECT CAST({} AS BIGINT) FROM ",
                dialect.scalar()
            ))
            .rows(dialect, json(&sequences))
            .push(")");
        look
    }

    fn statement_to_renew(&self, keys: &[DeliveryKey]) -> Statement {
        let dialect = self.database.dialect();
        let rows: Vec<_> = keys
            .iter()
            .map(|key| (key.sequence, &key.subscriber))
            .collect();
        let mut renew = Statement::new("UPDATE deliveries SET claimed_until = ");
        renew
            .push(dialect.now())
            .push(" + ")
            .bind(self.lasts_ms)
            .push(" FROM ")
            .rows(dialect, json(&rows))
            .push(&format!(
                " WHERE deliveries.sequence = {} AND deliveries.subscriber = {} \
                 AND deliveries.state = 'open' AND deliveries.claimed_by = ",
                dialect::integer(0),
                dialect::text(1),
            ))
            .bind(&*self.process);
        renew
    }

    fn statement_to_give_back(&self) -> Statement {
        let mut give = Statement::new(
            "UPDATE deliveries SET claimed_by = NULL, claimed_until = NULL \
             WHERE state = 'open' AND claimed_by = ",
        );
        give.bind(&*self.process);
        give
    }

    /// Returns what runs for each delivery, to have it looked at.
    #[cfg(test)]
    pub(crate) fn frequent_statements(&self, key: &DeliveryKey) -> Vec<Statement> {
        vec![
            self.statement_to_take(key),
            self.statement_to_look(&key.subscriber, &[key.sequence]),
            self.statement_to_renew(std::slice::from_ref(key)),
            self.statement_to_give_back(),
        ]
    }
}

/// Says whether the entity of a row of `table` has an earlier open delivery to the same subscriber.
fn behind(table: &str) -> String {
    format!(
        "EXISTS (SELECT 1 FROM deliveries AS earlier WHERE earlier.state = 'open' \
         AND earlier.subscriber = {table}.subscriber AND earlier.entity = {table}.entity \
         AND earlier.sequence < {table}.sequence)"
    )
}
