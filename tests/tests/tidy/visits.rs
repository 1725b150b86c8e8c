//! Every page is visited by a walk of a browser, in each look and without a script, or a list says why it is no page.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use ropewalk_tests::routes;
use serde_json::Value;

/// What is no page, with the reason of each.
const NO_PAGE: &str = "no page";
/// What a walk calls to visit the pages of one of its moments.
const CALL: &str = "everyPage(";

/// The pages that no walk visits, and the visits that lead nowhere, show nothing or are made by no walk.
pub(crate) fn violations(
    routes: &[String],
    visits: &str,
    walks: &BTreeMap<String, String>,
) -> Result<Vec<String>> {
    let lists: BTreeMap<String, Value> = serde_json::from_str(visits)?;
    let excused = lists.get(NO_PAGE).and_then(Value::as_object);
    let excused = excused.context("no list of what is no page")?;
    let mut violations = Vec::new();
    let mut visited: Vec<&str> = Vec::new();
    for (moment, pages) in lists.iter().filter(|(moment, _)| *moment != NO_PAGE) {
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
    let gone = excused.keys().filter(|route| !routes.contains(route));
    violations.extend(gone.map(|route| format!("`{route}` is gone; take it off the list")));
    Ok(violations)
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
            "no page": { "/events/download": "a file" } }"#;
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
}
