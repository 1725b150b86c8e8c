//! Holds the lock of a database on a server in the session that commits, so that whoever commits has it.

use tokio::sync::watch;

use crate::database::dialect::{Purpose, Statement, lock_name};
use crate::database::{Connection, TakeoverError};
use crate::value::Value;

/// Tells a session from any other that the server has had.
const IDENTITY: &str = "CAST(EXTRACT(EPOCH FROM backend_start) * 1000000 AS BIGINT)";

/// What stands between the name of a session and the mark of its state directory.
const BEFORE_MARK: &str = "/";

/// A session that holds the lock.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) connection: Connection,
    pub(crate) right: Right,
}

/// What a process needs to take the lock again in each session that follows one that broke.
#[derive(Debug)]
pub(crate) struct Right {
    /// The mark of the state directory, which all have who share the lock; none where it is not shared.
    mark: Option<String>,
    /// The session that has it, or had it last.
    session: Option<Identity>,
    /// Who of another state directory had it when it was to be taken again, the last time.
    stranger: Option<Identity>,
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
    /// Refused for a session that shares it with another state directory: whoever has that does not see what happens here.
    Apart(Holder),
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
    /// Returns the right of a process that shares it with nobody.
    pub(super) fn alone() -> Self {
        Self::with(None)
    }

    /// Returns the right of a process that shares it with those whose state directory has the same `mark`.
    pub(super) fn sharing(mark: String) -> Self {
        Self::with(Some(mark))
    }

    fn with(mark: Option<String>) -> Self {
        Self {
            mark,
            session: None,
            stranger: None,
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
        if let Some(mark) = &self.mark {
            // Said before it is taken: of two who come at once, one at least sees the other.
            connection.execute(marked(mark)).await?;
        }
        let rows = connection.fetch(attempt(self.mark.is_some())).await?;
        let mut values = rows.into_iter().flatten();
        if values.next() != Some(Value::Integer(1)) {
            let holder = found(connection, holder()).await?;
            return Ok(holder.map_or(LockOutcome::LetGo, LockOutcome::Held));
        }
        let session = identity(&mut values);
        if let Some(mark) = &self.mark
            && let Some(other) = found(connection, stranger(mark)).await?
        {
            // Whoever comes next must not find it here.
            connection.execute(give_back()).await?;
            return Ok(LockOutcome::Apart(other));
        }
        self.session = session;
        Ok(LockOutcome::Taken)
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
        let outcome = self.take(connection).await?;
        let (stranger, overtaken) = match outcome {
            LockOutcome::Taken => {
                self.stranger = None;
                return Ok(());
            }
            LockOutcome::Held(other) => {
                let is_another = Some(other.session) != before;
                (None, is_another.then_some(other.name))
            }
            // Whoever is refused for its state directory has the lock for a moment, too; who stays has it for good.
            LockOutcome::Apart(other) => {
                let stays = self.stranger == Some(other.session);
                (Some(other.session), stays.then_some(other.name))
            }
            LockOutcome::LetGo => (None, None),
        };
        self.stranger = stranger;
        if let Some(name) = overtaken {
            self.taken_by.send_replace(Some(name));
            return self.check();
        }
        // It is free, or about to be.
        Err(sqlx::Error::Io(std::io::Error::other(
            "the lock of the database is just being let go",
        )))
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
fn attempt(is_shared: bool) -> Statement {
    let function = if is_shared {
        "pg_try_advisory_lock_shared"
    } else {
        "pg_try_advisory_lock"
    };
    let lock = lock_name(Purpose::Consume);
    Statement::new(&format!(
        "SELECT {function}({lock}), pid, {IDENTITY} FROM pg_stat_activity WHERE pid = pg_backend_pid()"
    ))
}

/// Returns a select that lets go of the lock that is shared.
fn give_back() -> Statement {
    let lock = lock_name(Purpose::Consume);
    Statement::new(&format!("SELECT pg_advisory_unlock_shared({lock})"))
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

/// Returns a select by which a session says which state directory it is of.
fn marked(mark: &str) -> Statement {
    let mut marked = Statement::new(&format!(
        "SELECT set_config('application_name', split_part(current_setting('application_name'), '{BEFORE_MARK}', 1) \
         || '{BEFORE_MARK}' || CAST("
    ));
    marked.bind(mark).push(" AS TEXT), false)");
    marked
}

/// Returns a select of who holds the lock.
fn holder() -> Statement {
    let mut holder = holders();
    holder.push(" LIMIT 1");
    holder
}

/// Returns a select of who shares the lock and is of another state directory than the one with `mark`. Who says nothing of
/// that, as an earlier version, is not held to be.
fn stranger(mark: &str) -> Statement {
    let mut stranger = holders();
    stranger
        .push(&format!(
            " AND split_part(application_name, '{BEFORE_MARK}', 2) NOT IN ('', CAST("
        ))
        .bind(mark)
        .push(" AS TEXT)) LIMIT 1");
    stranger
}

fn holders() -> Statement {
    // A lock with two numbers is listed with both of them taken for positive.
    Statement::new(&format!(
        "SELECT split_part(application_name, '{BEFORE_MARK}', 1) || COALESCE(' on ' || host(client_addr), ''), pid, {IDENTITY} \
         FROM pg_locks JOIN pg_stat_activity USING (pid) \
         WHERE locktype = 'advisory' AND granted AND objsubid = 2 \
         AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
         AND classid::bigint = {} AND objid::bigint = hashtext(current_schema())::bigint & 4294967295",
        Purpose::Consume as i32
    ))
}

/// Runs a select of who holds the lock.
async fn found(
    connection: &mut Connection,
    select: Statement,
) -> Result<Option<Holder>, sqlx::Error> {
    let rows = connection.fetch(select).await?;
    let mut values = rows.into_iter().flatten();
    let name = values.next().and_then(Value::into_text);
    let session = identity(&mut values);
    let holder = name.zip(session);
    Ok(holder.map(|(name, session)| Holder { name, session }))
}
