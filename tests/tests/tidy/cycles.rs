//! No cycle among the modules of a crate: what a file imports must not lead back to it.
//!
//! A module is a file. Edges between a module and those below it are left aside, since a parent names its children
//! and a child may use what its parent holds. A name that is only passed on leads to the module that holds it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use syn::visit::{self, Visit};

use crate::workspace::Member;

/// A module by the parts of its path; the crate root has none.
type Module = Vec<String>;

/// The cycles of a member, each as one line.
pub(crate) fn violations(member: &Member) -> Result<Vec<String>> {
    let sources = member
        .files
        .iter()
        .filter_map(|(path, text)| Some((module_of(path)?, text)));
    let mut files = BTreeMap::new();
    for (module, text) in sources {
        let file =
            syn::parse_file(text).with_context(|| format!("cannot parse `{}`", shown(&module)))?;
        files.insert(module, file);
    }
    let crate_ = Crate::of(&files);
    let cycles = crate_.cycles();
    Ok(cycles
        .into_iter()
        .map(|cycle| format!("`{}` has a cycle of modules: {cycle}", member.directory))
        .collect())
}

/// The module that a file of `src` is; none for test modules and programs beside the crate.
fn module_of(path: &str) -> Option<Module> {
    let name = path.strip_prefix("src/")?.strip_suffix(".rs")?;
    if name.starts_with("bin/") || name == "tests" || name.ends_with("/tests") {
        return None;
    }
    if matches!(name, "lib" | "main") {
        return Some(Module::new());
    }
    Some(name.split('/').map(ToOwned::to_owned).collect())
}

fn shown(module: &Module) -> String {
    if module.is_empty() {
        "the root".to_owned()
    } else {
        module.join("/")
    }
}

/// The paths that each module names, and the names that it passes on.
struct Crate {
    modules: BTreeSet<Module>,
    named: BTreeMap<Module, Vec<Vec<String>>>,
    passed_on: BTreeMap<Module, BTreeMap<String, Module>>,
}

impl Crate {
    fn of(files: &BTreeMap<Module, syn::File>) -> Self {
        let mut crate_ = Self {
            modules: files.keys().cloned().collect(),
            named: BTreeMap::new(),
            passed_on: BTreeMap::new(),
        };
        for (module, file) in files {
            let mut paths = Paths::default();
            paths.visit_file(file);
            let passed_on = paths.public.iter().filter_map(|(name, path)| {
                let (home, _) = crate_.home_of(module, path)?;
                Some((name.clone(), home))
            });
            let passed_on = passed_on.collect();
            crate_.passed_on.insert(module.clone(), passed_on);
            crate_.named.insert(module.clone(), paths.all);
        }
        crate_
    }

    /// The deepest module of this crate on a path, and what of the path lies in it.
    fn home_of(&self, from: &Module, path: &[String]) -> Option<(Module, Vec<String>)> {
        let mut parts = path.iter().peekable();
        let mut home = match parts.peek()?.as_str() {
            "crate" => {
                parts.next();
                Module::new()
            }
            "self" => {
                parts.next();
                from.clone()
            }
            "super" => {
                let mut home = from.clone();
                while parts.next_if(|part| *part == "super").is_some() {
                    home.pop()?;
                }
                home
            }
            first => {
                let mut below = from.clone();
                below.push(first.to_owned());
                self.modules.contains(&below).then(|| from.clone())?
            }
        };
        while let Some(part) = parts.peek() {
            let mut below = home.clone();
            below.push((*part).clone());
            if !self.modules.contains(&below) {
                break;
            }
            home = below;
            parts.next();
        }
        Some((home, parts.cloned().collect()))
    }

    /// The module that holds what a path names.
    fn holder(&self, from: &Module, path: &[String]) -> Option<Module> {
        let (mut home, rest) = self.home_of(from, path)?;
        let mut followed = BTreeSet::new();
        while followed.insert(home.clone())
            && let Some(name) = rest.first()
            && let Some(next) = self.passed_on.get(&home).and_then(|names| names.get(name))
        {
            home.clone_from(next);
        }
        Some(home)
    }

    fn cycles(&self) -> Vec<String> {
        let modules: Vec<&Module> = self.modules.iter().collect();
        let number = |module: &Module| modules.binary_search(&module).unwrap_or_default();
        let mut graph: DiGraphMap<usize, ()> = DiGraphMap::new();
        for (module, paths) in &self.named {
            for path in paths {
                let Some(holder) = self.holder(module, path) else {
                    continue;
                };
                if !module.starts_with(&holder) && !holder.starts_with(module) {
                    graph.add_edge(number(module), number(&holder), ());
                }
            }
        }
        tarjan_scc(&graph)
            .into_iter()
            .filter(|cycle| cycle.len() > 1)
            .map(|mut cycle| {
                cycle.sort_unstable();
                let names: Vec<String> =
                    cycle.iter().map(|module| shown(modules[*module])).collect();
                names.join(", ")
            })
            .collect()
    }
}

/// Collects the paths of a file outside its inline test module.
#[derive(Default)]
struct Paths {
    all: Vec<Vec<String>>,
    /// Those that the file passes on, each under its name.
    public: Vec<(String, Vec<String>)>,
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        // What an inline module imports belongs to the tests.
        if module.content.is_none() {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let mut found = Vec::new();
        expand(&item.tree, &mut Vec::new(), &mut found);
        if !matches!(item.vis, syn::Visibility::Inherited) {
            self.public.extend(found.iter().cloned());
        }
        self.all.extend(found.into_iter().map(|(_, path)| path));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<String> = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        let is_local = |first: &String| matches!(first.as_str(), "crate" | "self" | "super");
        if parts.len() > 1 && parts.first().is_some_and(is_local) {
            self.all.push(parts);
        }
        visit::visit_path(self, path);
    }
}

/// Lists the paths of an import, each with the name that it has from then on.
fn expand(tree: &syn::UseTree, above: &mut Vec<String>, found: &mut Vec<(String, Vec<String>)>) {
    let mut leaf = |last: Option<String>, name: Option<String>| {
        let path: Vec<String> = above.iter().cloned().chain(last).collect();
        let name = name.or_else(|| path.last().cloned()).unwrap_or_default();
        found.push((name, path));
    };
    match tree {
        syn::UseTree::Path(path) => {
            above.push(path.ident.to_string());
            expand(&path.tree, above, found);
            above.pop();
        }
        syn::UseTree::Name(name) if name.ident == "self" => leaf(None, None),
        syn::UseTree::Name(name) => leaf(Some(name.ident.to_string()), None),
        syn::UseTree::Rename(rename) => {
            leaf(
                Some(rename.ident.to_string()),
                Some(rename.rename.to_string()),
            );
        }
        syn::UseTree::Glob(_) => leaf(None, None),
        syn::UseTree::Group(group) => {
            for tree in &group.items {
                expand(tree, above, found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let files: BTreeMap<Module, syn::File> = files
            .iter()
            .map(|(path, text)| (module_of(path).unwrap(), syn::parse_file(text).unwrap()))
            .collect();
        assert_eq!(Crate::of(&files).cycles(), expected);
    }

    #[test]
    fn a_cycle_is_found_however_its_modules_are_named() {
        let cycle = ["claim, settle"];
        check(
            &[
                ("src/lib.rs", "mod claim; mod settle;"),
                ("src/claim.rs", "use crate::settle::go;"),
                ("src/settle.rs", "fn f() { super::claim::next() }"),
            ],
            &cycle,
        );
        check(
            &[
                ("src/lib.rs", "mod claim; mod settle; pub use settle::Go;"),
                ("src/claim.rs", "use crate::Go;"),
                ("src/settle.rs", "use super::claim;"),
            ],
            &cycle,
        );
        check(
            &[
                (
                    "src/lib.rs",
                    "mod claim; mod settle; pub use settle::Go as Gone;",
                ),
                ("src/claim.rs", "use crate::Gone;"),
                ("src/settle.rs", "use super::claim;"),
            ],
            &cycle,
        );
    }

    #[test]
    fn parents_children_and_tests_make_no_cycle() {
        check(
            &[
                ("src/lib.rs", "mod queue; mod other;"),
                (
                    "src/queue.rs",
                    "mod order; use order::Order; pub struct Queue;",
                ),
                ("src/queue/order.rs", "use super::Queue;"),
                ("src/other.rs", "use crate::queue::Queue; use std::fmt;"),
                (
                    "src/queue/late.rs",
                    "#[cfg(test)] mod tests { use crate::other::X; }",
                ),
            ],
            &[],
        );
    }
}
