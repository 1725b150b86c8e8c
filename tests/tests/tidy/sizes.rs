//! Bounds on files, functions and crates, set before anything has outgrown them.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use syn::visit::{self, Visit};

use crate::workspace::Member;

const FILE_LINES: usize = 600;
const FUNCTION_LINES: usize = 80;

const FOLDER_FILES: usize = 20;

/// The folder that may hold more: it has a file for each word.
const WIDE_FOLDER: &str = "schemas/src";

/// The largest share of the workspace that one crate may hold.
const CRATE_PERCENT: usize = 20;

/// A workspace smaller than this has no shape yet, and shares say nothing.
const SMALLEST_LINES: usize = 10_000;

/// A file with too many lines outside its inline test module.
pub(crate) fn long_file(path: &str, text: &str) -> Result<Vec<String>> {
    let lines = production_lines(path, text)?;
    let long = (lines > FILE_LINES).then(|| {
        format!(
            "`{path}` has {lines} lines, more than {FILE_LINES}: split it by what changes together"
        )
    });
    Ok(long.into_iter().collect())
}

/// The functions of a file that are too long, from `fn` to the closing brace.
pub(crate) fn long_functions(path: &str, text: &str) -> Result<Vec<String>> {
    let mut functions = Functions::default();
    functions.visit_file(&parse(path, text)?);
    Ok(functions
        .found
        .into_iter()
        .filter(|(_, lines)| *lines > FUNCTION_LINES)
        .map(|(name, lines)| {
            format!("`{path}`: `{name}` has {lines} lines, more than {FUNCTION_LINES}")
        })
        .collect())
}

/// The folders of a member with too many files for one look, and those that are excused for nothing.
pub(crate) fn crowded_folders(member: &Member) -> Vec<String> {
    let mut folders: BTreeMap<String, usize> = BTreeMap::new();
    for path in member.files.keys() {
        let path = format!("{}/{path}", member.directory);
        if let Some((folder, _)) = path.rsplit_once('/') {
            *folders.entry(folder.to_owned()).or_default() += 1;
        }
    }
    folders
        .into_iter()
        .filter_map(|(folder, files)| {
            let is_excused = folder == WIDE_FOLDER;
            match (files > FOLDER_FILES, is_excused) {
                (true, false) => Some(format!(
                    "`{folder}` has {files} files, more than {FOLDER_FILES}: group those that change together"
                )),
                (false, true) => Some(format!("`{folder}` need not be excused any more")),
                _ => None,
            }
        })
        .collect()
}

/// The crates that hold too much of the whole.
pub(crate) fn heavy_crates(crates: &[(String, usize)]) -> Vec<String> {
    let total: usize = crates.iter().map(|(_, lines)| lines).sum();
    crates
        .iter()
        .filter(|(_, lines)| total >= SMALLEST_LINES && lines * 100 > total * CRATE_PERCENT)
        .map(|(name, lines)| {
            format!("`{name}` has {lines} of {total} lines, more than {CRATE_PERCENT} %")
        })
        .collect()
}

/// The production lines of a crate: its sources without tests.
pub(crate) fn crate_lines(member: &Member) -> Result<usize> {
    member
        .files
        .iter()
        .filter(|(path, _)| path.starts_with("src/") && !is_test_module(path))
        .map(|(path, text)| production_lines(path, text))
        .sum()
}

fn is_test_module(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

fn production_lines(path: &str, text: &str) -> Result<usize> {
    let tests: usize = parse(path, text)?.items.iter().map(test_module_lines).sum();
    Ok(text.lines().count() - tests)
}

/// The lines of an inline `#[cfg(test)]` module, its attribute included; nothing for other items.
fn test_module_lines(item: &syn::Item) -> usize {
    match item {
        syn::Item::Mod(module) if module.content.is_some() => module
            .attrs
            .iter()
            .find(|attribute| is_cfg_test(attribute))
            .zip(module.content.as_ref())
            .map_or(0, |(attribute, (braces, _))| {
                lines_between(attribute.pound_token.span, braces.span.close())
            }),
        _ => 0,
    }
}

fn is_cfg_test(attribute: &syn::Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute
            .parse_args::<syn::Path>()
            .is_ok_and(|condition| condition.is_ident("test"))
}

fn lines_between(first: proc_macro2::Span, last: proc_macro2::Span) -> usize {
    last.end().line - first.start().line + 1
}

fn parse(path: &str, text: &str) -> Result<syn::File> {
    syn::parse_file(text).with_context(|| format!("cannot parse `{path}`"))
}

/// Collects every function with its length.
#[derive(Default)]
struct Functions {
    found: Vec<(String, usize)>,
}

impl Functions {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let lines = lines_between(signature.fn_token.span, block.brace_token.span.close());
        self.found.push((signature.ident.to_string(), lines));
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.add(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_is_found_and_its_tests_do_not_count() {
        let long = "const X: () = ();\n".replace('X', "_");
        let module = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", long.repeat(50));
        let cases = [
            (long.repeat(600), true),
            (long.repeat(601), false),
            (format!("{}{module}", long.repeat(600)), true),
            (format!("{}{module}{long}", long.repeat(600)), false),
            (
                format!("{}#[cfg(test)]\nmod tests;\n", long.repeat(599)),
                false,
            ),
        ];
        for (text, expected) in cases {
            let found = long_file("bus/src/lib.rs", &text).unwrap();
            assert_eq!(found.is_empty(), expected, "{found:?}");
        }
    }

    #[test]
    fn a_long_function_is_found_wherever_it_stands() {
        let short = format!("fn f() {{\n{}}}\n", "g();\n".repeat(78));
        let long = format!("fn f() {{\n{}}}\n", "g();\n".repeat(79));
        let cases = [
            (short.clone(), 0),
            (long.clone(), 1),
            (format!("impl S {{\n{long}}}"), 1),
            (format!("trait T {{\n{long}}}"), 1),
            (format!("mod m {{\n{long}}}"), 1),
            (format!("fn outer() {{\n{long}}}"), 2),
            (format!("/// A long comment.\n#[inline]\n{short}"), 0),
        ];
        for (text, expected) in cases {
            let found = long_functions("bus/src/lib.rs", &text).unwrap();
            assert_eq!(found.len(), expected, "{found:?}");
        }
    }

    #[test]
    fn a_crowded_folder_and_a_stale_excuse_are_found() {
        let member = |directory: &str, files: usize| Member {
            directory: directory.to_owned(),
            manifest: crate::manifest::Manifest::default(),
            files: (0..files)
                .map(|number| (format!("src/f{number}.rs"), String::new()))
                .collect(),
        };
        for (directory, files, expected) in [
            ("bus", 20, 0),
            ("bus", 21, 1),
            ("schemas", 21, 0),
            ("schemas", 20, 1),
        ] {
            let found = crowded_folders(&member(directory, files));
            assert_eq!(found.len(), expected, "{directory} {files}: {found:?}");
        }
    }

    #[test]
    fn a_heavy_crate_is_found() {
        let cases = [
            // Too small to have a shape; then just at the bound and just above it.
            (vec![9_999], 0),
            (vec![20_000, 20_000, 20_000, 20_000, 20_000], 0),
            (vec![20_001, 20_000, 20_000, 20_000, 19_999], 1),
        ];
        for (lines, expected) in cases {
            let crates: Vec<_> = lines
                .iter()
                .map(|lines| ("bus".to_owned(), *lines))
                .collect();
            let found = heavy_crates(&crates);
            assert_eq!(found.len(), expected, "{lines:?}: {found:?}");
        }
    }
}
