//! Sums what model calls used by what they were for, where they lie.

use ropewalk_schemas::model_call::{ModelCall, Usage, UsageBy};

use crate::database::dialect::{Dialect, Statement};
use crate::error::ReadError;
use crate::query::Query;
use crate::record::Record;
use crate::store::Store;
use crate::value::Value;

/// What is summed, in the order of the columns.
const SUMS: [&str; 5] = [
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "micro_usd",
];
/// How many milliseconds a day has.
const DAY: &str = "86400000";

impl Store {
    /// Sums the model calls that a query selects, one row for each idea, build, model or day, in that order.
    pub async fn usage(&self, by: UsageBy, query: Query) -> Result<Vec<Usage>, ReadError> {
        let mut statement = sums(self.database.dialect(), by);
        query.filter(ModelCall::TABLE, &mut statement)?;
        statement.push(" GROUP BY 1");
        let rows = self.database.read(statement).await?;
        let mut sums: Vec<Usage> = rows.iter().map(|row| read(by, row)).collect();
        // Databases order texts, and what is none, in ways of their own.
        sums.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(sums)
    }
}

fn sums(dialect: Dialect, by: UsageBy) -> Statement {
    let mut statement = Statement::new("SELECT ");
    match by {
        UsageBy::Idea => {
            statement.name("idea");
        }
        UsageBy::Build => {
            statement.name("build");
        }
        UsageBy::Day => {
            statement.name("at");
            statement.push(" / ");
            statement.push(DAY);
        }
        UsageBy::Model => {
            // Calls of before providers were written down have none.
            let provider = dialect.text_in_body("provider");
            statement.push(&format!(
                "COALESCE({provider} || '/', '') || {}",
                dialect.text_in_body("model")
            ));
        }
    }
    statement.push(", COUNT(*)");
    for field in SUMS {
        let number = dialect.number_in_body(field);
        statement.push(&format!(", CAST(COALESCE(SUM({number}), 0) AS BIGINT)"));
    }
    let money = dialect.number_in_body("micro_usd");
    statement.push(&format!(", COUNT({money}) FROM "));
    statement.name(ModelCall::TABLE.name);
    statement
}

fn read(by: UsageBy, row: &[Value]) -> Usage {
    let number = |index: usize| {
        let value = row.get(index).and_then(Value::as_integer);
        value
            .and_then(|number| u64::try_from(number).ok())
            .unwrap_or_default()
    };
    let key = match (by, row.first()) {
        (UsageBy::Day, Some(value)) => value.as_integer().and_then(UsageBy::day),
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
