//! What a crate offers, somebody takes: a public function that only tests call is dead, or awaits work that is named.
//!
//! Names are compared, not paths: a function that shares its name with one that is called goes unseen.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use syn::visit::{self, Visit};

use crate::house::Member;

/// Members that hold no part of the product.
const BESIDE: [&str; 3] = ["benches", "tests", "tests/world"];

/// The functions that no production code calls, with what they are there for.
const AWAITED: [(&str, &str); 6] = [
    ("all_held", "leases as benchmarks and faults look at them"),
    (
        "arm",
        "failpoints, compiled into a program of the tests alone",
    ),
    (
        "backlog",
        "the bound of an inbox, as tests of it look at it",
    ),
    ("may_be_promoted", "promotion by consent, V20"),
    ("promote", "promotion by consent, V20"),
    ("seeded", "identifiers of the simulation"),
];

/// The public functions without a caller that the list does not excuse, and those that it excuses for nothing.
pub(crate) fn violations(members: &[Member]) -> Result<Vec<String>> {
    let mut names = Names::default();
    for member in members {
        let is_product = !BESIDE.contains(&member.directory.as_str());
        for (path, text) in member.files.iter().filter(|_| is_product) {
            if path.starts_with("src/") && !is_test_module(path) {
                let shown = format!("{}/{path}", member.directory);
                names.read(&shown, text)?;
            }
        }
    }
    Ok(names.violations(&AWAITED))
}

fn is_test_module(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// Where public functions are defined, and which names are used.
#[derive(Default)]
struct Names {
    defined: BTreeMap<String, String>,
    used: BTreeSet<String>,
}

impl Names {
    fn read(&mut self, path: &str, text: &str) -> Result<()> {
        let file = syn::parse_file(text).with_context(|| format!("cannot parse `{path}`"))?;
        let mut reader = Reader { names: self, path };
        reader.visit_file(&file);
        Ok(())
    }

    fn violations(&self, awaited: &[(&str, &str)]) -> Vec<String> {
        let is_awaited = |name: &str| awaited.iter().any(|(known, _)| *known == name);
        let uncalled: BTreeMap<&String, &String> = self
            .defined
            .iter()
            .filter(|(name, _)| !self.used.contains(*name))
            .collect();
        let dead = uncalled
            .iter()
            .filter(|(name, _)| !is_awaited(name))
            .map(|(name, path)| format!("`{path}`: only tests call `{name}`"));
        let stale = awaited
            .iter()
            .filter(|(name, _)| !uncalled.contains_key(&(*name).to_owned()))
            .map(|(name, _)| format!("`{name}` is called, or gone, and need not be excused"));
        dead.chain(stale).collect()
    }
}

struct Reader<'a> {
    names: &'a mut Names,
    path: &'a str,
}

impl Reader<'_> {
    fn define(&mut self, visibility: &syn::Visibility, name: &syn::Ident) {
        if matches!(visibility, syn::Visibility::Public(_)) {
            let path = self.path.to_owned();
            self.names.defined.insert(name.to_string(), path);
        }
    }

    /// Takes each word of a macro as a use, since its content is not parsed.
    fn words(&mut self, tokens: proc_macro2::TokenStream) {
        for token in tokens {
            match token {
                proc_macro2::TokenTree::Ident(name) => {
                    self.names.used.insert(name.to_string());
                }
                proc_macro2::TokenTree::Group(group) => self.words(group.stream()),
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        // What an inline module calls belongs to the tests.
        if module.ident != "tests" {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.define(&function.vis, &function.sig.ident);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.define(&function.vis, &function.sig.ident);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        // Its own name is no use of it.
        visit::visit_generics(self, &signature.generics);
        for input in &signature.inputs {
            visit::visit_fn_arg(self, input);
        }
        visit::visit_return_type(self, &signature.output);
    }

    fn visit_use_tree(&mut self, _: &'ast syn::UseTree) {
        // Whoever passes a name on does not call it.
    }

    fn visit_ident(&mut self, name: &'ast syn::Ident) {
        self.names.used.insert(name.to_string());
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.words(called.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if let syn::Meta::List(list) = &attribute.meta {
            self.words(list.tokens.clone());
            // `#[serde(default = "name")]` names a function in a text.
            let texts = list.tokens.to_string();
            let named = texts.split('"').skip(1).step_by(2);
            let last = named.filter_map(|path| path.rsplit("::").next());
            self.names.used.extend(last.map(ToOwned::to_owned));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, awaited: &[(&str, &str)], expected: &[&str]) {
        let mut names = Names::default();
        names.read("src/lib.rs", text).unwrap();
        assert_eq!(names.violations(awaited), expected);
    }

    #[test]
    fn a_function_for_tests_alone_is_found() {
        let dead = "pub fn dead() {} #[cfg(test)] mod tests { fn f() { super::dead() } }";
        check(dead, &[], &["`src/lib.rs`: only tests call `dead`"]);
        check(dead, &[("dead", "work to come")], &[]);
        let passed_on = "pub use a::dead; mod a { pub fn dead() {} }";
        check(passed_on, &[], &["`src/lib.rs`: only tests call `dead`"]);
    }

    #[test]
    fn a_call_by_path_method_macro_or_attribute_is_one() {
        for call in [
            "fn f() { crate::used() }",
            "fn f(x: X) { x.used() }",
            "fn f() { println!(\"{}\", used()) }",
            "struct S { #[serde(default = \"S::used\")] a: u8 }",
        ] {
            check(&format!("pub fn used() {{}} {call}"), &[], &[]);
        }
    }

    #[test]
    fn an_excuse_for_what_is_called_is_found() {
        let called = "pub fn used() {} fn f() { used() }";
        let stale = "`used` is called, or gone, and need not be excused";
        check(called, &[("used", "work to come")], &[stale]);
    }
}
