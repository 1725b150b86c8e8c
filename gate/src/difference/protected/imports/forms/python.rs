//! `import a.b as c, d` and `from a import b, c as d`, with or without parentheses.

use super::super::ImportedName;
use super::super::text::is_name;
use super::{named, renamed};

pub(super) fn begins(line: &str) -> bool {
    line.starts_with("import ") || line.starts_with("from ")
}

pub(super) fn ends(text: &str) -> bool {
    if text.contains('(') {
        return text.contains(')');
    }
    !text.trim_end().ends_with('\\')
}

pub(super) fn bindings(text: &str) -> Option<Vec<ImportedName>> {
    let text = text.replace("\\\n", " ").replace('\n', " ");
    match text.trim().strip_prefix("from ") {
        Some(rest) => from(rest),
        None => modules(text.trim().strip_prefix("import ")?),
    }
}

fn from(rest: &str) -> Option<Vec<ImportedName>> {
    let (module, names) = rest.split_once(" import ")?;
    let module = module.trim();
    let plain = module.trim_start_matches('.');
    let is_relative = plain.is_empty() && !module.is_empty();
    if !(is_relative || plain.split('.').all(is_name)) {
        return None;
    }
    let names = names.trim();
    if names == "*" {
        return Some(vec![ImportedName {
            key: format!("{module} *"),
            bound: None,
            origin: module.to_owned(),
            is_glob: true,
        }]);
    }
    let names = match names.strip_prefix('(') {
        Some(names) => names.strip_suffix(')')?.trim().trim_end_matches(','),
        None => names,
    };
    let names = names.split(',').map(|item| {
        let (name, bound) = renamed(item, " as ")?;
        Some(named(module, name, bound))
    });
    names.collect()
}

fn modules(names: &str) -> Option<Vec<ImportedName>> {
    let names = names.split(',').map(|item| {
        let (module, alias) = match item.split_once(" as ") {
            Some((module, alias)) => (module.trim(), Some(alias.trim())),
            None => (item.trim(), None),
        };
        let top = module.split('.').next()?;
        let bound = alias.unwrap_or(top);
        (module.split('.').all(is_name) && is_name(bound)).then(|| ImportedName {
            key: format!("{module} {bound}"),
            bound: Some(bound.to_owned()),
            // A part of a package comes with the package itself.
            origin: alias.map_or(top, |_| module).to_owned(),
            is_glob: false,
        })
    });
    names.collect()
}
