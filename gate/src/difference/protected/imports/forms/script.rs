//! `import a, { b, c as d } from "e"`, `import * as a from "b"`, `import "a"`, and `const { a, b: c } = require("d")`.

use super::super::ImportedName;
use super::super::text::is_name;
use super::{named, renamed};

pub(super) fn begins(line: &str) -> bool {
    let is_import = line.strip_prefix("import").is_some_and(|rest| {
        rest.starts_with([' ', '{', '*', '"', '\'']) && !rest.trim_start().starts_with('(')
    });
    is_import
        || ["const {", "let {", "var {"]
            .iter()
            .any(|word| line.starts_with(word))
}

pub(super) fn ends(text: &str) -> bool {
    let quotes = text.matches(['"', '\'']).count();
    quotes >= 2 || text.contains(';')
}

pub(super) fn bindings(text: &str) -> Option<Vec<ImportedName>> {
    let text = text.trim().trim_end_matches(';').trim_end();
    match text.strip_prefix("import") {
        Some(rest) => imported(rest.trim_start()),
        None => required(text),
    }
}

fn imported(rest: &str) -> Option<Vec<ImportedName>> {
    if rest.starts_with(['"', '\'']) {
        let module = quoted(rest)?;
        return Some(vec![ImportedName {
            key: format!("{module} runs"),
            bound: None,
            origin: module.to_owned(),
            is_glob: false,
        }]);
    }
    let (names, module) = rest.split_at(rest.find(['"', '\''])?);
    let mut module = quoted(module.trim())?.to_owned();
    let mut names = names.trim_end().strip_suffix("from")?.trim();
    if let Some(types) = names.strip_prefix("type ") {
        module.push_str(" type");
        names = types.trim_start();
    }
    let mut found = Vec::new();
    let (first, group) = match names.split_once('{') {
        Some((first, group)) => (first.trim().trim_end_matches(',').trim_end(), Some(group)),
        None => (names, None),
    };
    for item in first
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
    {
        found.push(match item.strip_prefix("* as ") {
            Some(all) => is_name(all.trim()).then(|| named(&module, "*", all.trim()))?,
            None => is_name(item).then(|| named(&module, "default", item))?,
        });
    }
    if let Some(group) = group {
        members(&module, group.trim().strip_suffix('}')?, " as ", &mut found)?;
    }
    Some(found)
}

fn required(text: &str) -> Option<Vec<ImportedName>> {
    let (word, rest) = text.split_once('{')?;
    let (names, call) = rest.split_once('}')?;
    let module = call.trim_start().strip_prefix('=')?.trim_start();
    let module = module.strip_prefix("require(")?.strip_suffix(')')?;
    let module = format!("{} {}", quoted(module.trim())?, word.trim());
    let mut found = Vec::new();
    members(&module, names, ":", &mut found)?;
    Some(found)
}

/// Adds the members of a group.
fn members(module: &str, group: &str, by: &str, found: &mut Vec<ImportedName>) -> Option<()> {
    for item in group
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
    {
        let plain = item.strip_prefix("type ").unwrap_or(item);
        let (name, bound) = renamed(plain, by)?;
        let kind = if plain == item { "" } else { " type" };
        found.push(named(&format!("{module}{kind}"), name, bound));
    }
    Some(())
}

/// Returns what is between quotes, where there is nothing else.
fn quoted(text: &str) -> Option<&str> {
    let quote = text
        .chars()
        .next()
        .filter(|first| matches!(first, '"' | '\''))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    (!inner.contains(['"', '\''])).then_some(inner)
}
