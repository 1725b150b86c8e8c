//! A type is named by a noun: by a participle nobody tells what the thing is, only what was done to it.

use anyhow::{Context, Result};
use syn::visit::{self, Visit};

/// Words that end like a participle and name a thing, and a wrapper that is read with what it wraps.
const NOUNS: [&str; 17] = [
    "Ending",
    "Finding",
    "Landing",
    "Need",
    "Nothing",
    "Opening",
    "Reading",
    "Ring",
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
    let file = syn::parse_file(text).with_context(|| format!("cannot read `{path}`"))?;
    let mut types = Types(Vec::new());
    types.visit_file(&file);
    let wrong = types.0.into_iter().filter(|name| is_participle(name));
    Ok(wrong
        .map(|name| format!("`{path}`: `{name}` is a participle; name what the type is"))
        .collect())
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
}
