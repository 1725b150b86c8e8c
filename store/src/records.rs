//! Lists the tables of records; a file per part of the pipeline says how its records become rows.

mod builds;
mod ideas;
mod knowledge;
mod locks;
mod people;
mod running;
mod specifications;

pub use builds::{attempt_key, evidence_key, task_key};
pub use knowledge::injection_key;
pub use locks::{path_key, wait_key};
pub use specifications::revision_key;

use crate::record::{Record, Table};

use ropewalk_schemas as schemas;

/// Every table of records.
pub const TABLES: &[&Table] = &[
    schemas::idea::Idea::TABLE,
    schemas::idea::Session::TABLE,
    schemas::idea::Message::TABLE,
    schemas::specification::Specification::TABLE,
    schemas::specification::Revision::TABLE,
    schemas::build::Build::TABLE,
    schemas::task::Task::TABLE,
    schemas::attempt::Attempt::TABLE,
    schemas::attempt::Evidence::TABLE,
    schemas::lease::Lease::TABLE,
    schemas::lease::Ownership::TABLE,
    schemas::wait::Wait::TABLE,
    schemas::question::Question::TABLE,
    schemas::knowledge::KnowledgeItem::TABLE,
    schemas::knowledge::Injection::TABLE,
    schemas::review::Review::TABLE,
    schemas::agent::Component::TABLE,
    schemas::alert::Alert::TABLE,
    schemas::model_call::ModelCall::TABLE,
    schemas::timer::Timer::TABLE,
    schemas::deaths::Deaths::TABLE,
    schemas::outage::Outage::TABLE,
    schemas::halt::Halt::TABLE,
    schemas::wish::Wish::TABLE,
    schemas::keyed_request::KeyedRequest::TABLE,
    schemas::notice::Notice::TABLE,
    schemas::phone::Phone::TABLE,
];

/// Says how a record becomes a row: `record! { Type in "table" (key expression) { column: kind = value, … } }`.
macro_rules! record {
    ($record:ty, $table:literal, |$this:ident| $key:expr, { $( $column:literal : $kind:ident = $value:expr ),* $(,)? }) => {
        impl $crate::record::Record for $record {
            const TABLE: &'static $crate::record::Table = &$crate::record::Table {
                name: $table,
                columns: &[$( $crate::record::Column::$kind($column) ),*],
            };

            fn key(&self) -> String {
                let $this = self;
                $key
            }

            fn columns(&self) -> Vec<$crate::value::Value> {
                let $this = self;
                vec![$( $crate::value::Value::from($value) ),*]
            }
        }
    };
}

pub(crate) use record;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ColumnKind;

    #[test]
    fn every_table_has_the_columns_that_its_record_writes() {
        let databases = [
            concat!(
                include_str!("../migrations/sqlite/0001_initial.sql"),
                include_str!("../migrations/sqlite/0004_deaths.sql"),
                include_str!("../migrations/sqlite/0005_outages.sql"),
                include_str!("../migrations/sqlite/0006_wishes.sql"),
                include_str!("../migrations/sqlite/0007_keyed_requests.sql"),
                include_str!("../migrations/sqlite/0008_notices.sql"),
                include_str!("../migrations/sqlite/0009_phones.sql"),
                include_str!("../migrations/sqlite/0010_halts.sql"),
            )
            .to_owned(),
            concat!(
                include_str!("../migrations/postgres/0001_initial.sql"),
                include_str!("../migrations/postgres/0004_deaths.sql"),
                include_str!("../migrations/postgres/0005_outages.sql"),
                include_str!("../migrations/postgres/0006_wishes.sql"),
                include_str!("../migrations/postgres/0007_keyed_requests.sql"),
                include_str!("../migrations/postgres/0008_notices.sql"),
                include_str!("../migrations/postgres/0009_phones.sql"),
                include_str!("../migrations/postgres/0010_halts.sql"),
            )
            .replace(" COLLATE \"C\"", ""),
        ];
        for (sql, table) in databases
            .iter()
            .flat_map(|sql| TABLES.iter().map(move |t| (sql, t)))
        {
            let start = format!("CREATE TABLE {} (\n", table.name);
            let (_, rest) = sql.split_once(&start).unwrap_or_else(|| panic!("{start}"));
            let (columns, _) = rest.split_once("\n);").unwrap();
            let made: Vec<&str> = columns
                .lines()
                .filter(|line| line.trim().starts_with('"'))
                .map(|line| line.trim().trim_end_matches(','))
                .collect();
            let described: Vec<String> = table
                .columns
                .iter()
                .map(|column| match column.kind {
                    ColumnKind::Text => format!("\"{}\" TEXT", column.name),
                    ColumnKind::Integer => format!("\"{}\" BIGINT", column.name),
                })
                .collect();
            assert_eq!(made, described, "{}", table.name);
        }
        assert_eq!(TABLES.len(), 27);
    }
}
