//! A type is named by a noun: by a participle nobody tells what the thing is, only what was done to it. An error has a name of its own.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use syn::visit::{self, Visit};

/// Words that end like a participle and name a thing, and a wrapper that is read with what it wraps.
const NOUNS: [&str; 16] = [
    "Ending",
    "Finding",
    "Landing",
    "Need",
    "Nothing",
    "Opening",
    "Reading",
    "Routing",
    "Ruling",
    "Screen",
    "Shutdown",
    "Sighting",
    "Spending",
    "Steering",
    "Token",
    "Versioned",
];

/// The ends of participles, present and past.
const ENDS: [&str; 4] = ["ed", "en", "ing", "wn"];

/// The types of a file that are named by one word which is no noun.
pub(crate) fn violations(path: &str, text: &str) -> Result<Vec<String>> {
    let names = names(path, text)?.into_iter();
    let wrong = names.filter(|name| is_participle(name));
    Ok(wrong
        .map(|name| format!("`{path}`: `{name}` is a participle; name what the type is"))
        .collect())
}

/// The error types of `files`, each a path with its text, that have one name. One that is called `Error` is named by its module, and
/// those of tests stand in no report.
pub(crate) fn twin_errors<'a>(
    files: impl IntoIterator<Item = (String, &'a str)>,
) -> Result<Vec<String>> {
    let mut homes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in files {
        if !path.contains("/src/") {
            continue;
        }
        for name in names(&path, text)? {
            if name.ends_with("Error") && name != "Error" {
                homes.entry(name).or_default().push(format!("`{path}`"));
            }
        }
    }
    let twins = homes.into_iter().filter(|(_, paths)| paths.len() > 1);
    Ok(twins
        .map(|(name, paths)| {
            let paths = paths.join(" and ");
            format!("{paths} have an error `{name}` each: name them by what fails")
        })
        .collect())
}

fn names(path: &str, text: &str) -> Result<Vec<String>> {
    let file = syn::parse_file(text).with_context(|| format!("cannot read `{path}`"))?;
    let mut types = Types(Vec::new());
    types.visit_file(&file);
    Ok(types.0)
}

fn is_participle(name: &str) -> bool {
    let words = name.chars().filter(char::is_ascii_uppercase).count();
    let ends = ENDS.iter().any(|end| name.ends_with(end));
    words == 1 && ends && !NOUNS.contains(&name)
}

/// The names of the types of a file; what a type may be, its variants, is named by what it went through.
struct Types(Vec<String>);

impl<'ast> Visit<'ast> for Types {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.0.push(item.ident.to_string());
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.0.push(item.ident.to_string());
        visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.0.push(item.ident.to_string());
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.0.push(item.ident.to_string());
        visit::visit_item_type(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_participle_is_found_and_a_noun_and_a_variant_are_not() {
        let text = "struct Landed; enum Outcome { Landed, Written } fn f() { struct Waiting; }\n\
                    type Written = u8; trait Broken {} struct Landing; struct Token; struct OpenQuestion;";
        let found = violations("a.rs", text).unwrap();
        let names = ["Landed", "Waiting", "Written", "Broken"];
        assert_eq!(found.len(), names.len(), "{found:?}");
        for (line, name) in found.iter().zip(names) {
            assert!(line.contains(&format!("`{name}`")), "{line}");
        }
    }

    #[test]
    fn two_errors_of_one_name_are_found() {
        let hook = "pub enum HookError { Late } struct Hook;";
        let files = |other| {
            [("a/src/a.rs", hook), ("b/src/b.rs", other)]
                .map(|(path, text)| (path.to_owned(), text))
        };
        let found = twin_errors(files("struct HookError(String);")).unwrap();
        assert_eq!(
            found,
            [
                "`a/src/a.rs` and `b/src/b.rs` have an error `HookError` each: name them by what fails"
            ]
        );
        for other in [
            "enum UpdateError { Late } struct Hook;",
            "use crate::HookError;",
        ] {
            assert_eq!(twin_errors(files(other)).unwrap(), Vec::<String>::new());
        }
        for (path, text) in [
            ("b/tests/all.rs", hook),
            ("b/src/b.rs", "pub enum Error { Late }"),
        ] {
            let error = (
                "a/src/a.rs".to_owned(),
                "pub enum Error { Late } enum HookError {}",
            );
            let found = twin_errors([error, (path.to_owned(), text)]).unwrap();
            assert_eq!(found, Vec::<String>::new(), "{path}");
        }
    }
}
