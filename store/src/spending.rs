//! Sums what model calls used: from the totals that the database keeps of each idea, build, day or model, else from the sums
//! that it keeps of these together, or, where a query asks for what those do not tell apart, from the calls themselves.

use ropewalk_schemas::model_call::{ModelCall, Spending, Usage, UsageBy};

use crate::database::dialect::{Dialect, Statement};
use crate::error::ReadError;
use crate::query::Query;
use crate::record::{Column, Record, Table};
use crate::store::Store;
use crate::value::Value;

/// What is summed, in the order of the columns.
const SUMS: [&str; 7] = [
    "calls",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "micro_usd",
    "priced_calls",
];

/// The sums, which triggers of the database keep; what is for no idea or build has an empty text there.
const KEPT: &Table = &Table {
    name: "usage_sums",
    columns: &[
        Column::text("idea"),
        Column::text("build"),
        Column::integer("day"),
    ],
};

/// The same for all calls of one idea, build, day or model.
const TOTALS: &Table = &Table {
    name: "usage_totals",
    columns: &[Column::text("what")],
};

/// The calls one by one, with the columns of the sums.
const CALLS: &Table = &Table {
    name: "usage_of_calls",
    columns: ModelCall::TABLE.columns,
};

impl Store {
    /// Sums what the model calls that a query selects used.
    pub async fn spending(&self, query: Query) -> Result<Spending, ReadError> {
        let statement = sums(self.database.dialect(), None, &query)?;
        let rows = self.database.read(statement).await?;
        let all = rows.first().map(|row| read(None, row));
        Ok(all.unwrap_or_default().spending())
    }

    /// Sums the model calls that a query selects, one row for each idea, build, model or day, in that order; where the query
    /// has a limit, only those of the most tokens, and these in the order of that.
    pub async fn usage(&self, by: UsageBy, query: Query) -> Result<Vec<Usage>, ReadError> {
        let statement = sums(self.database.dialect(), Some(by), &query)?;
        let rows = self.database.read(statement).await?;
        let mut sums: Vec<Usage> = rows.iter().map(|row| read(Some(by), row)).collect();
        // Databases order texts, and what is none, in ways of their own.
        sums.sort_by(|one, other| one.key.cmp(&other.key));
        if query.most().is_some() {
            sums.sort_by_key(|sum| std::cmp::Reverse(sum.spending().tokens));
        }
        Ok(sums)
    }
}

/// What is asked for sums.
struct Source {
    table: &'static Table,
    query: Query,
    /// What the rows are told apart by there.
    key: &'static str,
}

impl Source {
    fn of(by: Option<UsageBy>, query: &Query) -> Self {
        let kept = query.of_kept_sums();
        if let Some(query) = kept.as_ref().and_then(|kept| totals(by, kept)) {
            return Self {
                table: TOTALS,
                query,
                key: match by {
                    None => "NULL",
                    Some(UsageBy::Idea | UsageBy::Build) => "NULLIF(key, '')",
                    Some(UsageBy::Model) => "key",
                    Some(UsageBy::Day) => "CAST(key AS BIGINT)",
                },
            };
        }
        let (table, query) = kept.map_or_else(|| (CALLS, query.clone()), |kept| (KEPT, kept));
        let key = match by {
            None => "NULL",
            Some(UsageBy::Idea) => "NULLIF(\"idea\", '')",
            Some(UsageBy::Build) => "NULLIF(\"build\", '')",
            Some(UsageBy::Model) => "model",
            Some(UsageBy::Day) => "day",
        };
        Self { table, query, key }
    }
}

/// Returns the query that selects the totals which a query of kept sums comes to, where there are such: of everything, or of one
/// idea or build.
fn totals(by: Option<UsageBy>, kept: &Query) -> Option<Query> {
    if kept.is_of_all() {
        // Whatever they are told apart by, all of them are the whole.
        return Some(Query::of_totals(by.unwrap_or(UsageBy::Model).as_str()));
    }
    let (what, total) = kept.of_one_total()?;
    by.is_none_or(|by| by == what).then_some(total)
}

fn sums(dialect: Dialect, by: Option<UsageBy>, query: &Query) -> Result<Statement, ReadError> {
    let source = Source::of(by, query);
    let mut statement = Statement::new("SELECT ");
    statement.push(source.key);
    for column in SUMS {
        statement.push(", ").push(&dialect.sum(column));
    }
    statement.push(" FROM ");
    statement.name(source.table.name);
    source.query.filter(source.table, &mut statement)?;
    if by.is_some() {
        statement.push(" GROUP BY 1");
    }
    if let Some(limit) = query.most() {
        // Real numbers, since both together may come to more than a whole one holds.
        let [input, output] = ["input_tokens", "output_tokens"].map(|name| dialect.sum(name));
        statement.push(&format!(
            " ORDER BY 1.0 * {input} + {output} DESC, 1 NULLS FIRST LIMIT "
        ));
        statement.bind(limit);
    }
    Ok(statement)
}

fn read(by: Option<UsageBy>, row: &[Value]) -> Usage {
    let number = |index: usize| {
        let value = row.get(index).and_then(Value::as_integer);
        value
            .and_then(|number| u64::try_from(number).ok())
            .unwrap_or_default()
    };
    let key = match (by, row.first()) {
        (Some(UsageBy::Day), Some(value)) => value.as_integer().and_then(UsageBy::day),
        (_, Some(Value::Text(text))) => Some(text.clone()),
        _ => None,
    };
    Usage {
        key,
        calls: number(1),
        input_tokens: number(2),
        output_tokens: number(3),
        cache_read_tokens: number(4),
        cache_write_tokens: number(5),
        known_micro_usd: number(6),
        unpriced_calls: number(1).saturating_sub(number(7)),
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta, Utc};

    use super::*;

    #[test]
    fn calls_are_read_one_by_one_only_for_what_the_sums_do_not_tell() {
        let midnight: DateTime<Utc> = "2026-11-21T00:00:00Z".parse().unwrap();
        let before = TimeDelta::milliseconds(1);
        let all = Query::new;
        let rows = [
            (all(), TOTALS),
            (all().equal("idea", "walks").equal("build", "b"), KEPT),
            (all().equal("idea", "walks"), TOTALS),
            (all().equal("idea", None::<&str>), TOTALS),
            (all().equal("build", "b"), TOTALS),
            (all().at_least("at", midnight), KEPT),
            (all().at_most("at", midnight - before), KEPT),
            (all().at_least("at", midnight + before), CALLS),
            (all().at_least("at", midnight - before), CALLS),
            (all().at_most("at", midnight), CALLS),
            // Numbers of days are cut towards the first of 1970.
            (all().at_least("at", 0), CALLS),
            (all().at_most("at", -1), CALLS),
            (all().equal("idea", ""), CALLS),
            (all().equal("build", "b").equal("task", "T-1"), CALLS),
            (all().equal("role", "build"), CALLS),
        ];
        for (query, table) in rows {
            let statement = sums(Dialect::Sqlite, None, &query).unwrap();
            let from = format!(" FROM \"{}\"", table.name);
            assert!(statement.sql().contains(&from), "{query:?}");
        }
        // A total is of all models and days together.
        for (by, table) in [
            (UsageBy::Idea, TOTALS),
            (UsageBy::Build, KEPT),
            (UsageBy::Model, KEPT),
            (UsageBy::Day, KEPT),
        ] {
            let of_idea = all().equal("idea", "walks");
            let statement = sums(Dialect::Sqlite, Some(by), &of_idea).unwrap();
            let from = format!(" FROM \"{}\"", table.name);
            assert!(statement.sql().contains(&from), "{by:?}");
        }
    }
}
