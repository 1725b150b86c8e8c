//! Reads the conditions of question templates: comparisons of a number with a number, joined by `AND`.

use std::collections::BTreeMap;
use std::str::FromStr;

/// When a template applies: every comparison holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The comparisons, in order.
    pub all: Vec<Comparison>,
}

/// A field compared with a number or with a multiple of another field.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The field on the left, for example `attempts`.
    pub field: String,
    /// How it is compared.
    pub operator: Operator,
    /// What it is compared with.
    pub right: Expression,
}

/// How two numbers are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
}

/// A number, or a field times a number.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// The number.
    Number(f64),
    /// The field times the factor.
    Product {
        /// The field.
        field: String,
        /// The factor.
        factor: f64,
    },
}

/// Says why a condition cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no condition; write `field OPERATOR number` or `field OPERATOR field * number`, joined by `AND`, with `<`, `<=`, `>` or `>=`"
)]
pub struct InvalidCondition(String);

/// Says that a condition speaks of a number that was not given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the condition of `{trigger}` needs `{fact}`")]
pub struct MissingFact {
    /// The trigger.
    pub trigger: &'static str,
    /// The number that is missing.
    pub fact: String,
}

impl FromStr for Condition {
    type Err = InvalidCondition;

    fn from_str(text: &str) -> Result<Self, InvalidCondition> {
        let all = text
            .split(" AND ")
            .map(|part| comparison(part).ok_or_else(|| InvalidCondition(text.to_owned())))
            .collect::<Result<_, _>>()?;
        Ok(Self { all })
    }
}

impl Condition {
    /// Returns every field that is spoken of.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.all.iter().flat_map(|comparison| {
            let right = match &comparison.right {
                Expression::Number(_) => None,
                Expression::Product { field, .. } => Some(field.as_str()),
            };
            std::iter::once(comparison.field.as_str()).chain(right)
        })
    }

    /// Returns whether the condition holds; the error is the first field that `facts` lacks.
    pub(super) fn holds(&self, facts: &BTreeMap<&str, f64>) -> Result<bool, String> {
        let number = |field: &String| facts.get(field.as_str()).copied().ok_or(field.clone());
        for comparison in &self.all {
            let left = number(&comparison.field)?;
            let right = match &comparison.right {
                Expression::Number(number) => *number,
                Expression::Product { field, factor } => number(field)? * factor,
            };
            let holds = match comparison.operator {
                Operator::Less => left < right,
                Operator::AtMost => left <= right,
                Operator::More => left > right,
                Operator::AtLeast => left >= right,
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn comparison(text: &str) -> Option<Comparison> {
    let parts: Vec<&str> = text.split_whitespace().collect();
    let (left, operator, right) = match parts.as_slice() {
        [left, operator, number] => (left, operator, Expression::Number(number.parse().ok()?)),
        [left, operator, field, "*", factor] => (
            left,
            operator,
            Expression::Product {
                field: field_name(field)?,
                factor: factor.parse().ok()?,
            },
        ),
        _ => return None,
    };
    Some(Comparison {
        field: field_name(left)?,
        operator: match *operator {
            "<" => Operator::Less,
            "<=" => Operator::AtMost,
            ">" => Operator::More,
            ">=" => Operator::AtLeast,
            _ => return None,
        },
        right,
    })
}

fn field_name(text: &str) -> Option<String> {
    let valid = text.starts_with(|first: char| first.is_ascii_lowercase())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'.' | b'_'));
    valid.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(condition: &str, facts: &[(&'static str, f64)]) -> Result<bool, String> {
        let condition: Condition = condition.parse().unwrap();
        condition.holds(&facts.iter().copied().collect())
    }

    #[test]
    fn a_condition_holds_from_its_boundary_on() {
        let cases = [
            ("attempts >= 3", vec![("attempts", 2.0)], false),
            ("attempts >= 3", vec![("attempts", 3.0)], true),
            ("size < 50", vec![("size", 50.0)], false),
            ("size <= 50", vec![("size", 50.0)], true),
            (
                "actual > estimate * 3",
                vec![("actual", 9.0), ("estimate", 3.0)],
                false,
            ),
            (
                "actual > estimate * 3",
                vec![("actual", 9.1), ("estimate", 3.0)],
                true,
            ),
            ("a >= 0.9 AND b >= 3", vec![("a", 0.9), ("b", 2.0)], false),
            ("a >= 0.9 AND b >= 3", vec![("a", 0.9), ("b", 3.0)], true),
        ];
        for (condition, facts, expected) in cases {
            assert_eq!(
                holds(condition, &facts),
                Ok(expected),
                "{condition} {facts:?}"
            );
        }
        assert_eq!(holds("a > 1", &[]), Err("a".to_owned()));
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        for bad in [
            "",
            "a",
            "a = 1",
            "a > b",
            "a > b * c",
            "a > 1 OR b > 1",
            "A > 1",
            "1 > a",
        ] {
            assert!(bad.parse::<Condition>().is_err(), "{bad}");
        }
    }
}
