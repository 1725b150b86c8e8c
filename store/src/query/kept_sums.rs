//! Asks of the sums that are kept what a query asks of model calls.

use ropewalk_schemas::model_call::UsageBy;

use super::{Condition, Query};
use crate::value::Value;

/// How many milliseconds a day has.
const DAY: i64 = 86_400_000;

impl Query {
    /// Returns the query that selects the sums of the calls which this one selects; none where the sums do not tell those
    /// from others: they know ideas, builds and days.
    pub(crate) fn of_kept_sums(&self) -> Option<Self> {
        let conditions = self.conditions.iter().map(|(column, condition)| {
            let (column, condition) = match column.as_str() {
                "at" => ("day", of_whole_days(condition)?),
                "idea" | "build" => (column.as_str(), of_named(condition)?),
                _ => return None,
            };
            Some((column.to_owned(), condition))
        });
        let conditions = conditions.collect::<Option<_>>()?;
        Some(Self {
            conditions,
            ..Self::default()
        })
    }

    /// Returns the query that selects the totals of all calls that are kept under `what`.
    pub(crate) fn of_totals(what: &str) -> Self {
        Self {
            conditions: vec![("what".to_owned(), Condition::Equal(what.into()))],
            ..Self::default()
        }
    }

    /// Returns the query that selects the one total of all calls for the idea or build that this query of kept sums selects, and
    /// which of both it is; none where it selects anything else.
    pub(crate) fn of_one_total(&self) -> Option<(UsageBy, Self)> {
        let [(column, condition @ Condition::Equal(_))] = self.conditions.as_slice() else {
            return None;
        };
        let what = match column.as_str() {
            "idea" => UsageBy::Idea,
            "build" => UsageBy::Build,
            _ => return None,
        };
        let mut total = Self::of_totals(what.as_str());
        total.conditions.push(("key".to_owned(), condition.clone()));
        Some((what, total))
    }

    /// Returns how many sums are wanted at most, if not all.
    pub(crate) const fn most(&self) -> Option<u32> {
        self.limit
    }

    /// Returns whether it selects every row.
    pub(crate) const fn is_of_all(&self) -> bool {
        self.conditions.is_empty()
    }
}

/// What begins or ends with a day of UTC, after the first of 1970: the number of a day is cut towards that.
fn of_whole_days(condition: &Condition) -> Option<Condition> {
    match condition {
        Condition::AtLeast(Value::Integer(from)) if *from > 0 && from % DAY == 0 => {
            Some(Condition::AtLeast(Value::Integer(from / DAY)))
        }
        Condition::AtMost(Value::Integer(until)) if *until > 0 && until % DAY == DAY - 1 => {
            Some(Condition::AtMost(Value::Integer(until / DAY)))
        }
        _ => None,
    }
}

/// What is for no idea or build stands under the empty text.
fn of_named(condition: &Condition) -> Option<Condition> {
    match condition {
        Condition::Equal(Value::Null) => Some(Condition::Equal("".into())),
        Condition::NotEqual(Value::Null) => Some(Condition::NotEqual("".into())),
        Condition::Equal(Value::Text(name)) | Condition::NotEqual(Value::Text(name))
            if !name.is_empty() =>
        {
            Some(condition.clone())
        }
        _ => None,
    }
}
