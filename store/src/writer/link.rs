//! The writer's connection: begins and ends transactions, and learns what became of one that broke at its end.

use chrono::{DateTime, Utc};
use ropewalk_runtime::{Clock, Ids};
use tracing::{debug, info};

use crate::database::dialect::{self, Dialect, Statement};
use crate::database::lock::Right;
use crate::database::{Connection, Database, PAUSE, Row, TRIES, is_lost};

/// What a transaction wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteKind {
    Nothing,
    Rows,
    /// Something that other processes are to be told of.
    Events,
}

/// A connection that is made again when it breaks.
#[derive(Debug)]
pub(crate) struct Link {
    database: Database,
    pub(crate) connection: Connection,
    /// What every session of a process that consumes has to hold.
    right: Option<Right>,
    /// Names this writer among all that write to the database.
    id: String,
    /// Counts its transactions.
    batch: i64,
}

impl Link {
    pub(crate) fn new(database: Database, connection: Connection) -> Self {
        Self {
            database,
            connection,
            right: None,
            // A name, which has to be another one in each process even where time stands still.
            id: Ids::system(Clock::system()).next().to_string(),
            batch: 0,
        }
    }

    /// Lets every session hold `right`, which the present one does already.
    pub(crate) fn holding(mut self, right: Option<Right>) -> Self {
        self.right = right;
        self
    }

    /// Sees to it that there is a session, if it has to hold something.
    pub(crate) async fn keep_right(&mut self) -> Result<(), sqlx::Error> {
        if self.right.is_some() {
            self.ready().await?;
            self.roll_back().await;
        }
        Ok(())
    }

    /// Returns the name that other processes know this writer by.
    pub(crate) fn id(&self) -> String {
        self.id.clone()
    }

    /// Begins a transaction that holds the right to write.
    pub(crate) async fn begin(&mut self) -> Result<(), sqlx::Error> {
        let begin = self.connection.dialect().begin();
        self.connection.run(begin).await
    }

    /// Begins a transaction and reads in it, in one round trip where the database takes several statements at once.
    pub(crate) async fn begin_with(&mut self, read: Statement) -> Result<Vec<Row>, sqlx::Error> {
        if self.connection.dialect() == Dialect::Postgres {
            self.begin().await?;
            return self.connection.fetch(read).await;
        }
        let begin = Statement::new(&Dialect::Sqlite.begin());
        self.connection
            .fetch(Statement::in_order([begin, read]))
            .await
    }

    /// Writes and commits, in one round trip where the database takes several statements at once.
    pub(crate) async fn write(
        &mut self,
        mut statements: Vec<Statement>,
        written: WriteKind,
        now: DateTime<Utc>,
    ) -> Result<(), sqlx::Error> {
        if self.connection.dialect() == Dialect::Postgres {
            for statement in statements {
                self.connection.execute(statement).await?;
            }
            return self.commit(written, now).await;
        }
        statements.push(Statement::new("COMMIT"));
        self.connection
            .execute(Statement::in_order(statements))
            .await
            .map(drop)
    }

    /// Begins a transaction, on a new connection when the old one has broken.
    pub(crate) async fn ready(&mut self) -> Result<(), sqlx::Error> {
        match self.begin().await {
            Err(problem) if is_lost(&problem) => {
                self.mend().await?;
                self.begin().await
            }
            outcome => outcome,
        }
    }

    /// Commits; where the connection breaks meanwhile, the database is asked whether it had committed.
    pub(crate) async fn commit(
        &mut self,
        written: WriteKind,
        now: DateTime<Utc>,
    ) -> Result<(), sqlx::Error> {
        if self.connection.dialect() == Dialect::Sqlite || written == WriteKind::Nothing {
            return self.connection.run("COMMIT".to_owned()).await;
        }
        self.batch += 1;
        let script = self.last_words(written, now);
        match self.connection.run(script).await {
            Err(problem) if is_lost(&problem) => {
                self.mend().await?;
                if self.has_committed().await? {
                    info!("the connection broke after the database had committed");
                    Ok(())
                } else {
                    Err(problem)
                }
            }
            outcome => outcome,
        }
    }

    /// Notes the transaction, tells the others and commits, in one round trip.
    fn last_words(&self, written: WriteKind, now: DateTime<Utc>) -> String {
        let Self { id, batch, .. } = self;
        let at = now.timestamp_millis();
        let tell = match written {
            WriteKind::Events => format!("SELECT pg_notify({}, '{id}'); ", dialect::CHANNEL),
            WriteKind::Rows | WriteKind::Nothing => String::new(),
        };
        format!(
            "INSERT INTO writers (id, batch, at) VALUES ('{id}', {batch}, {at}) \
             ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, at = excluded.at; {tell}COMMIT"
        )
    }

    /// Returns whether the newest transaction of this writer was committed.
    async fn has_committed(&mut self) -> Result<bool, sqlx::Error> {
        // A server that lost us may still be at it; who has its lock knows that it is not.
        self.begin().await?;
        let mut noted = Statement::new("SELECT 1 FROM writers WHERE id = ");
        noted
            .bind(self.id.as_str())
            .push(" AND batch = ")
            .bind(self.batch);
        let found = self.connection.fetch(noted).await;
        self.roll_back().await;
        Ok(!found?.is_empty())
    }

    /// Undoes the transaction, if there is one.
    pub(crate) async fn roll_back(&mut self) {
        // Some errors have ended the transaction already; then there is nothing to undo.
        if let Err(problem) = self.connection.run("ROLLBACK".to_owned()).await {
            debug!("nothing to roll back: {problem}");
        }
    }

    /// Connects anew, with patience for a server that is starting.
    pub(crate) async fn mend(&mut self) -> Result<(), sqlx::Error> {
        let mut tried = 1;
        loop {
            match self.connect().await {
                Ok(connection) => {
                    self.connection = connection;
                    return Ok(());
                }
                Err(problem) if is_lost(&problem) && tried < TRIES => tried += 1,
                Err(problem) => return Err(problem),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Connects, and takes the right to consume there before anything is committed.
    async fn connect(&mut self) -> Result<Connection, sqlx::Error> {
        if let Some(right) = &self.right {
            right.check()?;
        }
        let mut connection = self.database.connect(false).await?;
        if let Some(right) = &mut self.right {
            right.take_again(&mut connection).await?;
        }
        Ok(connection)
    }

    /// Ends the connection; nobody will ask any more what became of its transactions.
    pub(crate) async fn close(mut self) -> Result<(), sqlx::Error> {
        if self.connection.dialect() == Dialect::Postgres {
            let mut forget = Statement::new("DELETE FROM writers WHERE id = ");
            forget.bind(self.id.as_str());
            self.connection.execute(forget).await?;
        }
        self.connection.close().await
    }
}
