//! A file that no crate root reaches is never compiled, and its tests never run.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};

use crate::workspace::Member;

/// The source files of a member that no `mod` line reaches.
pub(crate) fn violations(member: &Member) -> Result<Vec<String>> {
    let forgotten = forgotten(&member.manifest.target_paths, &member.files)?;
    Ok(forgotten
        .into_iter()
        .map(|path| {
            format!(
                "`{}/{path}` is never compiled: no `mod` line names it",
                member.directory
            )
        })
        .collect())
}

fn forgotten(target_paths: &[String], files: &BTreeMap<String, String>) -> Result<Vec<String>> {
    let mut walk = Walk {
        files,
        reached: BTreeSet::new(),
    };
    for path in files.keys() {
        if is_root(path) || target_paths.contains(path) {
            walk.file(path, directory(path))?;
        }
    }
    Ok(files
        .keys()
        .filter(|path| !walk.reached.contains(*path))
        .cloned()
        .collect())
}

/// The files that the target with this root is made of; none where there is no such target.
pub(crate) fn reached(root: &str, files: &BTreeMap<String, String>) -> Result<BTreeSet<String>> {
    let mut walk = Walk {
        files,
        reached: BTreeSet::new(),
    };
    walk.file(root, directory(root))?;
    Ok(walk.reached)
}

/// Whether cargo compiles the file by itself.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["build.rs"] | ["src", "lib.rs" | "main.rs"] => true,
        ["src", "bin", rest @ ..] | ["tests" | "benches" | "examples", rest @ ..] => {
            matches!(rest, [_] | [_, "main.rs"])
        }
        _ => false,
    }
}

struct Walk<'a> {
    files: &'a BTreeMap<String, String>,
    reached: BTreeSet<String>,
}

impl Walk<'_> {
    /// Follows the modules of a file; those without a `path` lie in `modules`.
    fn file(&mut self, path: &str, modules: &str) -> Result<()> {
        let Some(text) = self.files.get(path) else {
            return Ok(());
        };
        if !self.reached.insert(path.to_owned()) {
            return Ok(());
        }
        let file = syn::parse_file(text).with_context(|| format!("cannot parse `{path}`"))?;
        self.items(&file.items, directory(path), modules)
    }

    fn items(&mut self, items: &[syn::Item], beside: &str, modules: &str) -> Result<()> {
        for item in items {
            let syn::Item::Mod(module) = item else {
                continue;
            };
            let inner = format!("{modules}/{}", module.ident);
            if let Some((_, content)) = &module.content {
                self.items(content, &inner, &inner)?;
            } else if let Some(named) = named_path(module) {
                let path = resolved(&format!("{beside}/{named}"));
                self.file(&path, directory(&path))?;
            } else {
                self.file(&format!("{inner}.rs"), &inner)?;
                self.file(&format!("{inner}/mod.rs"), &inner)?;
            }
        }
        Ok(())
    }
}

/// The file that a `#[path = "…"]` names.
fn named_path(module: &syn::ItemMod) -> Option<String> {
    module
        .attrs
        .iter()
        .find_map(|attribute| match &attribute.meta {
            syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
                syn::Expr::Lit(syn::ExprLit {
                    lit: syn::Lit::Str(text),
                    ..
                }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        })
}

/// The path without the steps back in it.
fn resolved(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

fn directory(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let files = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
            .collect();
        let targets = ["scenarios/main.rs".to_owned()];
        assert_eq!(forgotten(&targets, &files).unwrap(), expected);
    }

    #[test]
    fn a_scenario_without_its_mod_line_is_found() {
        let found = [
            ("tests/scenarios/main.rs", "mod idea;"),
            ("tests/scenarios/idea.rs", ""),
            ("tests/scenarios/task.rs", "#[test] fn never_runs() {}"),
        ];
        check(&found, &["tests/scenarios/task.rs"]);
        check(
            &[
                ("scenarios/main.rs", "mod idea;"),
                ("scenarios/idea.rs", ""),
            ],
            &[],
        );
    }

    #[test]
    fn modules_are_followed_as_the_compiler_does() {
        let files = [
            (
                "src/lib.rs",
                "mod turn; mod inline { mod deep; } #[path = \"odd.rs\"] mod even;",
            ),
            ("tests/twice/main.rs", "#[path = \"../once/of.rs\"] mod of;"),
            ("tests/once/of.rs", ""),
            ("src/turn.rs", "mod step;"),
            ("src/turn/step.rs", ""),
            ("src/inline/deep.rs", ""),
            ("src/odd.rs", ""),
            ("src/step.rs", ""),
            ("src/bin/tool.rs", ""),
            ("tests/suite.rs", ""),
            ("build.rs", ""),
        ];
        check(&files, &["src/step.rs"]);
    }
}
