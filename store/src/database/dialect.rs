//! Holds every piece of SQL that differs between databases, and the statement that pieces are put together in.

use std::fmt::Write as _;

use serde::Serialize;

use crate::value::Value;

/// SQL text with `$1` placeholders and the values they stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statement {
    sql: String,
    values: Vec<Value>,
}

impl Statement {
    pub(crate) fn new(sql: &str) -> Self {
        Self {
            sql: sql.to_owned(),
            values: Vec::new(),
        }
    }

    /// Returns the statement that runs `statements` in order, for a database that takes several at once.
    pub(crate) fn in_order(statements: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Self::new("");
        for statement in statements {
            all.append(&statement.sql);
            all.values.extend(statement.values);
            all.push("; ");
        }
        all
    }

    /// Adds the text of another statement, whose placeholders count on from here.
    fn append(&mut self, sql: &str) {
        let before = self.values.len();
        let mut parts = sql.split('$');
        self.push(parts.next().unwrap_or_default());
        for part in parts {
            let rest = part.trim_start_matches(|letter: char| letter.is_ascii_digit());
            match part[..part.len() - rest.len()].parse::<usize>() {
                // Writing to a string cannot fail.
                Ok(number) => write!(self.sql, "${}{rest}", before + number).unwrap_or_default(),
                Err(_) => drop(self.push("$").push(part)),
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn with_values(sql: &str, values: Vec<Value>) -> Self {
        Self {
            sql: sql.to_owned(),
            values,
        }
    }

    /// Adds SQL text; never anything that came from outside.
    pub(crate) fn push(&mut self, sql: &str) -> &mut Self {
        self.sql.push_str(sql);
        self
    }

    /// Adds a quoted table or column name, which must be one that this crate defines.
    pub(crate) fn name(&mut self, name: &str) -> &mut Self {
        self.sql.push('"');
        self.sql.push_str(name);
        self.sql.push('"');
        self
    }

    /// Adds a placeholder and its value.
    pub(crate) fn bind(&mut self, value: impl Into<Value>) -> &mut Self {
        self.values.push(value.into().without_zero_bytes());
        let number = self.values.len();
        // Writing to a string cannot fail.
        write!(self.sql, "${number}").unwrap_or_default();
        self
    }

    /// Adds the source of rows that a JSON array holds, named `given`.
    pub(crate) fn rows(&mut self, dialect: Dialect, rows: String) -> &mut Self {
        match dialect {
            // Each column looks into the row anew: in binary form without rendering and parsing it each time.
            Dialect::Sqlite => self.push("jsonb_each(").bind(rows).push(") AS given"),
            Dialect::Postgres => self
                .push("jsonb_array_elements(")
                .bind(rows)
                .push("::jsonb) AS given(value)"),
        }
    }

    #[cfg(test)]
    pub(crate) fn sql(&self) -> &str {
        &self.sql
    }

    #[cfg(test)]
    pub(crate) fn values(&self) -> &[Value] {
        &self.values
    }

    pub(crate) fn into_parts(self) -> (String, Vec<Value>) {
        (self.sql, self.values)
    }
}

/// Writes rows for [`Statement::rows`].
pub(crate) fn json(rows: &impl Serialize) -> String {
    // Texts and numbers cannot fail to be written; nothing written would be refused as no JSON.
    serde_json::to_string(rows).unwrap_or_default()
}

/// Text element `index` of a row of [`Statement::rows`].
pub(crate) fn text(index: usize) -> String {
    format!("given.value ->> {index}")
}

/// Whole-number element `index` of a row of [`Statement::rows`].
pub(crate) fn integer(index: usize) -> String {
    format!("CAST(given.value ->> {index} AS BIGINT)")
}

/// The language of a database, where two of them differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// SQLite.
    Sqlite,
    /// PostgreSQL 13 or newer.
    Postgres,
}

/// What an advisory lock of PostgreSQL is for; the other half of its name is the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Purpose {
    /// To write events in one order.
    Write = 0x726f_0001,
    /// To make or change tables.
    Open = 0x726f_0002,
    /// To consume.
    Consume = 0x726f_0003,
}

impl Dialect {
    /// A row of [`Statement::rows`] that is a plain text.
    pub(crate) const fn scalar(self) -> &'static str {
        match self {
            Self::Sqlite => "given.value",
            Self::Postgres => "given.value #>> '{}'",
        }
    }

    /// The sum of a column, which must be one that this crate names: 0 of no row, and the largest number where it is larger.
    pub(crate) fn sum(self, column: &str) -> String {
        match self {
            // Unlike `SUM` it refuses nothing. It is exact up to 2^53, more than anybody uses.
            Self::Sqlite => format!("CAST(TOTAL({column}) AS BIGINT)"),
            Self::Postgres => format!("LEAST(COALESCE(SUM({column}), 0), {})::bigint", i64::MAX),
        }
    }

    /// The time now by the clock of the database, in milliseconds since 1970.
    pub(crate) const fn now(self) -> &'static str {
        match self {
            Self::Sqlite => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
            Self::Postgres => "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
        }
    }

    /// Begins a transaction that holds the right to write from its first statement on.
    ///
    /// PostgreSQL would let two writers run beside each other and commit in another order than they took their
    /// sequences in; one lock for each schema makes the order of sequences that of commits.
    pub(crate) fn begin(self) -> String {
        match self {
            Self::Sqlite => "BEGIN IMMEDIATE".to_owned(),
            Self::Postgres => format!(
                "BEGIN; SELECT pg_advisory_xact_lock({})",
                lock_name(Purpose::Write)
            ),
        }
    }

    /// Gathers the rows of a subselect with the columns `kind`, `key`, `number`, `text` and `attempts` into one JSON array.
    pub(crate) const fn gather(self) -> &'static str {
        match self {
            Self::Sqlite => {
                "SELECT json_group_array(json_array(kind, key, number, text, attempts)) FROM "
            }
            Self::Postgres => {
                "SELECT json_agg(json_build_array(kind, key, number, text, attempts))::text FROM "
            }
        }
    }

    /// The last sequence given to an event, even if that event is gone.
    pub(crate) const fn last_sequence(self) -> &'static str {
        match self {
            Self::Sqlite => {
                "SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = 'events'"
            }
            Self::Postgres => {
                "SELECT GREATEST((SELECT MAX(sequence) FROM events), \
                 (SELECT value FROM counters WHERE name = 'sequence'))"
            }
        }
    }

    /// The subscribers of an event `e` as a JSON array.
    pub(crate) const fn subscribers(self) -> &'static str {
        match self {
            Self::Sqlite => {
                "(SELECT json_group_array(subscriber) FROM deliveries \
                 WHERE deliveries.sequence = e.sequence)"
            }
            Self::Postgres => {
                "(SELECT COALESCE(json_agg(subscriber), '[]')::text FROM deliveries \
                 WHERE deliveries.sequence = e.sequence)"
            }
        }
    }

    /// The size of the database in bytes.
    pub(crate) const fn size(self) -> &'static str {
        match self {
            Self::Sqlite => {
                "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
            }
            Self::Postgres => "SELECT pg_database_size(current_database())",
        }
    }

    /// Answers `ok`, or what is damaged.
    ///
    /// A server checks every page that it reads; here it is asked what it found since its counts were last set to zero.
    pub(crate) const fn quick_check(self) -> &'static str {
        match self {
            Self::Sqlite => "PRAGMA quick_check(1)",
            Self::Postgres => {
                "SELECT CASE WHEN COALESCE(checksum_failures, 0) = 0 THEN 'ok' \
                 ELSE checksum_failures || ' pages with a wrong checksum were read' END \
                 FROM pg_stat_database WHERE datname = current_database()"
            }
        }
    }

    /// Finds the version table of the migrations.
    pub(crate) const fn migrations_table(self) -> &'static str {
        match self {
            Self::Sqlite => {
                "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '_sqlx_migrations'"
            }
            Self::Postgres => {
                "SELECT 1 FROM pg_class WHERE oid = to_regclass('_sqlx_migrations') \
                 AND relnamespace = current_schema()::regnamespace"
            }
        }
    }

    /// Has a statement explained instead of run.
    #[cfg(test)]
    pub(crate) const fn explain(self) -> &'static str {
        match self {
            Self::Sqlite => "EXPLAIN QUERY PLAN ",
            Self::Postgres => "EXPLAIN ",
        }
    }

    /// Looks for knowledge items that hold any word of a text, or another form of it, best match first; `None` when it holds
    /// none.
    pub(crate) fn search(self, text: &str, limit: u32) -> Option<Statement> {
        let words = self.search_words(text)?;
        let mut statement = Statement::new("SELECT key, version, body FROM knowledge ");
        match self {
            Self::Sqlite => statement
                .push("JOIN knowledge_text ON knowledge_text.rowid = knowledge.number WHERE knowledge_text MATCH ")
                .bind(words)
                .push(" ORDER BY bm25(knowledge_text), key LIMIT "),
            Self::Postgres => statement
                .push("CROSS JOIN to_tsquery('stems', ")
                .push("'''' || replace(trim(plain_words(")
                .bind(words)
                .push(")), ' ', ''' | ''') || '''') AS asked WHERE words @@ asked ")
                .push("ORDER BY ts_rank(words, asked) DESC, key LIMIT "),
        };
        statement.bind(limit);
        Some(statement)
    }

    /// Turns free text into a search for any of its words; `None` when it holds none.
    fn search_words(self, text: &str) -> Option<String> {
        let words = text
            .split(|letter: char| !letter.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .take(SEARCH_WORDS);
        let words: Vec<String> = match self {
            // Quoted, a word is never taken for an operator.
            Self::Sqlite => words.map(|word| format!("\"{word}\"")).collect(),
            Self::Postgres => words.map(str::to_owned).collect(),
        };
        let between = match self {
            Self::Sqlite => " OR ",
            Self::Postgres => " ",
        };
        (!words.is_empty()).then(|| words.join(between))
    }
}

/// The arguments that name an advisory lock; a schema stands for a project.
pub(crate) fn lock_name(purpose: Purpose) -> String {
    format!("{}, hashtext(current_schema())", purpose as i32)
}

/// The channel on which the writers of a schema tell each other of events.
pub(crate) const CHANNEL: &str = "'ropewalk_' || hashtext(current_schema())";

/// Moves committed pages of SQLite from the log into the database as far as nobody is in the way.
pub(crate) const CHECKPOINT: &str = "PRAGMA wal_checkpoint(PASSIVE)";

/// The most words that one search looks for.
const SEARCH_WORDS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_in_order_count_their_placeholders_on() {
        let statement = |sql: &str, value: i64| {
            let mut statement = Statement::new(sql);
            statement.bind(value).push(" '$.x'");
            statement
        };
        let begin = Statement::new("BEGIN");
        let all = Statement::in_order([begin, statement("A ", 1), statement("B ", 2)]);
        assert_eq!(all.sql(), "BEGIN; A $1 '$.x'; B $2 '$.x'; ");
        assert_eq!(all.values(), [Value::Integer(1), Value::Integer(2)]);
    }

    #[test]
    fn operators_in_a_search_are_only_words() {
        let cases = [
            (
                "lock NOT \"poison\"*",
                Some("\"lock\" OR \"NOT\" OR \"poison\""),
            ),
            ("content:x -y", Some("\"content\" OR \"x\" OR \"y\"")),
            ("größe", Some("\"größe\"")),
            ("  ' * ( ", None),
        ];
        for (text, expected) in cases {
            let found = Dialect::Sqlite.search_words(text);
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
