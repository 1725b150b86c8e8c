//! Holds the lock of a database on a server in the session that commits, so that whoever commits has it.

use tokio::sync::watch;

use super::Instance;
use crate::database::dialect::{Purpose, Statement, lock_name};
use crate::database::{Connection, TakeoverError};
use crate::value::Value;

/// Tells a session from any other that the server has had.
const IDENTITY: &str = "CAST(EXTRACT(EPOCH FROM backend_start) * 1000000 AS BIGINT)";

/// A session that holds the lock.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) connection: Connection,
    pub(crate) right: Right,
}

/// What a process needs to take the lock again in each session that follows one that broke.
#[derive(Debug)]
pub(crate) struct Right {
    instance: Instance,
    /// The session that has it, or had it last.
    session: Option<Identity>,
    /// Who has it instead, for good.
    taken_by: watch::Sender<Option<String>>,
}

/// The number of a session and when it began: numbers are given again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    number: i64,
    began: i64,
}

/// What came of taking the lock.
#[derive(Debug)]
pub(super) enum LockOutcome {
    Taken,
    /// Refused for the session that has it.
    Held(Holder),
    /// Refused, but whoever had it has let it go meanwhile.
    LetGo,
}

/// A session that has the lock.
#[derive(Debug)]
pub(super) struct Holder {
    pub(super) name: String,
    session: Identity,
}

impl Right {
    pub(super) fn new(instance: Instance) -> Self {
        Self {
            instance,
            session: None,
            taken_by: watch::Sender::new(None),
        }
    }

    pub(super) fn watch(&self) -> watch::Receiver<Option<String>> {
        self.taken_by.subscribe()
    }

    /// Takes the lock, unless another session has it.
    pub(super) async fn take(
        &mut self,
        connection: &mut Connection,
    ) -> Result<LockOutcome, sqlx::Error> {
        let rows = connection.fetch(attempt(self.instance)).await?;
        let mut values = rows.into_iter().flatten();
        if values.next() == Some(Value::Integer(1)) {
            self.session = identity(&mut values);
            return Ok(LockOutcome::Taken);
        }
        let rows = connection.fetch(holder()).await?;
        let mut values = rows.into_iter().flatten();
        let name = values.next().and_then(Value::into_text);
        let session = identity(&mut values);
        Ok(match name.zip(session) {
            Some((name, session)) => LockOutcome::Held(Holder { name, session }),
            None => LockOutcome::LetGo,
        })
    }

    /// Takes the lock in a session that follows one that broke; refused for ever once another process has it.
    pub(crate) async fn take_again(
        &mut self,
        connection: &mut Connection,
    ) -> Result<(), sqlx::Error> {
        self.check()?;
        if let Some(before) = self.session {
            // A server that has not noticed that we are gone would keep the lock for a session of ours.
            connection.execute(end(before)).await?;
        }
        let before = self.session;
        match self.take(connection).await? {
            LockOutcome::Taken => Ok(()),
            LockOutcome::Held(other) if Some(other.session) != before => {
                self.taken_by.send_replace(Some(other.name));
                self.check()
            }
            // It is free, or about to be.
            LockOutcome::Held(_) | LockOutcome::LetGo => Err(sqlx::Error::Io(
                std::io::Error::other("the lock of the database is just being let go"),
            )),
        }
    }

    /// Fails when another process has the lock.
    pub(crate) fn check(&self) -> Result<(), sqlx::Error> {
        match self.taken_by.borrow().clone() {
            None => Ok(()),
            Some(holder) => Err(TakeoverError(holder).into()),
        }
    }
}

fn identity(values: &mut impl Iterator<Item = Value>) -> Option<Identity> {
    let number = values.next()?.as_integer()?;
    let began = values.next()?.as_integer()?;
    Some(Identity { number, began })
}

/// Returns a select that tries to take the lock, and says which session did.
fn attempt(instance: Instance) -> Statement {
    let function = match instance {
        Instance::Alone => "pg_try_advisory_lock",
        Instance::Sharing => "pg_try_advisory_lock_shared",
    };
    let lock = lock_name(Purpose::Consume);
    Statement::new(&format!(
        "SELECT {function}({lock}), pid, {IDENTITY} FROM pg_stat_activity WHERE pid = pg_backend_pid()"
    ))
}

/// Returns a select that ends a session of this process.
fn end(session: Identity) -> Statement {
    let mut end =
        Statement::new("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ");
    end.bind(session.number)
        .push(" AND ")
        .push(IDENTITY)
        .push(" = ")
        .bind(session.began);
    end
}

/// Returns a select of who holds the lock.
fn holder() -> Statement {
    // A lock with two numbers is listed with both of them taken for positive.
    Statement::new(&format!(
        "SELECT application_name || COALESCE(' on ' || host(client_addr), ''), pid, {IDENTITY} \
         FROM pg_locks JOIN pg_stat_activity USING (pid) \
         WHERE locktype = 'advisory' AND granted AND objsubid = 2 \
         AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
         AND classid::bigint = {} AND objid::bigint = hashtext(current_schema())::bigint & 4294967295 LIMIT 1",
        Purpose::Consume as i32
    ))
}
