//! What a crate offers, somebody takes: a public function that only tests call is dead, or awaits work that is named.
//!
//! Names are compared, not paths: a function that shares its name with one that is called goes unseen. A variable or a field of that
//! name is no call, but for a free function, which is called by a word alone.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use syn::visit::{self, Visit};

use crate::workspace::Member;

/// Members that hold no part of the product.
const BESIDE: [&str; 3] = ["benches", "tests", "tests/world"];

/// The functions that no production code calls, with what they are there for.
const AWAITED: [(&str, &str); 9] = [
    ("all_held", "leases as benchmarks and faults look at them"),
    (
        "arm",
        "failpoints, compiled into a program of the tests alone",
    ),
    (
        "backlog",
        "the bound of an inbox, as tests of it look at it",
    ),
    (
        "emitted",
        "what an agent decided, as tests of it look at it",
    ),
    ("manual", "a clock that tests move"),
    ("may_be_promoted", "promotion by consent, V20"),
    ("preserved", "what is kept of attempts, as tests look at it"),
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
    defined: BTreeMap<String, Definition>,
    /// What is called by a path, as a method, in a macro or by an attribute.
    called: BTreeSet<String>,
    /// Words that stand alone: calls of free functions, and variables.
    words: BTreeSet<String>,
}

/// Where a public function is defined.
struct Definition {
    path: String,
    is_method: bool,
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
        let is_called = |name: &String, definition: &Definition| {
            self.called.contains(name) || (!definition.is_method && self.words.contains(name))
        };
        let uncalled: BTreeMap<&String, &String> = self
            .defined
            .iter()
            .filter(|(name, definition)| !is_called(name, definition))
            .map(|(name, definition)| (name, &definition.path))
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
    fn define(&mut self, visibility: &syn::Visibility, name: &syn::Ident, is_method: bool) {
        if matches!(visibility, syn::Visibility::Public(_)) {
            let path = self.path.to_owned();
            let definition = Definition { path, is_method };
            self.names.defined.insert(name.to_string(), definition);
        }
    }

    fn call(&mut self, name: &syn::Ident) {
        self.names.called.insert(name.to_string());
    }

    /// Takes each word of a macro as a use, since its content is not parsed.
    fn words(&mut self, tokens: proc_macro2::TokenStream) {
        for token in tokens {
            match token {
                proc_macro2::TokenTree::Ident(name) => self.call(&name),
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
        self.define(&function.vis, &function.sig.ident, false);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.define(&function.vis, &function.sig.ident, true);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_use_tree(&mut self, _: &'ast syn::UseTree) {
        // Whoever passes a name on does not call it.
    }

    fn visit_expr_path(&mut self, named: &'ast syn::ExprPath) {
        if let Some(last) = named.path.segments.last() {
            if named.path.get_ident().is_some() {
                self.names.words.insert(last.ident.to_string());
            } else {
                self.call(&last.ident);
            }
        }
        visit::visit_expr_path(self, named);
    }

    fn visit_expr_method_call(&mut self, called: &'ast syn::ExprMethodCall) {
        self.call(&called.method);
        visit::visit_expr_method_call(self, called);
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
            self.names.called.extend(last.map(ToOwned::to_owned));
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
    fn a_variable_a_field_and_a_variant_are_no_call() {
        for named in [
            "fn f() { let dead = 1; g(dead) } fn g(_: u8) {}",
            "struct T { dead: u8 } fn f(t: T) -> u8 { t.dead }",
            "enum E { dead } fn f() -> E { use E::*; dead }",
        ] {
            let text = format!("struct S; impl S {{ pub fn dead() {{}} }} {named}");
            check(&text, &[], &["`src/lib.rs`: only tests call `dead`"]);
        }
    }

    #[test]
    fn an_excuse_for_what_is_called_is_found() {
        let called = "pub fn used() {} fn f() { used() }";
        let stale = "`used` is called, or gone, and need not be excused";
        check(called, &[("used", "work to come")], &[stale]);
    }
}
