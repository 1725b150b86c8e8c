//! `docs/capabilities.md` and `docs/ux.md` say of each of their rows which tests hold it, or that it comes later; none is
//! forgotten.

use std::collections::BTreeSet;

use crate::scenarios::{Tests, named, unknown};

/// How many capabilities there are.
pub(crate) const CAPABILITIES: usize = 177;
/// How many expectations of users there are.
pub(crate) const EXPECTATIONS: usize = 41;

/// What is wrong with a page that has to have so many rows.
pub(crate) fn violations(page: &str, all: usize, tests: &Tests) -> Vec<String> {
    let mut ids = BTreeSet::new();
    let mut violations = Vec::new();
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, id, _, state, _, missing, _] = cells[..] else {
            violations.push(format!("this row has not five cells: {row}"));
            continue;
        };
        if !id.contains('-') {
            continue;
        }
        if !ids.insert(id.to_owned()) {
            violations.push(format!("{id} has two rows"));
        }
        violations.extend(of_row(id, (state, missing), row, tests));
    }
    if ids.len() != all {
        let found = ids.len();
        violations.push(format!("there are {found} rows, not {all}"));
    }
    violations
}

fn of_row(id: &str, (state, missing): (&str, &str), row: &str, tests: &Tests) -> Vec<String> {
    let is_held = !named(row).is_empty();
    let fault = match state {
        "covered" if !is_held => Some("is covered by no test, as `member::test`"),
        "part" if !is_held || missing.is_empty() => Some("names no test, or not what is missing"),
        "later" if is_held => Some("comes later and names a test"),
        "later" if missing.is_empty() => Some("comes later, and with what it does not say"),
        "covered" | "part" | "later" => None,
        _ => Some("is neither `covered`, `part` nor `later`"),
    };
    let fault = fault.map(|fault| format!("{id} {fault}"));
    unknown(id, row, tests).into_iter().chain(fault).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_holds_it_or_what_is_missing() {
        let tests = Tests::from([("llm".to_owned(), BTreeSet::from(["holds".to_owned()]))]);
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
            assert_eq!(violations(row, 2, &tests).len(), expected + 1, "{row}");
        }
        let twice = "| P-1 | it | later | | with P |\n| P-1 | it | later | | with P |";
        assert_eq!(violations(twice, 2, &tests).len(), 2);
        assert_eq!(violations(twice, 1, &tests).len(), 1);
    }
}
