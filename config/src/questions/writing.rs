//! Reads what question files write: texts with a `{{ name }}` for each value, and conditions on numbers.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::value::{Serde, ValueKind};
use minijinja::{Environment, Expression, Template};
use regex::Regex;
use serde_json::{Map, Value};

use super::Values;
use crate::language::{environment, in_one_line};

/// How a placeholder was written before; it would be shown to people as it stands.
const ONE_BRACE: &str = r"(?:^|[^{])\{([a-z0-9_]+)\}";

/// The language of question files; every error is one line.
#[derive(Debug, Clone)]
pub(super) struct TemplateLanguage {
    environment: Environment<'static>,
    one_brace: Regex,
}

impl TemplateLanguage {
    pub(super) fn new() -> Result<Self, String> {
        Ok(Self {
            environment: environment().map_err(|error| in_one_line(&error))?,
            one_brace: Regex::new(ONE_BRACE).map_err(|error| error.to_string())?,
        })
    }

    /// Returns the names of the values that `text` speaks of.
    pub(super) fn placeholders(&self, text: &str) -> Result<BTreeSet<String>, String> {
        if let Some(old) = self.one_brace.captures(text) {
            let name = &old[1];
            return Err(format!(
                "`{{{name}}}` fills nothing in; write `{{{{ {name} }}}}`"
            ));
        }
        let names = self.template(text)?.undeclared_variables(false);
        Ok(names.into_iter().collect())
    }

    /// Fills `values` into `text`; what is in them is neither escaped nor filled in again.
    pub(super) fn filled(&self, text: &str, values: &Values<'_>) -> Result<String, String> {
        self.template(text)?
            .render(Serde(values))
            .map_err(|error| in_one_line(&error))
    }

    /// Returns the names of the numbers that `condition` speaks of.
    pub(super) fn facts(&self, condition: &str) -> Result<BTreeSet<String>, String> {
        let names = self.expression(condition)?.undeclared_variables(true);
        Ok(names.into_iter().collect())
    }

    /// Returns whether `condition` holds.
    pub(super) fn holds(
        &self,
        condition: &str,
        facts: &BTreeMap<&str, f64>,
    ) -> Result<bool, String> {
        let found = self
            .expression(condition)?
            .eval(Serde(nested(facts)))
            .map_err(|error| in_one_line(&error))?;
        match found.kind() {
            ValueKind::Bool => Ok(found.is_true()),
            kind => Err(format!("`{condition}` is a {kind} and no condition")),
        }
    }

    fn template<'a>(&'a self, text: &'a str) -> Result<Template<'a, 'a>, String> {
        self.environment
            .template_from_named_str("text", text)
            .map_err(|error| in_one_line(&error))
    }

    fn expression<'a>(&'a self, condition: &'a str) -> Result<Expression<'a, 'a>, String> {
        self.environment
            .compile_expression(condition)
            .map_err(|error| in_one_line(&error))
    }
}

/// Puts `group.name` where the language looks for it: below `group`.
fn nested(facts: &BTreeMap<&str, f64>) -> Value {
    let mut whole = Map::new();
    for (name, number) in facts {
        match name.split_once('.') {
            Some((group, name)) => {
                let group = whole
                    .entry(group)
                    .or_insert_with(|| Value::Object(Map::new()));
                group[name] = Value::from(*number);
            }
            None => {
                whole.insert((*name).to_owned(), Value::from(*number));
            }
        }
    }
    Value::Object(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_holds_from_its_boundary_on() {
        let writing = TemplateLanguage::new().unwrap();
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
            (
                "a.b >= 0.9 and a.c >= 3",
                vec![("a.b", 0.9), ("a.c", 2.0)],
                false,
            ),
            (
                "a.b >= 0.9 and a.c >= 3",
                vec![("a.b", 0.9), ("a.c", 3.0)],
                true,
            ),
        ];
        for (condition, facts, expected) in cases {
            let facts: BTreeMap<&str, f64> = facts.into_iter().collect();
            assert_eq!(
                writing.holds(condition, &facts),
                Ok(expected),
                "{condition} {facts:?}"
            );
            let names: Vec<String> = facts.keys().map(|name| (*name).to_owned()).collect();
            assert!(writing.facts(condition).unwrap().iter().eq(&names));
        }
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        let writing = TemplateLanguage::new().unwrap();
        let facts = BTreeMap::from([("a", 1.0), ("b", 1.0)]);
        for bad in [
            "",
            "a",
            "a = 1",
            "a > b AND b > 1",
            "a > 1 OR b > 1",
            "c > 1",
            "a > 'x' ~ nothing",
        ] {
            let error = writing.holds(bad, &facts).unwrap_err();
            assert_eq!(error.lines().count(), 1, "{bad}: {error}");
        }
    }

    #[test]
    fn a_placeholder_in_one_brace_is_refused_and_said_how_to_write() {
        let writing = TemplateLanguage::new().unwrap();
        for text in ["{name}", "so {name}!", "{{ name }} and {name}"] {
            let error = writing.placeholders(text).unwrap_err();
            assert_eq!(
                error, "`{name}` fills nothing in; write `{{ name }}`",
                "{text}"
            );
        }
        for text in ["{{name}}", "{{ name }}", "a { b } {{ name }} {}"] {
            let names = writing.placeholders(text).unwrap();
            assert!(names.iter().eq(["name"]), "{text}: {names:?}");
        }
    }
}
