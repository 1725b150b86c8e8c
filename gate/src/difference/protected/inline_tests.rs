//! Judges what becomes of tests that stand beside what they test, in a product file of Rust: such a test may move, gain and
//! be written anew, but not go, be left out, or lose all its assertions.
//!
//! Lines are read as rustfmt lays them out; of what is laid out otherwise less is seen, and nothing is asked.

use std::collections::BTreeSet;

use super::Change;

/// The last names of attributes that make a function a test.
const TEST_ATTRIBUTES: &[&str] = &["test", "rstest", "test_case", "wasm_bindgen_test"];
/// The beginnings of attributes that leave a test out, or turn what it says round.
const LEAVES_OUT: &[&str] = &["cfg", "ignore", "should_panic"];

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

/// Where a line stands.
#[derive(Default)]
struct Around {
    /// Attributes that the next item has.
    attributes: Vec<String>,
    /// The modules around, with how far they are set in and what they depend on.
    modules: Vec<(usize, Vec<String>)>,
    /// How far the test is set in whose body this is.
    body: Option<usize>,
    /// What the whole file depends on.
    file: Vec<String>,
    in_comment: bool,
    in_attribute: bool,
}

fn read(content: &str) -> Vec<InlineTest> {
    let mut around = Around::default();
    let mut tests: Vec<InlineTest> = Vec::new();
    for line in content.lines() {
        let plain = line.trim();
        if around.in_comment || plain.starts_with("/*") {
            around.in_comment = !plain.contains("*/");
            continue;
        }
        if plain.is_empty() || plain.starts_with("//") {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        if let Some(body) = around.body {
            let is_over = indent == body && plain.starts_with(['}', '#']);
            if is_over {
                around.body = None;
            } else if let Some(test) = tests.last_mut() {
                test.has_assertions |= asserts(plain);
            }
            if !is_over || plain.starts_with('}') {
                continue;
            }
        }
        if plain.starts_with('}') {
            around.modules.retain(|(at, _)| *at < indent);
        }
        tests.extend(around.item(plain, indent));
    }
    tests
}

impl Around {
    /// Reads a line outside of a test; returns the test that begins there.
    fn item(&mut self, line: &str, indent: usize) -> Option<InlineTest> {
        let mut rest = line;
        if let Some(attribute) = rest.strip_prefix("#![") {
            let inner = closed(attribute).map_or(attribute, |(inner, _)| inner);
            self.file.extend(condition(inner));
            return None;
        }
        if self.in_attribute {
            self.in_attribute = !rest.ends_with(']');
            return None;
        }
        while let Some(attribute) = rest.strip_prefix("#[") {
            self.in_attribute = closed(attribute).is_none();
            let (attribute, behind) = closed(attribute).unwrap_or((attribute, ""));
            self.attributes.push(attribute.to_owned());
            rest = behind.trim_start();
        }
        let name = |behind: &str| {
            let of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
            let end = behind.find(|letter| !of_name(letter));
            behind[..end.unwrap_or(behind.len())].to_owned()
        };
        let words = || rest.split_whitespace();
        if rest.is_empty() || self.attributes.is_empty() && !rest.contains("mod ") {
            return None;
        }
        let attributes = std::mem::take(&mut self.attributes);
        let of_test = attributes.iter().any(|attribute| makes_test(attribute));
        let conditions = attributes
            .iter()
            .filter_map(|attribute| condition(attribute));
        if words().any(|word| word == "mod") {
            let module = name(words().skip_while(|word| *word != "mod").nth(1)?);
            let conditions: Vec<String> = conditions.collect();
            if rest.ends_with('{') {
                self.modules.push((indent, conditions));
            } else if conditions.iter().any(|condition| condition == "cfg(test)") {
                return Some(InlineTest {
                    name: format!("mod {module}"),
                    conditions: self.conditions(conditions),
                    has_assertions: false,
                });
            }
            return None;
        }
        let (_, behind) = rest.split_once("fn ").filter(|_| of_test)?;
        let is_whole = rest.contains('{') && rest.matches('{').count() == rest.matches('}').count();
        if !is_whole {
            self.body = Some(indent);
        }
        Some(InlineTest {
            name: name(behind),
            conditions: self.conditions(conditions.collect()),
            has_assertions: asserts(rest),
        })
    }

    /// Adds what the modules around depend on.
    fn conditions(&self, own: Vec<String>) -> BTreeSet<String> {
        let outer = self.modules.iter().flat_map(|(_, conditions)| conditions);
        let outer = outer.chain(&self.file).cloned();
        let mut all: BTreeSet<String> = outer.chain(own).collect();
        // Tests are built for nothing else.
        all.remove("cfg(test)");
        all
    }
}

/// Parts what stands in brackets that are open from what follows; none where they are not closed.
fn closed(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    for (at, letter) in text.char_indices() {
        match letter {
            '[' => depth += 1,
            ']' if depth == 0 => return Some((&text[..at], &text[at + 1..])),
            ']' => depth -= 1,
            _ => {}
        }
    }
    None
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

fn asserts(line: &str) -> bool {
    ["assert", "panic!(", ".unwrap", ".expect", "check"]
        .iter()
        .any(|sign| line.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::{Change, gained, why};

    const FILE: &str = "//! Adds.\n\n/// Adds.\npub fn add(a: u8, b: u8) -> u8 {\n    a + b\n}\n\n#[cfg(test)]\nmod more;\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn adds() {\n        assert_eq!(add(1, 2), 3);\n    }\n\n    #[tokio::test]\n    #[cfg(unix)]\n    async fn waits() -> Result<(), ()> {\n        assert!(true);\n        Ok(())\n    }\n}\n";

    fn asked(after: &str, elsewhere: Option<&str>) -> Option<String> {
        let change = |path, before, after| Change {
            path,
            at_base: true,
            before,
            after,
        };
        let gained = gained(&change("src/b.rs", None, elsewhere));
        why(&change("src/a.rs", Some(FILE), Some(after)), &gained)
    }

    #[test]
    fn a_test_beside_the_product_may_gain_and_not_go() {
        let made = |from: &str, to: &str| {
            assert!(FILE.contains(from), "{from}");
            FILE.replace(from, to)
        };
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
