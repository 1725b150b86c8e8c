//! Sums what model calls used, where they lie.

mod usage;

use ropewalk_schemas::model_call::{ModelCall, Spending};

use crate::database::dialect::{Dialect, Statement};
use crate::error::ReadError;
use crate::query::Query;
use crate::record::Record;
use crate::store::Store;

impl Store {
    /// Sums what the model calls that a query selects used.
    pub async fn spending(&self, query: Query) -> Result<Spending, ReadError> {
        let mut statement = sums(self.database.dialect());
        query.filter(ModelCall::TABLE, &mut statement)?;
        let rows = self.database.read(statement).await?;
        let mut numbers = rows.first().into_iter().flatten().map(|value| {
            value
                .as_integer()
                .and_then(|number| u64::try_from(number).ok())
        });
        let mut next = || numbers.next().flatten().unwrap_or_default();
        let (calls, tokens, known_micro_usd, priced) = (next(), next(), next(), next());
        Ok(Spending {
            calls,
            tokens,
            known_micro_usd,
            unpriced_calls: calls.saturating_sub(priced),
        })
    }
}

fn sums(dialect: Dialect) -> Statement {
    let number = |field| dialect.number_in_body(field);
    let (input, output, money) = (
        number("input_tokens"),
        number("output_tokens"),
        number("micro_usd"),
    );
    let mut statement = Statement::new("SELECT COUNT(*), ");
    for (sum, comma) in [(format!("{input} + {output}"), ", "), (money.clone(), ", ")] {
        statement.push("CAST(COALESCE(SUM(");
        statement.push(&sum);
        statement.push("), 0) AS BIGINT)");
        statement.push(comma);
    }
    statement.push("COUNT(");
    statement.push(&money);
    statement.push(") FROM ");
    statement.name(ModelCall::TABLE.name);
    statement
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn sums_are_made_by_the_database_of_what_the_bodies_say() {
        assert_eq!(
            sums(Dialect::Sqlite).sql(),
            "SELECT COUNT(*), CAST(COALESCE(SUM(json_extract(body, '$.input_tokens') + json_extract(body, '$.output_tokens')), 0) AS BIGINT), \
             CAST(COALESCE(SUM(json_extract(body, '$.micro_usd')), 0) AS BIGINT), COUNT(json_extract(body, '$.micro_usd')) FROM \"model_calls\""
        );
        assert!(sums(Dialect::Postgres).sql().contains("body::jsonb"));
        assert_eq!(sums(Dialect::Postgres).values(), &[] as &[Value]);
    }
}
