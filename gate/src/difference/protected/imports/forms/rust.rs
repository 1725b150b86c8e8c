//! `use a::{b, c::{self, d as e}};`, with or without `pub`.

use super::super::ImportedName;
use super::super::text::is_name;
use super::{named, renamed};

pub(super) fn begins(line: &str) -> bool {
    let (_, rest) = visibility(line);
    rest.starts_with("use ")
}

pub(super) fn ends(text: &str) -> bool {
    text.contains(';')
}

/// Parts `pub` or `pub(…)` from what follows.
fn visibility(text: &str) -> (&str, &str) {
    let Some(rest) = text.strip_prefix("pub") else {
        return ("", text);
    };
    let end = if rest.starts_with('(') {
        rest.find(')').map_or(0, |at| at + 1)
    } else {
        0
    };
    let (seen, rest) = text.split_at("pub".len() + end);
    (seen, rest.trim_start())
}

pub(super) fn bindings(text: &str) -> Option<Vec<ImportedName>> {
    let (seen, rest) = visibility(text.trim());
    let tree = rest.strip_prefix("use ")?.strip_suffix(';')?;
    let mut found = Vec::new();
    walk(seen, "", tree, &mut found)?;
    Some(found)
}

/// Adds what a tree below `path` brings in; none where it is not understood.
fn walk(seen: &str, path: &str, tree: &str, found: &mut Vec<ImportedName>) -> Option<()> {
    let tree = tree.trim();
    if let Some((head, group)) = tree.split_once('{') {
        let path = below(path, head.trim())?;
        let group = group.trim_end().strip_suffix('}')?;
        for part in parts(group) {
            walk(seen, &path, part, found)?;
        }
        return Some(());
    }
    let (head, last) = tree.rsplit_once("::").unwrap_or(("", tree));
    let path = match head {
        "" => path.to_owned(),
        head => below(path, &format!("{head}::"))?,
    };
    let module = format!("{seen} {path}");
    if last.trim() == "*" {
        found.push(ImportedName {
            key: format!("{module} *"),
            bound: None,
            origin: module,
            is_glob: true,
        });
        return Some(());
    }
    let (name, bound) = renamed(last, " as ")?;
    // `self` is the module itself, by its own name.
    let own = path.rsplit("::").next().unwrap_or_default();
    let bound = if bound == "self" { own } else { bound };
    found.push(if name == "self" {
        let around = path.strip_suffix(own).unwrap_or_default();
        let around = around.strip_suffix("::").unwrap_or(around);
        named(&format!("{seen} {around}"), own, bound)
    } else {
        named(&module, name, bound)
    });
    Some(())
}

/// Joins a path with one that ends in `::`.
fn below(path: &str, head: &str) -> Option<String> {
    let head = head.trim_start_matches("::");
    if head.is_empty() {
        return Some(path.to_owned());
    }
    let head = head.strip_suffix("::")?.trim();
    let are_names = head.split("::").all(|part| is_name(part.trim()));
    are_names.then(|| match path {
        "" => head.to_owned(),
        path => format!("{path}::{head}"),
    })
}

/// Parts a group at the commas that are not in a group of its own; an empty last part is none.
fn parts(group: &str) -> Vec<&str> {
    let (mut depth, mut from, mut found) = (0_usize, 0, Vec::new());
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                found.push(&group[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    found.push(&group[from..]);
    found.retain(|part| !part.trim().is_empty());
    found
}
