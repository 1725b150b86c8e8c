//! Every page is visited by a walk of a browser, in each look and without a script, or a list says why it is no page. Its
//! figures are compared with those of the store, or a list says why it has none.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use ropewalk_tests::routes;
use serde_json::{Map, Value};

/// What is no page, with the reason of each.
const NO_PAGE: &str = "no page";
/// Which pages show no figure, with the reason of each.
const NO_FIGURE: &str = "no figure";
/// What tests of figures call with the path of a page.
const LOOK: &str = "Expectation::at(";
/// What a walk calls to visit the pages of one of its moments.
const CALL: &str = "everyPage(";

/// The pages that no walk visits, and the visits that lead nowhere, show nothing or are made by no walk.
pub(crate) fn violations(
    routes: &[String],
    visits: &str,
    walks: &BTreeMap<String, String>,
) -> Result<Vec<String>> {
    let lists: BTreeMap<String, Value> = serde_json::from_str(visits)?;
    let excused = excuses(&lists, NO_PAGE)?;
    let is_moment = |name: &str| name != NO_PAGE && name != NO_FIGURE;
    let mut violations = Vec::new();
    let mut visited: Vec<&str> = Vec::new();
    for (moment, pages) in lists.iter().filter(|(name, _)| is_moment(name)) {
        if !walks.values().any(|walk| calls(walk, moment)) {
            violations.push(format!("no walk visits the pages of `{moment}`"));
        }
        for page in pages.as_array().context("a list of visits")? {
            let path = page["path"].as_str().context("a path")?;
            let shown = page["told"].as_array().context("what it shows")?;
            if shown.is_empty() {
                violations.push(format!(
                    "`{path}` of `{moment}` does not say what it shows without a script"
                ));
            }
            match routes::of(path, routes) {
                Some(route) => visited.push(route),
                None => violations.push(format!("`{path}` of `{moment}` leads nowhere")),
            }
        }
    }
    for route in routes {
        let (visited, excused) = (
            visited.contains(&route.as_str()),
            excused.contains_key(route),
        );
        match (visited, excused) {
            (false, false) => violations.push(format!(
                "no walk visits `{route}`; add it to `visits.json`, or say there why it is no page"
            )),
            (true, true) => violations.push(format!(
                "`{route}` is visited, so it is a page; take it off the list"
            )),
            _ => {}
        }
    }
    violations.extend(gone(excused, routes));
    Ok(violations)
}

/// The pages whose figures no test compares with the store, and the excuses and comparisons that are of no page. `tests` are
/// the sources of those tests.
pub(crate) fn unread(routes: &[String], visits: &str, tests: &[&str]) -> Result<Vec<String>> {
    let lists: BTreeMap<String, Value> = serde_json::from_str(visits)?;
    let (no_page, excused) = (excuses(&lists, NO_PAGE)?, excuses(&lists, NO_FIGURE)?);
    let mut violations = Vec::new();
    let mut read: Vec<&str> = Vec::new();
    for look in tests.iter().flat_map(|test| test.split(LOOK).skip(1)) {
        let path = look.trim_start();
        let path = path.strip_prefix("format!(").unwrap_or(path).trim_start();
        let path = path
            .strip_prefix('"')
            .and_then(|path| path.split('"').next());
        let Some(path) = path else {
            violations.push(format!("a look at figures names no page after `{LOOK}`"));
            continue;
        };
        match routes::of(path, routes) {
            Some(route) => read.push(route),
            None => violations.push(format!("the figures of `{path}` lead nowhere")),
        }
    }
    let pages = routes.iter().filter(|route| !no_page.contains_key(*route));
    for route in pages {
        match (read.contains(&route.as_str()), excused.contains_key(route)) {
            (false, false) => violations.push(format!(
                "no test compares the figures of `{route}` with the store, and `visits.json` does not say that it has none"
            )),
            (true, true) => violations.push(format!(
                "the figures of `{route}` are compared; take it off the list"
            )),
            _ => {}
        }
    }
    violations.extend(gone(excused, routes));
    Ok(violations)
}

fn excuses<'a>(lists: &'a BTreeMap<String, Value>, name: &str) -> Result<&'a Map<String, Value>> {
    let list = lists.get(name).and_then(Value::as_object);
    list.with_context(|| format!("no list called `{name}`"))
}

fn gone(excused: &Map<String, Value>, routes: &[String]) -> Vec<String> {
    let gone = excused.keys().filter(|route| !routes.contains(route));
    gone.map(|route| format!("`{route}` is gone; take it off the list"))
        .collect()
}

fn calls(walk: &str, moment: &str) -> bool {
    let mut lines = walk.lines();
    lines.any(|line| line.contains(CALL) && line.contains(&format!("\"{moment}\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_nobody_visits_is_found() {
        let routes = ["/", "/builds/{id}", "/events/download"].map(str::to_owned);
        let visits = r#"{ "walk": [{ "path": "/", "told": ["Walks"] }, { "path": "/builds/{build}", "told": ["T-1"] }],
            "no page": { "/events/download": "a file" }, "no figure": {} }"#;
        let walk = |text: &str| BTreeMap::from([("walk.cjs".to_owned(), text.to_owned())]);
        let made = walk("await everyPage(browser, base, state, \"walk\", {});");
        let found = |routes: &[String], visits: &str| violations(routes, visits, &made).unwrap();
        assert_eq!(found(&routes, visits), Vec::<String>::new());
        let one_more = [routes.as_slice(), &["/planted".to_owned()]].concat();
        assert_eq!(
            found(&one_more, visits),
            ["no walk visits `/planted`; add it to `visits.json`, or say there why it is no page"]
        );
        assert_eq!(
            found(&routes[..2], visits),
            ["`/events/download` is gone; take it off the list"]
        );
        let silent = visits.replace("[\"T-1\"]", "[]");
        assert!(found(&routes, &silent)[0].contains("does not say what it shows"));
        let lost = visits.replace("\"/builds/{build}\"", "\"/nowhere\"");
        assert!(found(&routes, &lost)[0].contains("leads nowhere"));
        let nobody = violations(&routes, visits, &walk("everyLook(\"walk\")")).unwrap();
        assert_eq!(nobody, ["no walk visits the pages of `walk`"]);
    }
    #[test]
    fn a_page_whose_figures_nobody_compares_is_found() {
        let routes = ["/", "/builds/{id}", "/events/download", "/login"].map(str::to_owned);
        let visits = r#"{ "no page": { "/events/download": "a file" }, "no figure": { "/login": "a door" } }"#;
        let test = "[Expectation::at(\"/?x=1\", told), Expectation::at(\n    format!(\"/builds/{}\", id),\n told)]";
        let found = |visits: &str, test: &str| unread(&routes, visits, &[test]).unwrap();
        assert_eq!(found(visits, test), Vec::<String>::new());
        let half = &test[..test.find(',').unwrap()];
        assert_eq!(
            found(visits, half),
            [
                "no test compares the figures of `/builds/{id}` with the store, and `visits.json` does not say that it has none"
            ]
        );
        let silent = visits.replace("\"/login\": \"a door\"", "");
        assert!(found(&silent, test)[0].contains("`/login`"));
        let stale = visits.replace("\"/login\"", "\"/\": \"it lists\", \"/login\"");
        assert!(found(&stale, test)[0].contains("take it off the list"));
        let over = visits.replace("\"/login\"", "\"/gone\": \"it lists\", \"/login\"");
        assert_eq!(
            found(&over, test),
            ["`/gone` is gone; take it off the list"]
        );
        let nameless = format!("{test} Expectation::at(path, told)");
        assert!(found(visits, &nameless)[0].contains("names no page"));
        let lost = format!("{test} Expectation::at(\"/nowhere\", told)");
        assert!(found(visits, &lost)[0].contains("lead nowhere"));
    }
}
