//! `import "a/b"`, `import c "a/b"`, and several of them in parentheses.

use super::super::ImportedName;
use super::super::text::is_name;

pub(super) fn begins(line: &str) -> bool {
    line.starts_with("import ")
}

pub(super) fn ends(text: &str) -> bool {
    !text.contains('(') || text.contains(')')
}

pub(super) fn bindings(text: &str) -> Option<Vec<ImportedName>> {
    let rest = text.trim().strip_prefix("import")?.trim_start();
    let rest = match rest.strip_prefix('(') {
        Some(rest) => rest.strip_suffix(')')?,
        None => rest,
    };
    let lines = rest.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(binding).collect()
}

fn binding(line: &str) -> Option<ImportedName> {
    let (alias, path) = line.split_once('"')?;
    let path = path.strip_suffix('"').filter(|path| !path.contains('"'))?;
    let (alias, own) = (alias.trim(), path.rsplit('/').next()?);
    let bound = match alias {
        "" => own,
        "." | "_" => alias,
        alias => is_name(alias).then_some(alias)?,
    };
    Some(ImportedName {
        key: format!("{path} {bound}"),
        bound: (!matches!(bound, "." | "_")).then(|| bound.to_owned()),
        origin: path.to_owned(),
        is_glob: bound == ".",
    })
}
