//! Says how a record becomes a row: its table, its key and the columns that lists filter by.

use std::ops::Deref;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::value::Value;

/// Says what a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text.
    Text,
    /// A whole number.
    Integer,
}

/// A column that lists filter and order by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: ColumnKind,
}

impl Column {
    /// Returns a column that holds text.
    pub const fn text(name: &'static str) -> Self {
        Self {
            name,
            kind: ColumnKind::Text,
        }
    }

    /// Returns a column that holds a whole number.
    pub const fn integer(name: &'static str) -> Self {
        Self {
            name,
            kind: ColumnKind::Integer,
        }
    }
}

/// A table of records: `key`, `version`, the columns below, and the record itself as JSON in `body`.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// The columns between `version` and `body`, in order.
    pub columns: &'static [Column],
}

/// A record that the store keeps in a table of its own.
pub trait Record: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The table.
    const TABLE: &'static Table;

    /// Returns the key of the row.
    fn key(&self) -> String;

    /// Returns the values of [`Table::columns`], in their order.
    fn columns(&self) -> Vec<Value>;
}

/// A record as it was read, with the version that a change of it must still find.
#[derive(Debug, Clone, PartialEq)]
pub struct Versioned<R> {
    /// Grows with every write of the row.
    pub version: i64,
    /// The record.
    pub record: R,
}

impl<R> Versioned<R> {
    /// Returns the record without its version.
    pub fn into_inner(self) -> R {
        self.record
    }
}

impl<R> Deref for Versioned<R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.record
    }
}
