//! `docs/capabilities.md` and `docs/ux.md` say of each of their rows which tests hold it, or that it comes later; none is
//! forgotten. Of a capability a model has to be asked over HTTP as well, save where none is in play.

use std::collections::BTreeSet;

use crate::scenarios::{Tests, named, unknown};

/// How many capabilities there are.
pub(crate) const CAPABILITIES: usize = 177;
/// How many expectations of users there are.
pub(crate) const EXPECTATIONS: usize = 41;

/// The capabilities in which no model is in play; the page says of each why.
const WITHOUT_MODEL: [&str; 2] = ["CTX-1", "CORE-4"];

/// What the page has in the place of tests over HTTP where no model is in play, before the reason.
const NO_MODEL: char = '–';

/// A page of rows: id, what it is, state, tests, and what is missing.
pub(crate) struct Page<'a> {
    pub(crate) text: &'a str,
    /// How many rows it has to have.
    pub(crate) rows: usize,
    /// The tests that ask a model over HTTP, where the page has a cell of them before what is missing.
    pub(crate) over_http: Option<&'a Tests>,
}

/// One row.
#[derive(Clone, Copy)]
struct Row<'a> {
    id: &'a str,
    state: &'a str,
    held_by: &'a str,
    over_http: &'a str,
    missing: &'a str,
}

impl<'a> Row<'a> {
    fn read(line: &'a str, has_http: bool) -> Option<Self> {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let (id, state, held_by, over_http, missing) = match cells[..] {
            [_, id, _, state, held_by, over_http, missing, _] if has_http => {
                (id, state, held_by, over_http, missing)
            }
            [_, id, _, state, held_by, missing, _] if !has_http => {
                (id, state, held_by, "", missing)
            }
            _ => return None,
        };
        Some(Self {
            id,
            state,
            held_by,
            over_http,
            missing,
        })
    }
}

/// What is wrong with a page.
pub(crate) fn violations(page: &Page<'_>, tests: &Tests) -> Vec<String> {
    let mut ids = BTreeSet::new();
    let mut violations = Vec::new();
    for line in page.text.lines().filter(|line| line.starts_with("| ")) {
        let Some(row) = Row::read(line, page.over_http.is_some()) else {
            violations.push(format!("this row has another number of cells: {line}"));
            continue;
        };
        if !row.id.contains('-') {
            continue;
        }
        if !ids.insert(row.id.to_owned()) {
            violations.push(format!("{} has two rows", row.id));
        }
        violations.extend(unknown(row.id, line, tests));
        violations.extend(of_row(row));
        if let Some(over_http) = page.over_http {
            violations.extend(of_http(row, over_http));
        }
    }
    if ids.len() != page.rows {
        let (found, all) = (ids.len(), page.rows);
        violations.push(format!("there are {found} rows, not {all}"));
    }
    violations
}

fn of_row(row: Row<'_>) -> Option<String> {
    let is_held = !named(row.held_by).is_empty();
    let fault = match row.state {
        "covered" if !is_held => Some("is covered by no test, as `member::test`"),
        "part" if !is_held || row.missing.is_empty() => {
            Some("names no test, or not what is missing")
        }
        "later" if is_held || !row.over_http.is_empty() => Some("comes later and names a test"),
        "later" if row.missing.is_empty() => Some("comes later, and with what it does not say"),
        "covered" | "part" | "later" => None,
        _ => Some("is neither `covered`, `part` nor `later`"),
    };
    fault.map(|fault| format!("{} {fault}", row.id))
}

/// What is wrong with the way in which a row is held over HTTP.
fn of_http(row: Row<'_>, over_http: &Tests) -> Vec<String> {
    let id = row.id;
    let is_asked = |(member, test): &(&str, &str)| {
        let asked = over_http.get(*member);
        asked.is_some_and(|tests| tests.contains(*test))
    };
    let reason = row.over_http.strip_prefix(NO_MODEL);
    let mut violations: Vec<String> = named(row.over_http)
        .into_iter()
        .filter(|test| !is_asked(test))
        .map(|(member, test)| format!("{id}: `{member}::{test}` asks nobody over HTTP"))
        .collect();
    let is_held = named(row.held_by).iter().any(is_asked) || !named(row.over_http).is_empty();
    let fault = match (row.state, reason) {
        ("later", _) => None,
        (_, Some(reason)) if reason.trim().is_empty() => Some("says not why no model is in play"),
        (_, Some(_)) if !WITHOUT_MODEL.contains(&id) => {
            Some("has a model in play, as far as the list of those without one says")
        }
        (_, Some(_)) if is_held => Some("is held over HTTP, so that a model is in play"),
        (_, None) if !is_held => Some("has a model in play and is held by no test over HTTP"),
        (_, None) if WITHOUT_MODEL.contains(&id) => Some("is listed as one without a model"),
        _ => None,
    };
    violations.extend(fault.map(|fault| format!("{id} {fault}")));
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(member: &str, names: &[&str]) -> Tests {
        let names = names.iter().map(|name| (*name).to_owned());
        Tests::from([(member.to_owned(), names.collect())])
    }

    #[test]
    fn a_row_says_what_holds_it_or_what_is_missing() {
        let tests = of("llm", &["holds"]);
        let found = |text: &str, rows: usize| {
            let page = Page {
                text,
                rows,
                over_http: None,
            };
            violations(&page, &tests).len()
        };
        let rows = [
            ("| P-1 | it | covered | `llm::holds` | |", 0),
            ("| P-1 | it | covered | `llm::gone` | |", 1),
            ("| P-1 | it | covered | | |", 1),
            ("| P-1 | it | part | `llm::holds` | the rest |", 0),
            ("| P-1 | it | part | `llm::holds` | |", 1),
            ("| P-1 | it | later | | with P |", 0),
            ("| P-1 | it | later | | |", 1),
            ("| P-1 | it | done | `llm::holds` | |", 1),
            ("| id | capability | state | held by | missing |", 0),
        ];
        for (row, expected) in rows {
            // One row is not both of them, which is said too.
            assert_eq!(found(row, 2), expected + 1, "{row}");
        }
        let twice = "| P-1 | it | later | | with P |\n| P-1 | it | later | | with P |";
        assert_eq!(found(twice, 2), 2);
        assert_eq!(found(twice, 1), 1);
    }

    #[test]
    fn a_row_whose_model_nobody_asks_over_http_is_found() {
        let tests = of("llm", &["holds", "asks"]);
        let over_http = of("llm", &["asks"]);
        let rows = [
            ("| P-1 | it | covered | `llm::asks` | | |", 0),
            ("| P-1 | it | covered | `llm::holds` | `llm::asks` | |", 0),
            ("| P-1 | it | covered | `llm::holds` | | |", 1),
            ("| P-1 | it | part | `llm::holds` | | the rest |", 1),
            ("| P-1 | it | covered | `llm::holds` | by hand | |", 1),
            ("| P-1 | it | covered | `llm::asks` | `llm::holds` | |", 1),
            ("| P-1 | it | covered | `llm::holds` | `llm::gone` | |", 2),
            ("| P-1 | it | covered | `llm::holds` | – it is a sum | |", 1),
            (
                "| CTX-1 | it | covered | `llm::holds` | – it is a sum | |",
                0,
            ),
            ("| CTX-1 | it | covered | `llm::holds` | – | |", 1),
            ("| CTX-1 | it | covered | `llm::holds` | | |", 1),
            (
                "| CTX-1 | it | covered | `llm::asks` | – it is a sum | |",
                1,
            ),
            ("| CTX-1 | it | covered | `llm::asks` | | |", 1),
            ("| P-1 | it | later | | | with P |", 0),
            ("| P-1 | it | later | | `llm::asks` | with P |", 1),
            ("| P-1 | it | covered | `llm::asks` | |", 2),
        ];
        for (text, expected) in rows {
            let page = Page {
                text,
                rows: 1,
                over_http: Some(&over_http),
            };
            let found = violations(&page, &tests);
            assert_eq!(found.len(), expected, "{text}: {found:?}");
        }
    }
}
