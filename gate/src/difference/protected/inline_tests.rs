//! Judges what becomes of tests that stand beside what they test, in a product file of Rust: such a test may move, gain and
//! be written anew, but not go, be left out, or lose all its assertions.
//!
//! What does not parse is passed over, so that the rest is still seen; inside of macros (`proptest! { … }`) functions are
//! found by their words.

use std::collections::BTreeSet;

use tree_sitter::{Node, Parser};

use super::Change;

/// No longer file is parsed.
const LONGEST_BYTES: usize = 2 * 1024 * 1024;

/// The last names of attributes that make a function a test.
const TEST_ATTRIBUTES: &[&str] = &["test", "rstest", "test_case", "wasm_bindgen_test"];
/// The beginnings of attributes that leave a test out, or turn what it says round.
const LEAVES_OUT: &[&str] = &["cfg", "ignore", "should_panic"];
/// What a module of tests depends on.
const OF_TESTS: &str = "cfg(test)";
/// Parts of the names of what fails a test.
const ASSERTING: &[&str] = &["assert", "panic", "unwrap", "expect", "check"];

/// A test of Rust, or a module of tests that lies in a file of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlineTest {
    name: String,
    /// What it depends on, by itself or by way of the modules around it.
    conditions: BTreeSet<String>,
    has_assertions: bool,
}

impl InlineTest {
    /// Says whether it tests no less than `before` did.
    fn keeps(&self, before: &Self) -> bool {
        self.name == before.name
            && self.conditions.is_subset(&before.conditions)
            && (self.has_assertions || !before.has_assertions)
    }
}

/// Says why a change takes something from the tests of a product file; `gained` are those that came to any file.
pub(super) fn why(change: &Change<'_>, gained: &[InlineTest]) -> Option<String> {
    let path = change.path;
    let lost = left_over(
        &tests_of(path, change.before),
        &tests_of(path, change.after),
    );
    let lost = lost
        .into_iter()
        .find(|test| !gained.iter().any(|other| other.keeps(test)))?;
    Some(format!(
        "`{path}` holds the existing test `{}`, which is gone, left out or without any assertion",
        lost.name
    ))
}

/// Lists the tests that come to a file.
pub(in super::super) fn gained(change: &Change<'_>) -> Vec<InlineTest> {
    let before = tests_of(change.path, change.before);
    let mut tests = tests_of(change.path, change.after);
    tests.retain(|test| !before.iter().any(|known| known.name == test.name));
    tests
}

fn tests_of(path: &str, content: Option<&str>) -> Vec<InlineTest> {
    let is_rust = path.rsplit_once('.').is_some_and(|(_, end)| end == "rs");
    content.filter(|_| is_rust).map(read).unwrap_or_default()
}

/// Lists the tests for which there is none that keeps them, each for one.
fn left_over(before: &[InlineTest], after: &[InlineTest]) -> Vec<InlineTest> {
    let mut after: Vec<&InlineTest> = after.iter().collect();
    let lost = before.iter().filter(|test| {
        let at = after.iter().position(|other| other.keeps(test));
        at.map(|at| after.swap_remove(at)).is_none()
    });
    lost.cloned().collect()
}

fn read(content: &str) -> Vec<InlineTest> {
    let mut parser = Parser::new();
    let grammar = tree_sitter_rust::LANGUAGE.into();
    if content.len() > LONGEST_BYTES || parser.set_language(&grammar).is_err() {
        return Vec::new();
    }
    let Some(tree) = parser.parse(content, None) else {
        return Vec::new();
    };
    let mut reader = Reader {
        content,
        open: vec![(tree.root_node(), BTreeSet::new())],
        tests: Vec::new(),
    };
    // How deep a file nests is up to whoever wrote it, so that nothing here calls itself.
    while let Some((items, around)) = reader.open.pop() {
        if items.kind() == "token_tree" {
            reader.words(items, &around);
        } else {
            reader.items(items, around);
        }
    }
    reader.tests
}

/// Reads the tests of a file.
struct Reader<'a> {
    content: &'a str,
    /// What is still to be read, with what the modules around it depend on.
    open: Vec<(Node<'a>, BTreeSet<String>)>,
    tests: Vec<InlineTest>,
}

impl<'a> Reader<'a> {
    fn text(&self, node: Node<'_>) -> &'a str {
        self.content.get(node.byte_range()).unwrap_or_default()
    }

    /// Reads the items of a file or module.
    fn items(&mut self, list: Node<'a>, mut around: BTreeSet<String>) {
        let mut attributes: Vec<&str> = Vec::new();
        for item in list.named_children(&mut list.walk()) {
            match item.kind() {
                "inner_attribute_item" => around.extend(condition(bracketed(self.text(item)))),
                "attribute_item" => attributes.push(bracketed(self.text(item))),
                "mod_item" => self.module(item, &attributes, &around),
                "function_item" => {
                    let name = item.child_by_field_name("name");
                    let name = name.map_or("", |name| self.text(name));
                    let body = item.child_by_field_name("body");
                    self.function(name, body, &attributes, &around);
                }
                "macro_invocation" | "expression_statement" => {
                    self.open
                        .extend(tokens_of(item).map(|tokens| (tokens, around.clone())));
                }
                _ => {}
            }
            if !item.kind().ends_with("_comment") && item.kind() != "attribute_item" {
                attributes.clear();
            }
        }
    }

    fn module(&mut self, module: Node<'a>, attributes: &[&str], around: &BTreeSet<String>) {
        let own = attributes
            .iter()
            .filter_map(|attribute| condition(attribute));
        let own: BTreeSet<String> = own.collect();
        let all = around.union(&own).cloned().collect();
        if let Some(body) = module.child_by_field_name("body") {
            self.open.push((body, all));
        } else if own.contains(OF_TESTS) {
            let name = module.child_by_field_name("name");
            self.tests.push(InlineTest {
                name: format!("mod {}", name.map_or("", |name| self.text(name))),
                conditions: without_tests(all),
                has_assertions: false,
            });
        }
    }

    fn function(
        &mut self,
        name: &str,
        body: Option<Node<'_>>,
        attributes: &[&str],
        around: &BTreeSet<String>,
    ) {
        if !attributes.iter().any(|attribute| makes_test(attribute)) {
            return;
        }
        let own = attributes
            .iter()
            .filter_map(|attribute| condition(attribute));
        self.tests.push(InlineTest {
            name: name.to_owned(),
            conditions: without_tests(around.iter().cloned().chain(own).collect()),
            has_assertions: body.is_some_and(|body| self.asserts(body)),
        });
    }

    /// Finds functions in what a macro is given: `#`, `[…]`, …, `fn`, name, `(…)`, `{…}`.
    fn words(&mut self, tokens: Node<'a>, around: &BTreeSet<String>) {
        let (mut attributes, mut name): (Vec<&str>, Option<&str>) = (Vec::new(), None);
        let mut before = "";
        for token in tokens.children(&mut tokens.walk()) {
            let text = self.text(token);
            let is_tree = token.kind() == "token_tree";
            if is_tree && before == "#" {
                attributes.push(bracketed(text));
            } else if before == "fn" {
                name = Some(text);
            } else if is_tree && text.starts_with('{') {
                match name.take() {
                    Some(name) => self.function(name, Some(token), &attributes, around),
                    None => self.open.push((token, around.clone())),
                }
                attributes.clear();
            }
            before = text;
        }
    }

    /// Says whether a body has anything that fails where it does not find what it looks for.
    fn asserts(&self, body: Node<'_>) -> bool {
        let mut open = vec![body];
        while let Some(node) = open.pop() {
            let is_name = matches!(node.kind(), "identifier" | "field_identifier");
            let text = || self.text(node);
            if node.kind() == "try_expression"
                || is_name && ASSERTING.iter().any(|word| text().contains(word))
            {
                return true;
            }
            open.extend(node.named_children(&mut node.walk()));
        }
        false
    }
}

/// Returns what a macro is given.
fn tokens_of(item: Node<'_>) -> Option<Node<'_>> {
    let is = |kind: &'static str| move |node: &Node<'_>| node.kind() == kind;
    let called = match item.kind() {
        "macro_invocation" => Some(item),
        _ => item
            .named_children(&mut item.walk())
            .find(is("macro_invocation")),
    }?;
    called
        .named_children(&mut called.walk())
        .find(is("token_tree"))
}

/// Takes an attribute out of its brackets.
fn bracketed(text: &str) -> &str {
    let open = text.trim_start_matches(['#', '!', ' ', '\n']);
    open.strip_prefix('[')
        .map_or(open, |inner| inner.strip_suffix(']').unwrap_or(inner))
        .trim()
}

/// Tests are built for nothing else.
fn without_tests(mut conditions: BTreeSet<String>) -> BTreeSet<String> {
    conditions.remove(OF_TESTS);
    conditions
}

fn makes_test(attribute: &str) -> bool {
    let path = attribute.split(['(', '=', ' ']).next().unwrap_or(attribute);
    let last = path.rsplit("::").next().unwrap_or(path);
    TEST_ATTRIBUTES.contains(&last)
}

/// Returns what an attribute makes its item depend on, whatever reason it gives.
fn condition(attribute: &str) -> Option<String> {
    let leaves_out = |text: &str| {
        let text = text.trim_start();
        let begins = |word: &&&str| text.starts_with(**word);
        LEAVES_OUT.iter().find(begins).copied()
    };
    if let Some(chosen) = attribute.strip_prefix("cfg_attr") {
        let mut parts = chosen.split(',').skip(1);
        return parts
            .any(|part| leaves_out(part).is_some())
            .then(|| spaceless(attribute));
    }
    Some(match leaves_out(attribute)? {
        "cfg" => spaceless(attribute),
        word => word.to_owned(),
    })
}

fn spaceless(text: &str) -> String {
    text.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::{Change, gained, why};

    const FILE: &str = "//! Adds.\n\n/// Adds.\npub fn add(a: u8, b: u8) -> u8 {\n    a + b\n}\n\n#[cfg(test)]\nmod more;\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn adds() {\n        assert_eq!(add(1, 2), 3);\n    }\n\n    #[tokio::test]\n    #[cfg(unix)]\n    async fn waits() -> Result<(), ()> {\n        assert!(true);\n        Ok(())\n    }\n}\n";

    fn asked(after: &str, elsewhere: Option<&str>) -> Option<String> {
        let change = |path, before, after| Change {
            path,
            before,
            after,
        };
        let gained = gained(&change("src/b.rs", None, elsewhere));
        why(&change("src/a.rs", Some(FILE), Some(after)), &gained)
    }

    fn made(from: &str, to: &str) -> String {
        assert!(FILE.contains(from), "{from}");
        FILE.replace(from, to)
    }

    #[test]
    fn a_test_beside_the_product_may_gain_and_not_go() {
        let rows = [
            (made("    a + b", "    b + a"), false),
            (made("add(1, 2), 3", "add(2, 2), 4"), false),
            (made("#[cfg(unix)]\n    ", ""), false),
            (
                made(
                    "    use super::*;\n",
                    "    use super::*;\n\n    #[test]\n    fn more() {}\n",
                ),
                false,
            ),
            (
                made("#[tokio::test]", "#[tokio::test(start_paused = true)]"),
                false,
            ),
            (made("mod more;", "mod more {\n}"), true),
            (made("#[cfg(test)]\nmod more;\n", ""), true),
            (made("#[test]\n    fn adds", "fn adds"), true),
            (made("fn adds", "fn sums"), true),
            (made("#[test]", "#[test]\n    #[ignore = \"slow\"]"), true),
            (made("#[test]", "#[ignore] #[test]"), true),
            (made("#[test]", "#[test]\n    #[should_panic]"), true),
            (
                made("#[test]", "#[test]\n    #[cfg_attr(all(), ignore)]"),
                true,
            ),
            (
                made("#[test]", "#[test]\n    #[cfg_attr(a, allow(dead_code))]"),
                false,
            ),
            (
                made("#[test]", "#[test]\n    #[case(vec![\n        1,\n    ])]"),
                false,
            ),
            (made("#[test]", "// #[test]"), true),
            (
                made(
                    "//! Adds.\n",
                    "//! Adds.\n#![cfg_attr(docsrs, feature(doc_cfg))]\n",
                ),
                false,
            ),
            (made("    #[test]\n", "    /*\n    #[test]\n"), true),
            (made("#[cfg(unix)]", "#[cfg(windows)]"), true),
            (
                made(
                    "#[cfg(test)]\nmod tests",
                    "#[cfg(all(test, any()))]\nmod tests",
                ),
                true,
            ),
            (made("//! Adds.\n", "//! Adds.\n#![cfg(any())]\n"), true),
            (made("        assert_eq!(add(1, 2), 3);\n", ""), true),
            (FILE[..FILE.find("#[cfg(test)]").unwrap()].to_owned(), true),
        ];
        for (after, expected) in rows {
            let found = asked(&after, None);
            assert_eq!(found.is_some(), expected, "{after}: {found:?}");
        }
    }

    #[test]
    fn a_test_is_one_however_it_is_laid_out() {
        let rows = [
            (
                made(
                    "        assert_eq!(add(1, 2), 3);\n",
                    "        // assert_eq!\n",
                ),
                true,
            ),
            (
                made(
                    "    #[test]\n    fn adds() {\n        assert",
                    "#[test] fn\nadds() { assert",
                ),
                false,
            ),
            (
                made(
                    "    #[test]\n    fn adds",
                    "    const TEXT: &str = r\"\n    #[test]\n    fn adds() { assert!(true) }\";\n    fn adds",
                ),
                true,
            ),
            (
                made(
                    "    a + b",
                    &format!("{}a{}", "(".repeat(50_000), ")".repeat(50_000)),
                ),
                false,
            ),
        ];
        for (after, expected) in rows {
            let found = asked(&after, None);
            assert_eq!(found.is_some(), expected, "{after}: {found:?}");
        }
    }

    #[test]
    fn a_test_in_a_macro_is_one() {
        let file = "proptest! {\n    /// Adds.\n    #[test]\n    fn adds(a in 0..9_u8) {\n        prop_assert_eq!(add(a, 0), a);\n    }\n}\n";
        let asked = |after: &str| {
            let change = Change {
                path: "src/a.rs",
                before: Some(file),
                after: Some(after),
            };
            why(&change, &[])
        };
        assert_eq!(asked(&file.replace("0..9_u8", "0..200_u8")), None);
        for (from, to) in [
            ("#[test]", ""),
            ("fn adds", "fn sums"),
            ("#[test]", "#[test]\n    #[ignore]"),
            ("prop_assert_eq!(add(a, 0), a);", ""),
        ] {
            assert!(asked(&file.replace(from, to)).is_some(), "{from}");
        }
    }

    #[test]
    fn a_test_may_move_to_another_file() {
        let after = FILE.replace(
            "    #[test]\n    fn adds() {\n        assert_eq!(add(1, 2), 3);\n    }\n",
            "",
        );
        assert!(asked(&after, None).is_some());
        let moved = "#[test]\nfn adds() {\n    assert_eq!(add(1, 2), 3);\n}\n";
        assert_eq!(asked(&after, Some(moved)), None);
        assert!(
            asked(
                &after,
                Some(&moved.replace("#[test]", "#[test]\n#[ignore]"))
            )
            .is_some()
        );
    }
}
