//! Holds every piece of SQL that differs between databases, and the statement that pieces are put together in.

use std::fmt::Write as _;

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
        self.values.push(value.into());
        let number = self.values.len();
        // Writing to a string cannot fail.
        write!(self.sql, "${number}").unwrap_or_default();
        self
    }

    /// Adds the source of rows that a JSON array holds, named `row`.
    pub(crate) fn rows(&mut self, rows: String) -> &mut Self {
        self.push("json_each(").bind(rows).push(") AS row")
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

/// Text element `index` of a row of [`Statement::rows`].
pub(crate) fn text(index: usize) -> String {
    format!("row.value ->> {index}")
}

/// Whole-number element `index` of a row of [`Statement::rows`].
pub(crate) fn integer(index: usize) -> String {
    format!("CAST(row.value ->> {index} AS BIGINT)")
}

/// A row of [`Statement::rows`] that is a plain text.
pub(crate) const SCALAR: &str = "row.value";

/// Begins a transaction that holds the right to write from its first statement on.
pub(crate) const BEGIN: &str = "BEGIN IMMEDIATE";

/// Moves committed pages from the log into the database as far as nobody is in the way.
pub(crate) const CHECKPOINT: &str = "PRAGMA wal_checkpoint(PASSIVE)";

/// The last sequence given to an event, even if that event is gone.
pub(crate) const LAST_SEQUENCE: &str =
    "SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = 'events'";

/// The subscribers of an event `e` as a JSON array.
pub(crate) const SUBSCRIBERS: &str =
    "(SELECT json_group_array(subscriber) FROM deliveries WHERE deliveries.sequence = e.sequence)";

/// Looks for knowledge items by words, best match first; the words are bound after it.
pub(crate) const SEARCH: &str = "SELECT key, version, body FROM knowledge \
     JOIN knowledge_text ON knowledge_text.rowid = knowledge.number \
     WHERE knowledge_text MATCH ";

/// Orders the matches of [`SEARCH`].
pub(crate) const SEARCH_ORDER: &str = " ORDER BY bm25(knowledge_text), key LIMIT ";

/// The most words that one search looks for.
const SEARCH_WORDS: usize = 32;

/// Turns free text into a search for any of its words; `None` when it holds none.
pub(crate) fn search_words(text: &str) -> Option<String> {
    let words: Vec<String> = text
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(SEARCH_WORDS)
        // Quoted, a word is never taken for an operator.
        .map(|word| format!("\"{word}\""))
        .collect();
    (!words.is_empty()).then(|| words.join(" OR "))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(search_words(text).as_deref(), expected, "{text}");
        }
    }
}
