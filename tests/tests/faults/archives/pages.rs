//! Every page that the pages of a project lead to, as text.

use std::collections::BTreeMap;

use anyhow::ensure;
use ropewalk_tests::routes;

use crate::project::Project;
use crate::surfaces::Browser;

/// The list that leads to the page of each event.
const EVENTS: &str = "/events";
/// What begins the address of a page within an attribute.
const LINK: &str = "href=\"/";
/// What says when an attempt ended.
const ENDED: &str = ", ended <time";
/// What a page is drawn by is none.
const STATIC: &str = "static/";
/// Pages of what the program does here and now, and of events, whose lists grow with each start: each event has its own.
const OF_PROGRAM: [&str; 5] = ["/running", "/health", EVENTS, "/events/download", "/find"];
/// Routes that pages of a build under way must have led to, or nothing was compared.
const READ: [&str; 8] = [
    "/",
    "/ideas/{slug}",
    "/specifications/{id}",
    "/builds",
    "/builds/{id}",
    "/builds/{id}/tasks/{task}",
    "/events/{sequence}",
    "/usage",
];

/// Pages by their paths.
pub(super) type Pages = BTreeMap<String, String>;

/// Reads the pages of a project from the first one on; of events, those up to the position `last` alone.
pub(super) async fn read(project: &Project, last: usize) -> anyhow::Result<Pages> {
    let browser = Browser::open(project).await?;
    let place = project.path().display().to_string();
    let mut pages = Pages::new();
    let mut unread = vec!["/".to_owned(), EVENTS.to_owned()];
    while let Some(path) = unread.pop() {
        let is_left_out = path != EVENTS && is_of_program(&path);
        if is_left_out || pages.contains_key(&path) || is_later(&path, last) {
            continue;
        }
        let page = browser.page(&path).await?;
        unread.extend(links(&page));
        pages.insert(path, comparable(&page).replace(&place, ""));
    }
    pages.remove(EVENTS);
    Ok(pages)
}

/// Asserts that both are the same pages.
pub(super) fn compare(pages: &Pages, others: &Pages) -> anyhow::Result<()> {
    let routes = routes::shown()?;
    for route in READ {
        let is_read = pages
            .keys()
            .any(|path| routes::of(path, &routes) == Some(route));
        ensure!(is_read, "no page of `{route}` was read");
    }
    for (path, page) in pages {
        let other = others.get(path).map_or("", String::as_str);
        let lines = page.lines().zip(other.lines());
        let differs = lines.into_iter().find(|(one, other)| one != other);
        ensure!(page == other, "`{path}` differs: {differs:#?}");
    }
    let (paths, there): (Vec<_>, Vec<_>) = (pages.keys().collect(), others.keys().collect());
    assert_eq!(paths, there);
    Ok(())
}

fn links(page: &str) -> impl Iterator<Item = String> {
    let links = page.split(LINK).skip(1);
    let links = links.filter_map(|rest| rest.split(['"', '#']).next());
    let pages = links.filter(|link| !link.starts_with(STATIC));
    pages.map(|link| format!("/{}", link.replace("&amp;", "&").replace("&#38;", "&")))
}

fn is_of_program(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    OF_PROGRAM.contains(&path)
}

/// Returns whether this is the page of an event that was stored later.
fn is_later(path: &str, last: usize) -> bool {
    let position = path.strip_prefix("/events/");
    position.is_some_and(|position| position.parse::<usize>().is_ok_and(|at| at > last))
}

/// Leaves out how far a page knows what happened, when attempts ended, which a new start does to those that ran, and the
/// picture whose scale ends now.
fn comparable(page: &str) -> String {
    let mut is_drawn = false;
    let lines = page.lines().filter(|line| {
        is_drawn |= line.contains("aria-label=\"Attempts by loop\"");
        let is_left_out = is_drawn || line.contains("data-position");
        is_drawn &= !line.contains("</svg>");
        !is_left_out
    });
    let lines = lines.map(|line| match line.split_once(ENDED) {
        Some((before, rest)) => {
            let after = rest.split_once("</time>").map_or(rest, |(_, after)| after);
            format!("{before}{after}")
        }
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}
