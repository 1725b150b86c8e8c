//! Reads the error codes of the databases.

use sqlx::postgres::PgDatabaseError;

/// What an error means for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The disk is full.
    NoSpace,
    /// A file could not be written or made larger, as it is where the disk is full; SQLite does not say so of all of them.
    Unwritten,
    /// Writing is not allowed.
    ReadOnly,
    /// Somebody else holds what is needed.
    Busy,
    /// What is stored does not fit together.
    Damaged,
    /// The file is something else.
    NotADatabase,
    /// The connection broke, or none can be made now; its transaction is undone unless it was about to commit.
    Lost,
    /// Another process has taken the right to consume.
    Superseded,
    /// Anything else, such as a statement that is refused.
    Other,
}

/// Says that another process has taken the right to consume, which this one had; it is named.
#[derive(Debug, thiserror::Error)]
#[error("another `ropewalk` ({0}) has taken over the database")]
pub(crate) struct TakeoverError(pub(crate) String);

impl From<TakeoverError> for sqlx::Error {
    fn from(superseded: TakeoverError) -> Self {
        Self::Configuration(Box::new(superseded))
    }
}

/// Returns who has taken the right to consume, where an error says so.
pub(crate) fn superseded(problem: &sqlx::Error) -> Option<&TakeoverError> {
    match problem {
        sqlx::Error::Configuration(source) => source.downcast_ref(),
        _ => None,
    }
}

/// Returns what an error means.
pub(crate) fn fault(problem: &sqlx::Error) -> Fault {
    match problem {
        sqlx::Error::Database(error) => {
            let code = error.code();
            let code = code.as_deref().unwrap_or_default();
            if error.try_downcast_ref::<PgDatabaseError>().is_some() {
                of_postgres(code)
            } else {
                of_sqlite(code)
            }
        }
        sqlx::Error::Io(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::WorkerCrashed => Fault::Lost,
        other if superseded(other).is_some() => Fault::Superseded,
        _ => Fault::Other,
    }
}

/// Returns whether the same may succeed on another connection.
pub(crate) fn is_lost(problem: &sqlx::Error) -> bool {
    fault(problem) == Fault::Lost
}

/// The codes are those of SQLite; the lowest byte is the primary part of an extended one.
fn of_sqlite(code: &str) -> Fault {
    let code = code.parse::<i32>();
    // Those of the file, and of the memory that is shared beside it.
    if matches!(code, Ok(778 | 4618 | 4874)) {
        return Fault::Unwritten;
    }
    match code.map(|code| code & 0xff) {
        Ok(5 | 6) => Fault::Busy,
        Ok(8 | 14) => Fault::ReadOnly,
        Ok(11) => Fault::Damaged,
        Ok(13) => Fault::NoSpace,
        Ok(26) => Fault::NotADatabase,
        _ => Fault::Other,
    }
}

/// The codes are those of the SQL standard and of PostgreSQL.
fn of_postgres(code: &str) -> Fault {
    match code {
        "53100" => Fault::NoSpace,
        "25006" => Fault::ReadOnly,
        // A lock waited for in vain, a deadlock, two transactions in each other's way.
        "55P03" | "40P01" | "40001" => Fault::Busy,
        "XX001" | "XX002" => Fault::Damaged,
        // Ended by an administrator or for standing still, starting up, shutting down, too many connections.
        "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "53300" => Fault::Lost,
        connection if connection.starts_with("08") => Fault::Lost,
        _ => Fault::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_of_one_database_is_not_read_as_one_of_the_other() {
        let cases = [
            ("13", of_sqlite("13"), Fault::NoSpace),
            ("4874", of_sqlite("4874"), Fault::Unwritten),
            ("266", of_sqlite("266"), Fault::Other),
            ("523", of_sqlite("523"), Fault::Damaged),
            ("517", of_sqlite("517"), Fault::Busy),
            ("22021", of_postgres("22021"), Fault::Other),
            ("53100", of_postgres("53100"), Fault::NoSpace),
            ("57P01", of_postgres("57P01"), Fault::Lost),
            ("08006", of_postgres("08006"), Fault::Lost),
            ("23505", of_postgres("23505"), Fault::Other),
        ];
        for (code, found, expected) in cases {
            assert_eq!(found, expected, "{code}");
        }
    }
}
