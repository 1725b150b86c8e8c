//! `docs/scenarios.md` names for each line of a scenario the tests that hold it; each of them has to be there.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;

use crate::workspace::Member;

/// The tests of each member, by its short name.
pub(crate) type Tests = BTreeMap<String, BTreeSet<String>>;

/// The last scenario; they are numbered from 1.
const LAST: u32 = 44;

/// The scenarios that may have no row yet, with what they await.
const AWAITED: [(u32, &str); 10] = [
    (3, "questions of the conversation about a vague idea"),
    (17, "faults that are mended as ideas of their own"),
    (18, "reviews that somebody reads"),
    (19, "lessons that cross ideas"),
    (20, "promotion by consent"),
    (26, "what is taken out of service"),
    (31, "the gate of people's journeys"),
    (33, "tasks without a group"),
    (35, "keeping the queue in order"),
    (36, "journeys of the conversation"),
];

/// The scenarios without a row that the list does not excuse, and those with one that it does.
pub(crate) fn missing(page: &str) -> Vec<String> {
    let has_row = |number: u32| page.contains(&format!("| V{number:02}."));
    let excuse = |number: u32| AWAITED.iter().find(|(awaited, _)| *awaited == number);
    (1..=LAST)
        .filter_map(|number| match (has_row(number), excuse(number)) {
            (false, None) => Some(format!("V{number:02} has no row in `docs/scenarios.md`")),
            (true, Some((_, awaited))) => Some(format!(
                "V{number:02} has a row, and awaits {awaited} no more"
            )),
            (true, None) | (false, Some(_)) => None,
        })
        .collect()
}

/// Lists the tests of `members`: functions with a test attribute, and what a macro makes tests of.
pub(crate) fn tests(members: &[Member]) -> Result<Tests> {
    let mut tests = Tests::new();
    for member in members {
        tests.insert(member.name().to_owned(), tests_of(&member.files)?);
    }
    Ok(tests)
}

/// Lists the tests of `files`, each a path with its text.
pub(crate) fn tests_of<'a>(
    files: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for (path, text) in files {
        let file = syn::parse_file(text).with_context(|| format!("cannot parse `{path}`"))?;
        Search(&mut found).visit_file(&file);
    }
    Ok(found)
}

/// The rows of the page that name no test, or one that is not there.
pub(crate) fn violations(page: &str, tests: &Tests) -> Vec<String> {
    let rows = page.lines().filter(|line| line.starts_with("| V"));
    rows.flat_map(|row| {
        let line = row.split('|').nth(1).unwrap_or_default().trim();
        let none = named(row)
            .is_empty()
            .then(|| format!("{line} names no test, as `member::test`"));
        let unknown = unknown(line, row, tests).into_iter();
        unknown.chain(none).collect::<Vec<_>>()
    })
    .collect()
}

/// The tests that a row names, as member and test.
pub(crate) fn named(row: &str) -> Vec<(&str, &str)> {
    let code = row.split('`').skip(1).step_by(2);
    code.filter_map(|code| code.split_once("::")).collect()
}

/// The tests that the row of `line` names and that are not there.
pub(crate) fn unknown(line: &str, row: &str, tests: &Tests) -> Vec<String> {
    let named = named(row).into_iter();
    named
        .filter(|(member, test)| !tests.get(*member).is_some_and(|all| all.contains(*test)))
        .map(|(member, test)| format!("{line} names `{member}::{test}`, which is no test"))
        .collect()
}

struct Search<'a>(&'a mut BTreeSet<String>);

impl<'ast> Visit<'ast> for Search<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        let is_test = |attribute: &syn::Attribute| {
            let last = attribute.path().segments.last();
            last.is_some_and(|segment| segment.ident == "test")
        };
        if function.attrs.iter().any(is_test) {
            self.0.insert(function.sig.ident.to_string());
        }
    }

    /// A macro that makes a test of each name it is given: `contract! { … }`, `proptest! { … }`.
    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        if item.ident.is_none() {
            identifiers(item.mac.tokens.clone(), self.0);
        }
    }
}

fn identifiers(tokens: TokenStream, found: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) => {
                found.insert(name.to_string());
            }
            TokenTree::Group(group) => identifiers(group.stream(), found),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_without_a_row_and_an_excuse_for_nothing_are_found() {
        let is_awaited = |number: u32| AWAITED.iter().any(|(awaited, _)| *awaited == number);
        let rows = |is_there: &dyn Fn(u32) -> bool| -> String {
            let all = (1..=LAST).filter(|number| is_there(*number));
            all.map(|number| format!("| V{number:02}.1 | `a::b` |"))
                .collect::<Vec<_>>()
                .join("\n")
        };
        let as_listed = rows(&|number| !is_awaited(number));
        assert_eq!(missing(&as_listed), Vec::<String>::new());
        let one_less = rows(&|number| number != 37 && !is_awaited(number));
        assert_eq!(
            missing(&one_less),
            ["V37 has no row in `docs/scenarios.md`"]
        );
        let one_more = rows(&|number| number == 31 || !is_awaited(number));
        assert_eq!(
            missing(&one_more),
            ["V31 has a row, and awaits the gate of people's journeys no more"]
        );
    }

    #[test]
    fn a_named_test_that_is_not_there_is_found() {
        let text =
            "#[tokio::test] async fn a_chain_starts() {} fn helper() {} contract! { each_once }";
        let mut found = BTreeSet::new();
        Search(&mut found).visit_file(&syn::parse_file(text).unwrap());
        let tests = Tests::from([("agents".to_owned(), found)]);
        for (row, expected) in [
            ("| V10.1 | `agents::a_chain_starts` |", 0),
            (
                "| V10.1 | `agents::a_chain_starts`, `agents::each_once` and `x` |",
                0,
            ),
            ("| V10.1 | `agents::helper` |", 1),
            ("| V10.1 | `bus::a_chain_starts`, `agents::gone` |", 2),
            ("| V10.1 | nothing |", 1),
            ("| line | tests |", 0),
        ] {
            assert_eq!(violations(row, &tests).len(), expected, "{row}");
        }
    }
}
