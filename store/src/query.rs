//! Builds the query of a list: filters over index columns, order and limit.

mod kept_sums;

use crate::database::dialect::Statement;
use crate::error::ReadError;
use crate::record::Table;
use crate::value::Value;

/// Selects rows of one table; conditions are joined by "and".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    conditions: Vec<(String, Condition)>,
    order: Vec<(String, bool)>,
    limit: Option<u32>,
    skipped: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Condition {
    Equal(Value),
    NotEqual(Value),
    OneOf(Vec<Value>),
    AtMost(Value),
    AtLeast(Value),
}

impl Query {
    /// Selects every row.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes rows whose column is `value`; `None` takes rows where it is empty.
    pub fn equal(self, column: &str, value: impl Into<Value>) -> Self {
        self.with(column, Condition::Equal(value.into()))
    }

    /// Takes rows whose column is not `value`, an empty one included; `None` takes rows where it is set.
    pub fn not_equal(self, column: &str, value: impl Into<Value>) -> Self {
        self.with(column, Condition::NotEqual(value.into()))
    }

    /// Takes rows whose column is one of `values`; none of them takes no row.
    pub fn one_of<V: Into<Value>>(self, column: &str, values: impl IntoIterator<Item = V>) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        self.with(column, Condition::OneOf(values))
    }

    /// Takes rows whose column is `value` or below.
    pub fn at_most(self, column: &str, value: impl Into<Value>) -> Self {
        self.with(column, Condition::AtMost(value.into()))
    }

    /// Takes rows whose column is `value` or above.
    pub fn at_least(self, column: &str, value: impl Into<Value>) -> Self {
        self.with(column, Condition::AtLeast(value.into()))
    }

    /// Orders by a column, ascending, then by the columns named later; without it rows come by key.
    pub fn order_by(mut self, column: &str) -> Self {
        self.order.push((column.to_owned(), false));
        self
    }

    /// Turns the order named last around; without one, that of the key.
    pub fn descending(mut self) -> Self {
        match self.order.last_mut() {
            Some((_, descending)) => *descending = true,
            None => self.order.push(("key".to_owned(), true)),
        }
        self
    }

    /// Takes at most so many rows.
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Takes the rows of one page of `size` rows; the first page is 0.
    pub fn page(mut self, number: u32, size: u32) -> Self {
        self.skipped = number.saturating_mul(size);
        self.limit(size)
    }

    fn with(mut self, column: &str, condition: Condition) -> Self {
        self.conditions.push((column.to_owned(), condition));
        self
    }

    pub(crate) fn list(self, table: &'static Table) -> Result<Statement, ReadError> {
        let mut statement = Statement::new("SELECT key, version, body FROM ");
        statement.name(table.name);
        self.filter(table, &mut statement)?;
        statement.push(" ORDER BY ");
        for (column, descending) in &self.order {
            checked(table, column)?;
            statement.name(column);
            statement.push(if *descending { " DESC, " } else { ", " });
        }
        statement.push("key");
        if let Some(limit) = self.limit {
            statement.push(" LIMIT ");
            statement.bind(limit);
            if self.skipped > 0 {
                statement.push(" OFFSET ");
                statement.bind(self.skipped);
            }
        }
        Ok(statement)
    }

    pub(crate) fn count(self, table: &'static Table) -> Result<Statement, ReadError> {
        let mut statement = Statement::new("SELECT COUNT(*) FROM ");
        statement.name(table.name);
        self.filter(table, &mut statement)?;
        Ok(statement)
    }

    pub(crate) fn count_by(
        self,
        table: &'static Table,
        columns: [&str; 2],
    ) -> Result<Statement, ReadError> {
        let mut statement = Statement::new("SELECT ");
        for column in columns {
            checked(table, column)?;
            statement.name(column);
            statement.push(", ");
        }
        statement.push("COUNT(*) FROM ");
        statement.name(table.name);
        self.filter(table, &mut statement)?;
        statement.push(" GROUP BY ");
        statement.name(columns[0]);
        statement.push(", ");
        statement.name(columns[1]);
        Ok(statement)
    }

    pub(crate) fn filter(
        &self,
        table: &'static Table,
        statement: &mut Statement,
    ) -> Result<(), ReadError> {
        for (index, (column, condition)) in self.conditions.iter().enumerate() {
            checked(table, column)?;
            statement.push(if index == 0 { " WHERE " } else { " AND " });
            condition.write(column, statement);
        }
        Ok(())
    }
}

impl Condition {
    fn write(&self, column: &str, statement: &mut Statement) {
        let (operator, value) = match self {
            Self::Equal(Value::Null) => {
                statement.name(column);
                statement.push(" IS NULL");
                return;
            }
            Self::NotEqual(Value::Null) => {
                statement.name(column);
                statement.push(" IS NOT NULL");
                return;
            }
            Self::OneOf(values) => {
                write_one_of(column, values, statement);
                return;
            }
            Self::Equal(value) => (" = ", value),
            Self::NotEqual(value) => (" IS DISTINCT FROM ", value),
            Self::AtMost(value) => (" <= ", value),
            Self::AtLeast(value) => (" >= ", value),
        };
        statement.name(column);
        statement.push(operator);
        statement.bind(value.clone());
    }
}

fn write_one_of(column: &str, values: &[Value], statement: &mut Statement) {
    if values.is_empty() {
        statement.push("1 = 0");
        return;
    }
    statement.name(column);
    statement.push(" IN (");
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            statement.push(", ");
        }
        statement.bind(value.clone());
    }
    statement.push(")");
}

fn checked(table: &'static Table, column: &str) -> Result<(), ReadError> {
    let known = column == "key"
        || column == "version"
        || table.columns.iter().any(|known| known.name == column);
    if known {
        return Ok(());
    }
    let names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
    Err(ReadError::UnknownColumn {
        table: table.name,
        column: column.to_owned(),
        known: names.join(", "),
    })
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::task::Task;

    use super::*;
    use crate::record::Record;

    #[test]
    fn a_query_becomes_one_statement_with_bound_values() {
        let statement = Query::new()
            .equal("build", "b")
            .one_of("state", ["ready", "pending"])
            .equal("assigned_to", None::<&str>)
            .at_most("number", 7)
            .order_by("number")
            .descending()
            .limit(3)
            .list(Task::TABLE)
            .unwrap();
        assert_eq!(
            statement.sql(),
            "SELECT key, version, body FROM \"tasks\" WHERE \"build\" = $1 AND \"state\" IN ($2, $3) \
             AND \"assigned_to\" IS NULL AND \"number\" <= $4 ORDER BY \"number\" DESC, key LIMIT $5"
        );
        assert_eq!(statement.values().len(), 5);
    }

    #[test]
    fn a_column_that_the_table_does_not_have_is_named() {
        let error = Query::new()
            .equal("colour; DROP TABLE tasks", "red")
            .list(Task::TABLE)
            .unwrap_err();
        assert!(matches!(
            error,
            ReadError::UnknownColumn { table: "tasks", .. }
        ));
    }

    #[test]
    fn one_of_nothing_takes_no_row() {
        let statement = Query::new()
            .one_of("state", Vec::<&str>::new())
            .count(Task::TABLE)
            .unwrap();
        assert_eq!(
            statement.sql(),
            "SELECT COUNT(*) FROM \"tasks\" WHERE 1 = 0"
        );
    }
}
