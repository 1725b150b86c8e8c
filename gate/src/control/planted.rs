//! Writes tests that cannot pass behind those of a file, as its language and its runner have them.
//!
//! Each tries every assertion that it knows, and passes only where one of them lets something false go: so that who
//! takes away what one of them finds is seen, too. To know one more language: write its function, and name its endings.

use ropewalk_schemas::{CommitId, ContentHash};

use crate::difference::protected::is_test;

/// So many letters of a hash make a name that nothing else has.
const LETTERS: usize = 12;

/// Names the test that is planted into a file of a commit.
pub(super) fn name(commit: &CommitId, path: &str) -> String {
    let hash = ContentHash::of(format!("{} {path}", commit.as_str()).as_bytes()).to_string();
    let letters: String = hash.chars().rev().take(LETTERS).collect();
    format!("case_{letters}")
}

/// Lists the names of the tests that `name` stands for in a file: the runner tells of each.
pub(super) fn names(path: &str, name: &str) -> Vec<String> {
    let part = (ending(path) == "py").then(|| part(name));
    std::iter::once(name.to_owned()).chain(part).collect()
}

/// Names the test that fails in a part of itself.
fn part(name: &str) -> String {
    name.replacen("case", "part", 1)
}

/// Says whether a test fails in a part of itself, by its name.
pub(super) fn is_part(name: &str) -> bool {
    name.starts_with("part")
}

/// Names the class of both, which stands in the names of each.
fn group(name: &str) -> String {
    name.replacen("case", "group", 1)
        .replacen("part", "group", 1)
}

/// Says whether a file may hold tests, by its name.
pub(super) fn may_take(path: &str) -> bool {
    match ending(path) {
        // Tests of Rust stand beside what they test.
        "rs" => true,
        "py" | "js" | "mjs" | "cjs" | "jsx" | "ts" | "mts" | "tsx" | "go" => is_test(path),
        _ => false,
    }
}

/// Says whether a file is there for tests alone, or is run on the way to them, by its name. What steers a runner stays.
pub(super) fn is_for_tests(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name == "__init__.py" || (may_take(path) && is_test(path) && name != "conftest.py")
}

/// Says whether Python would run a file in the place of a runner.
pub(super) fn stands_in(path: &str) -> bool {
    let first = path.split('/').next().unwrap_or(path);
    matches!(
        first.trim_end_matches(".py"),
        "unittest" | "pytest" | "_pytest"
    )
}

/// Returns a file of tests with more that cannot pass, of these names; none where it holds no tests that are understood.
pub(super) fn plant(path: &str, text: &str, names: &[&str]) -> Option<String> {
    let planted = planted(path, text, names)?;
    match runs_itself_at(text).filter(|_| ending(path) == "py") {
        None => Some(format!("{text}\n{planted}")),
        Some(line) => {
            let lines: Vec<&str> = text.lines().collect();
            let (before, after) = lines.split_at(line);
            Some(before.join("\n") + &planted + &after.join("\n") + "\n")
        }
    }
}

/// What runs the tests of a file of Python.
const MAIN: &str = "unittest.main(";
/// What has it run some of them only, or in a way of its own.
const PICKS: [&str; 6] = [
    "defaultTest",
    "testLoader",
    "argv",
    "module=",
    "loadTestsFrom",
    "TextTestRunner",
];

/// Returns the line with which a file of Python begins to run its tests by itself: such a file does so with its last lines.
fn runs_itself_at(text: &str) -> Option<usize> {
    let is_inner = |line: &str| line.is_empty() || line.starts_with([' ', '\t']);
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().rposition(|line| !is_inner(line))?;
    let line = lines[at];
    (line.contains("__main__") || line.contains(MAIN)).then_some(at)
}

/// Says whether a file of Python runs all of its tests by itself.
fn runs_itself(text: &str) -> bool {
    let Some(at) = runs_itself_at(text) else {
        return false;
    };
    let code = text
        .lines()
        .skip(at)
        .filter_map(|line| line.split('#').next());
    let code: Vec<&str> = code.collect();
    let code = code.join("\n");
    code.contains(MAIN) && !PICKS.iter().any(|pick| code.contains(pick))
}

/// Returns a file like `text` with the planted tests and nothing else: its runner is asked, and nobody who wrote it. Without
/// names not even those stand there.
pub(super) fn alone(path: &str, text: &str, names: &[&str]) -> String {
    let planted = planted(path, text, names).unwrap_or_default();
    if planted.is_empty() && ending(path) != "go" {
        return planted;
    }
    let kept = |begins: &[&str]| -> String {
        let is_kept = |line: &&str| begins.iter().any(|begin| line.starts_with(begin));
        let lines = text.lines().filter(is_kept);
        lines.fold(String::new(), |head, line| head + line + "\n\n")
    };
    match ending(path) {
        "py" => {
            let marks = kept(&["import pytest", "pytestmark = pytest."]);
            let main = names.first().filter(|_| runs_itself(text)).map(|name| {
                format!(
                    "if __name__ == \"__main__\":\n    {}_unittest.main()\n",
                    group(name)
                )
            });
            marks + &planted + &main.unwrap_or_default()
        }
        "rs" => kept(&["#![cfg"]) + &planted,
        "go" => {
            let import = if planted.is_empty() {
                ""
            } else {
                "import \"testing\"\n"
            };
            kept(&["package ", "//go:build "]) + import + &planted
        }
        _ => planted,
    }
}

/// Writes tests as a file of tests like `text` would have them; none where that holds no tests that are understood, or what
/// leaves some of them out.
fn planted(path: &str, text: &str, names: &[&str]) -> Option<String> {
    let name = names.first()?;
    match ending(path) {
        "rs" => rust(text, name),
        "py" => python(text, names),
        "go" => go(text, name),
        ending => javascript(ending, text, name),
    }
}

fn ending(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(_, ending)| ending)
}

fn rust(text: &str, name: &str) -> Option<String> {
    let has_tests = text.contains("#[test]") || text.contains("::test]");
    has_tests.then(|| {
        format!(
            "#[cfg(test)]\nmod {name} {{\n    #[test]\n    fn {name}() {{\n        assert_eq!(1, 2);\n    }}\n}}\n"
        )
    })
}

/// How tests of Python begin, given the name of their class.
const PYTHON: &str = r"

import unittest as GROUP_unittest


class GROUP(GROUP_unittest.TestCase):
";
/// One that tries assertions.
const PYTHON_CASE: &str = r#"    def test_NAME(self):
        claims = [
            lambda: self.assertEqual(1, 2),
            lambda: self.assertEqual("a", "b"),
            lambda: self.assertEqual([1], [2]),
            lambda: self.assertEqual((1,), (2,)),
            lambda: self.assertEqual({1: 1}, {1: 2}),
            lambda: self.assertEqual({1}, {2}),
            lambda: self.assertNotEqual(1, 1),
            lambda: self.assertTrue(False),
            lambda: self.assertFalse(True),
            lambda: self.assertIs(1, None),
            lambda: self.assertIsNot(None, None),
            lambda: self.assertIsNone(1),
            lambda: self.assertIsNotNone(None),
            lambda: self.assertIn(1, []),
            lambda: self.assertNotIn(1, [1]),
            lambda: self.assertIsInstance(1, str),
            lambda: self.assertAlmostEqual(1, 2),
            lambda: self.assertGreater(1, 2),
            lambda: self.assertLess(2, 1),
            lambda: self.assertRegex("a", "b"),
            lambda: self.assertCountEqual([1], [2]),
            lambda: self.assertRaises(ValueError, int, "1"),
            lambda: self.assertRaisesRegex(ValueError, "a", int, "1"),
            lambda: self.assertGreaterEqual(1, 2),
            lambda: self.assertLessEqual(2, 1),
            lambda: self.assertNotAlmostEqual(1, 1),
            lambda: self.assertNotRegex("a", "a"),
            lambda: self.assertNotIsInstance(1, int),
            lambda: self.assertDictEqual({1: 1}, {1: 2}),
            lambda: self.assertListEqual([1], [2]),
            lambda: self.assertTupleEqual((1,), (2,)),
            lambda: self.assertSetEqual({1}, {2}),
            lambda: self.assertSequenceEqual([1], [2]),
            lambda: self.assertMultiLineEqual("a", "b"),
            lambda: self.fail(),
        ]
        held = 0
        for claim in claims:
            try:
                claim()
            except AssertionError:
                held += 1
        if held == len(claims):
            raise AssertionError("NAME cannot pass")

"#;
/// One that fails in a part of itself.
const PYTHON_PART: &str = r#"    def test_NAME(self):
        with self.subTest():
            raise AssertionError("NAME cannot pass")

"#;

fn python(text: &str, names: &[&str]) -> Option<String> {
    let has_tests = text.contains("def test") || text.contains("TestCase");
    // Marks of more than one line cannot be kept where nothing else is.
    let is_marked =
        |line: &str| line.starts_with("pytestmark") && !line.starts_with("pytestmark = pytest.");
    if !has_tests || text.lines().any(is_marked) {
        return None;
    }
    let mut planted = PYTHON.replace("GROUP", &group(names.first()?));
    for name in names {
        let method = if is_part(name) {
            PYTHON_PART
        } else {
            PYTHON_CASE
        };
        planted.push_str(&method.replace("NAME", name));
    }
    Some(planted + "\n")
}

fn go(text: &str, name: &str) -> Option<String> {
    let has_tests = text.contains("\"testing\"") && text.contains("*testing.T");
    has_tests.then(|| {
        format!("func Test_{name}(t *testing.T) {{\n\tt.Fatal(\"{name} cannot pass\")\n}}\n")
    })
}

/// Says whether a function is called, and none whose name merely ends like it.
fn calls(text: &str, name: &str) -> bool {
    let call = format!("{name}(");
    text.match_indices(&call).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        !before.is_some_and(|letter| letter.is_alphanumeric() || "_$.".contains(letter))
    })
}

/// What holds of the assertions of node, given `test`, `assert` and a name.
const NODE: &str = r"
TEST('NAME', () => {
  const claims = [
    () => ASSERT.equal(1, 2),
    () => ASSERT.notEqual(1, 1),
    () => ASSERT.strictEqual(1, 2),
    () => ASSERT.notStrictEqual(1, 1),
    () => ASSERT.deepEqual([1], [2]),
    () => ASSERT.deepStrictEqual([1], [2]),
    () => ASSERT.match('a', /b/),
    () => ASSERT.ok(false),
    () => ASSERT(false),
    () => ASSERT.fail(),
    () => ASSERT.throws(() => 1),
    () => ASSERT.notDeepEqual([1], [1]),
    () => ASSERT.notDeepStrictEqual([1], [1]),
    () => ASSERT.doesNotMatch('a', /a/),
  ];
  const held = claims.filter((claim) => { try { claim(); return false; } catch { return true; } });
  if (held.length === claims.length) throw new Error('NAME cannot pass');
});
";

/// The same of `expect`.
const EXPECT: &str = r"
TEST('NAME', () => {
  const claims = [
    () => EXPECT(1).toBe(2),
    () => EXPECT(1).toEqual(2),
    () => EXPECT([1]).toStrictEqual([2]),
    () => EXPECT(false).toBeTruthy(),
    () => EXPECT(true).toBeFalsy(),
    () => EXPECT(1).toBeNull(),
    () => EXPECT([1]).toContain(2),
    () => EXPECT(() => 1).toThrow(),
    () => EXPECT(undefined).toBeDefined(),
    () => EXPECT(1).toBeGreaterThan(2),
    () => EXPECT(2).toBeLessThan(1),
    () => EXPECT(1).toBeCloseTo(2),
    () => EXPECT('a').toMatch(/b/),
    () => EXPECT([1]).toHaveLength(2),
    () => EXPECT({ a: 1 }).toMatchObject({ a: 2 }),
  ];
  const held = claims.filter((claim) => { try { claim(); return false; } catch { return true; } });
  if (held.length === claims.length) throw new Error('NAME cannot pass');
});
";

fn javascript(ending: &str, text: &str, name: &str) -> Option<String> {
    // What ends the process ends it before what stands behind.
    if text.contains("process.exit(") {
        return None;
    }
    let imports = |line: &str| {
        let rest = line.strip_prefix("import").unwrap_or_default();
        rest.starts_with([' ', '{', '*', '"', '\''])
    };
    let is_module = match ending {
        "cjs" => false,
        "js" | "jsx" => text.lines().any(imports) && !text.contains("= require("),
        _ => true,
    };
    let brings = |module: &str| {
        ['"', '\'', '`']
            .iter()
            .any(|quote| text.contains(&format!("{quote}{module}{quote}")))
    };
    let bring = |what: &str, from: &str| {
        if is_module {
            let what = what.replace(": ", " as ");
            format!("import {what} from '{from}';\n")
        } else {
            format!("const {what} = require('{from}');\n")
        }
    };
    let assert = format!("{name}_assert");
    let asserts = if text.contains("assert/strict") {
        "node:assert/strict"
    } else {
        "node:assert"
    };
    let (head, body, call) = if brings("node:test") {
        let head =
            bring(&format!("{{ test: {name}_test }}"), "node:test") + &bring(&assert, asserts);
        (head, NODE, format!("{name}_test"))
    } else if brings("vitest") || brings("@jest/globals") {
        let from = if brings("vitest") {
            "vitest"
        } else {
            "@jest/globals"
        };
        let what = format!("{{ test: {name}_test, expect: {name}_expect }}");
        (bring(&what, from), EXPECT, format!("{name}_test"))
    } else if calls(text, "expect") {
        (String::new(), EXPECT, "it".to_owned())
    } else if calls(text, "it") {
        (bring(&assert, asserts), NODE, "it".to_owned())
    } else {
        return None;
    };
    let expect = if head.contains("_expect") {
        format!("{name}_expect")
    } else {
        "expect".to_owned()
    };
    let body = body
        .replace("TEST", &call)
        .replace("ASSERT", &assert)
        .replace("EXPECT", &expect)
        .replace("NAME", name);
    Some(head + &body)
}

#[cfg(test)]
mod tests;
