//! The paths that the server answers, as its sources name them, so that a list of pages cannot forget one.

use std::path::Path;
use std::{fs, io};

/// Where the server keeps its sources, below the root of the workspace.
const SERVER: &str = "server/src";
/// What is only sent to; everything else can be looked at.
const SENT: &str = "post(";

/// Returns the paths that a browser can be led to, with `{…}` for what differs, sorted.
pub fn shown() -> io::Result<Vec<String>> {
    let mut paths = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    collect(&root.join(SERVER), &mut paths)?;
    paths.sort();
    Ok(paths)
}

/// Returns which of `routes` answers a path: the one that names more of it.
#[must_use]
pub fn of<'a>(path: &str, routes: &'a [String]) -> Option<&'a str> {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let answers = routes.iter().filter(|route| answers(route, path));
    answers
        .min_by_key(|route| route.matches('{').count())
        .map(String::as_str)
}

fn answers(route: &str, path: &str) -> bool {
    let (mut parts, mut asked) = (route.split('/'), path.split('/'));
    loop {
        match (parts.next(), asked.next()) {
            (None, None) => return true,
            (Some(part), Some(asked)) if part == asked => {}
            (Some(part), Some(asked)) if part.starts_with('{') && !asked.is_empty() => {}
            _ => return false,
        }
    }
}

fn collect(folder: &Path, paths: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, paths)?;
        } else {
            let found = named(&fs::read_to_string(&path)?);
            paths.extend(found.map_err(|said| {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("`{}`: {said}", path.display()),
                )
            })?);
        }
    }
    Ok(())
}

/// Returns the paths of a source that are more than sent to.
fn named(source: &str) -> Result<Vec<String>, String> {
    let mut paths = Vec::new();
    if [".nest(", ".route_service("]
        .iter()
        .any(|other| source.contains(other))
    {
        return Err("name each path by a `.route(`".to_owned());
    }
    for route in source.split(".route(").skip(1) {
        let Some((path, handler)) = route.split_once(',') else {
            continue;
        };
        if handler.trim_start().starts_with(SENT) {
            continue;
        }
        let path = path.trim().strip_prefix('"');
        let path = path.and_then(|path| path.strip_suffix('"'));
        paths.push(
            path.ok_or("a route is named by something else than its text")?
                .to_owned(),
        );
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_where_it_can_be_looked_at_and_not_where_it_is_only_sent_to() {
        let source = "Router::new().route(\"/\", get(board::show))\n.route(\n    \"/walks/{id}/lines\",\n    get(lines),\n)\
            .route(\"/walks\", post(begin)).route(PATH, post(take)).route(\"/door\", get(show).post(enter))";
        let found = named(source);
        assert_eq!(
            found,
            Ok(["/", "/walks/{id}/lines", "/door"]
                .map(str::to_owned)
                .into())
        );
        assert!(named(".route(PATH, get(show))").is_err());
        assert!(named(".nest(\"/walks\", router())").is_err());
    }

    #[test]
    fn the_route_that_names_more_of_a_path_answers_it() {
        let routes = ["/", "/ideas/new", "/ideas/{slug}"].map(str::to_owned);
        for (path, route) in [
            ("/", Some("/")),
            ("/ideas/new?x=1", Some("/ideas/new")),
            ("/ideas/walks", Some("/ideas/{slug}")),
            ("/ideas/", None),
            ("/ideas/walks/say", None),
        ] {
            assert_eq!(of(path, &routes), route, "{path}");
        }
    }
}
