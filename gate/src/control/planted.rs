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

/// Lists the names by which a runner tells of what is planted under `name` into a file.
pub(super) fn names(path: &str, name: &str) -> Vec<String> {
    let part = (ending(path) == "py").then(|| part(name));
    std::iter::once(name.to_owned()).chain(part).collect()
}

/// Names the test that fails in a part of itself.
fn part(name: &str) -> String {
    name.replacen("case", "part", 1)
}

/// Names the class of both, which stands in the names of each.
fn group(name: &str) -> String {
    name.replacen("case", "group", 1)
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

/// Returns a file of tests with one more that cannot pass; none where it holds no tests that are understood.
pub(super) fn plant(path: &str, text: &str, name: &str) -> Option<String> {
    let planted = planted(path, text, name)?;
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
/// What has it run some of them only.
const PICKS: [&str; 4] = ["defaultTest", "testLoader", "argv", "module="];

/// Returns the line with which a file of Python begins to run its tests by itself: such a file does so with its last lines.
fn runs_itself_at(text: &str) -> Option<usize> {
    text.lines().position(|line| {
        let at_once = !line.starts_with([' ', '\t']);
        at_once && (line.contains("__main__") || line.contains(MAIN))
    })
}

/// Says whether a file of Python runs all of its tests by itself.
fn runs_itself(text: &str) -> bool {
    let picks = PICKS.iter().any(|pick| text.contains(pick));
    text.contains(MAIN) && !picks && runs_itself_at(text).is_some()
}

/// Returns a file like `text` with the planted test and nothing else: its runner is asked, and nobody who wrote it. Without a
/// name not even that stands there.
pub(super) fn alone(path: &str, text: &str, name: Option<&str>) -> String {
    let planted = name.and_then(|name| planted(path, text, name));
    let planted = planted.unwrap_or_default();
    match (ending(path), name) {
        ("py", Some(name)) if runs_itself(text) && !planted.is_empty() => {
            format!("{planted}if __name__ == \"__main__\":\n    {name}_unittest.main()\n")
        }
        ("go", _) => {
            let is_head =
                |line: &&str| line.starts_with("package ") || line.starts_with("//go:build ");
            let head: Vec<&str> = text.lines().filter(is_head).collect();
            let import = if planted.is_empty() {
                ""
            } else {
                "import \"testing\"\n"
            };
            format!("{}\n\n{import}{planted}", head.join("\n\n"))
        }
        _ => planted,
    }
}

/// Writes the test as a file of tests like `text` would have it; none where that holds no tests that are understood.
fn planted(path: &str, text: &str, name: &str) -> Option<String> {
    match ending(path) {
        "rs" => rust(text, name),
        "py" => python(text, name),
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

const PYTHON: &str = r#"

import unittest as NAME_unittest


class GROUP(NAME_unittest.TestCase):
    def test_NAME(self):
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

    def test_PART(self):
        with self.subTest():
            raise AssertionError("PART cannot pass")


"#;

fn python(text: &str, name: &str) -> Option<String> {
    let has_tests = text.contains("def test") || text.contains("TestCase");
    has_tests.then(|| {
        PYTHON
            .replace("NAME", name)
            .replace("PART", &part(name))
            .replace("GROUP", &group(name))
    })
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
  ];
  const held = claims.filter((claim) => { try { claim(); return false; } catch { return true; } });
  if (held.length === claims.length) throw new Error('NAME cannot pass');
});
";

fn javascript(ending: &str, text: &str, name: &str) -> Option<String> {
    let imports = |line: &str| line.starts_with("import ");
    let is_module = match ending {
        "cjs" => false,
        "js" | "jsx" => text.lines().any(imports),
        _ => true,
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
    let (head, body, call) = if text.contains("node:test") {
        let head =
            bring(&format!("{{ test: {name}_test }}"), "node:test") + &bring(&assert, asserts);
        (head, NODE, format!("{name}_test"))
    } else if text.contains("vitest") || text.contains("@jest/globals") {
        let from = if text.contains("vitest") {
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
mod tests {
    use std::path::Path;
    use std::process::{Command, Output};

    use super::*;

    const NAME: &str = "case_0a1b2c3d4e5f";

    fn planted_in(path: &str, text: &str) -> Option<String> {
        may_take(path).then(|| plant(path, text, NAME)).flatten()
    }

    /// Writes files and runs a command among them; returns whether it passed, and what it said.
    fn run(files: &[(&str, &str)], command: &[&str]) -> (bool, String) {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let [program, arguments @ ..] = command else {
            panic!("no command");
        };
        let ran = Command::new(program)
            .args(arguments)
            .current_dir(directory.path())
            .output();
        let Output {
            status,
            stdout,
            stderr,
        } = ran.unwrap();
        let said = [stdout, stderr].concat();
        (
            status.success(),
            String::from_utf8_lossy(&said).into_owned(),
        )
    }

    #[test]
    fn a_planted_test_fails_beside_those_of_python_and_passes_where_an_assertion_finds_nothing() {
        let test = "import unittest\nimport calc\n\n\nclass A(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(calc.add(2, 3), 5)\n\n\nif __name__ == \"__main__\":\n    unittest.main()\n";
        let test = planted_in("tests/test_calc.py", test).unwrap();
        let honest = "def add(a, b):\n    return a + b\n";
        let command = ["python3", "-m", "unittest", "tests/test_calc.py"];
        for own in [
            &command[..],
            &[
                "python3",
                "-c",
                "import runpy, sys\nsys.path.insert(0, '.')\nrunpy.run_path('tests/test_calc.py', run_name='__main__')",
            ],
        ] {
            let (passed, said) = run(&[("calc.py", honest), ("tests/test_calc.py", &test)], own);
            assert!(!passed && said.contains(NAME), "{said}");
            assert!(
                said.contains("Ran 3 tests") && said.contains("failures=2"),
                "{said}"
            );
        }
        for takes in [
            "assertEqual",
            "assertMultiLineEqual",
            "assertListEqual",
            "assertDictEqual",
            "assertIn",
            "assertRaises",
            "assertIsNone",
            "fail",
        ] {
            let patched = format!(
                "import unittest\nunittest.TestCase.{takes} = lambda *a, **k: None\n\n\n{honest}"
            );
            let files = [("calc.py", patched.as_str()), ("tests/test_calc.py", &test)];
            let (_, said) = run(&files, &command);
            assert!(!said.contains(&format!("{NAME} cannot")), "{takes}: {said}");
        }
        let swallows = format!(
            "import unittest, contextlib\n@contextlib.contextmanager\ndef swallow(self, *a, **k):\n    try:\n        yield\n    except AssertionError:\n        pass\nunittest.TestCase.subTest = swallow\n{honest}"
        );
        let files = [
            ("calc.py", swallows.as_str()),
            ("tests/test_calc.py", &test),
        ];
        let (_, said) = run(&files, &command);
        let [whole, part] = [names("a.js", NAME), names("a.py", NAME).split_off(1)];
        assert!(!group(NAME).contains(&whole[0]) && !part[0].contains(&whole[0]));
        assert!(
            said.contains(&whole[0]) && !said.contains(&part[0]),
            "{said}"
        );
        // However it begins to run its tests by itself.
        for main in [
            "unittest.main()",
            "if \"__main__\" == __name__:\n    unittest.main()",
        ] {
            let own = format!(
                "import unittest\nclass A(unittest.TestCase):\n    def test_a(self):\n        pass\n{main}\n"
            );
            let own = planted_in("test_a.py", &own).unwrap();
            let (passed, said) = run(&[("test_a.py", &own)], &["python3", "test_a.py"]);
            assert!(!passed && said.contains(NAME), "{said}");
        }
        // Where it runs them in a way of its own, nothing is expected of it.
        for own in [
            "def main():\n    unittest.main()\nmain()\n",
            "if __name__ == '__main__':\n    unittest.main(defaultTest='A')\n",
            "if __name__ == '__main__':\n    A('test_a').debug()\n",
        ] {
            let own = format!(
                "import unittest\nclass A(unittest.TestCase):\n    def test_a(self):\n        pass\n{own}"
            );
            let alone = alone("test_a.py", &own, Some(NAME));
            let (passed, said) = run(&[("test_a.py", &alone)], &["python3", "test_a.py"]);
            assert!(passed && said.is_empty(), "{said}");
        }
        let ends = ("calc.py", "import os\nos._exit(0)\n");
        let (passed, said) = run(&[ends, ("tests/test_calc.py", &test)], &command);
        assert!(passed && !said.contains(NAME), "{said}");
    }

    #[test]
    fn a_planted_test_fails_beside_those_of_node_and_passes_where_an_assertion_finds_nothing() {
        let common = "const test = require('node:test');\nconst assert = require('node:assert');\nconst { add } = require('./calc.js');\ntest('adds', () => { assert.strictEqual(add(2, 3), 5); });\n";
        let module = "import test from 'node:test';\nimport assert from 'node:assert';\nimport calc from './calc.js';\ntest('adds', () => { assert.strictEqual(calc.add(2, 3), 5); });\n";
        let honest = "exports.add = (a, b) => a + b;\n";
        let takes =
            "require('node:assert').strictEqual = () => {};\nexports.add = (a, b) => a * b;\n";
        for (path, text) in [
            ("calc.test.js", common),
            ("calc.test.cjs", common),
            ("calc.test.mjs", module),
        ] {
            let test = planted_in(path, text).unwrap();
            let (passed, said) = run(
                &[("calc.js", honest), (path, &test)],
                &["node", "--test", path],
            );
            assert!(!passed && said.contains(NAME), "{path}: {said}");
            let (passed, said) = run(
                &[("calc.js", takes), (path, &test)],
                &["node", "--test", path],
            );
            assert!(passed, "{path}: {said}");
        }
    }

    #[test]
    fn a_planted_test_fails_beside_those_of_rust_and_passes_where_a_macro_finds_nothing() {
        let tests = "#[test]\nfn adds() {\n    assert_eq!(2 + 3, 5);\n}\n";
        let takes = "macro_rules! assert_eq { ($($any:tt)*) => {}; }\n";
        for (text, passes) in [(tests.to_owned(), false), (takes.to_owned() + tests, true)] {
            let test = planted_in("src/lib.rs", &text).unwrap();
            let build = [
                "rustc",
                "--test",
                "--edition",
                "2021",
                "-o",
                "ran",
                "lib.rs",
            ];
            let both = format!("{} && ./ran", build.join(" "));
            let (passed, said) = run(&[("lib.rs", &test)], &["sh", "-c", &both]);
            assert_eq!(passed, passes, "{said}");
            let told = format!(
                "test {NAME}::{NAME} ... {}",
                if passes { "ok" } else { "FAILED" }
            );
            assert!(said.contains(&told), "{said}");
        }
    }

    #[test]
    fn a_planted_test_stands_alone_in_a_file_like_the_one_it_takes_the_place_of() {
        let own = "import unittest\nimport calc\nunittest.TestCase.assertEqual = None\nclass A(unittest.TestCase):\n    def test_a(self):\n        calc.add(1)\n";
        let itself = format!("{own}\nif __name__ == '__main__':\n    unittest.main()\n");
        let module = "import test from 'node:test';\nimport calc from './calc.js';\ntest('a', () => calc());\n";
        let python = ["python3", "-m", "unittest", "tests/test_a.py"];
        let script = [
            "python3",
            "-c",
            "import runpy; runpy.run_path('tests/test_a.py', run_name='__main__')",
        ];
        let node = ["node", "--test", "a.test.mjs"];
        let rows = [
            ("tests/test_a.py", own, &python[..]),
            ("tests/test_a.py", &itself, &python),
            ("tests/test_a.py", &itself, &script),
            ("a.test.mjs", module, &node),
        ];
        for (path, text, command) in rows {
            assert!(is_for_tests(path), "{path}");
            let text = alone(path, text, Some(NAME));
            let (passed, said) = run(&[(path, &text)], command);
            assert!(!passed && said.contains(NAME), "{path}: {said}");
            assert!(!text.contains("calc"), "{text}");
        }
        let go = "package calc\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n";
        let text = alone("calc_test.go", go, Some(NAME));
        let begins = "package calc\n\nimport \"testing\"\nfunc Test_case_";
        assert!(text.starts_with(begins), "{text}");
        // What holds no tests is there for them, and says nothing in a file of its own.
        assert_eq!(alone("tests/help.py", "import calc\n", Some(NAME)), "");
        assert_eq!(
            alone(
                "help_test.go",
                "//go:build linux\npackage calc\nvar x = 1\n",
                None
            ),
            "//go:build linux\n\npackage calc\n\n"
        );
        for (path, cleared) in [
            ("calc/__init__.py", true),
            ("calc/add.py", false),
            ("tests/a.rs", true),
            ("src/a.rs", false),
            ("tests/conftest.py", false),
        ] {
            assert_eq!(is_for_tests(path), cleared, "{path}");
        }
    }

    #[test]
    fn a_test_is_planted_only_where_tests_are_understood() {
        let expects = "test('adds', () => { expect(add(1, 1)).toBe(2); });\n";
        let cases = [
            (
                "a.test.ts",
                "import { it } from 'vitest';\nit('a', () => {});\n",
                Some("from 'vitest'"),
            ),
            ("a.test.js", expects, Some("it('case_")),
            (
                "test/a.js",
                "describe('a', () => { it('b', () => {}); });\n",
                Some("_assert.ok(false)"),
            ),
            (
                "a_test.go",
                "import \"testing\"\nfunc TestA(t *testing.T) {}\n",
                Some("func Test_case_"),
            ),
            ("src/lib.rs", "pub fn add() {}\n", None),
            ("tests/data.py", "ROWS = [1]\n", None),
            ("src/calc.py", "def test(): pass\n", None),
            ("tests/a.rb", "def test_a; end\n", None),
            ("tests/fixture.js", "module.exports = 1;\n", None),
            (
                "calc.test.js",
                "check(); process.exit(0); a.split(1);\n",
                None,
            ),
            (
                "a.test.mjs",
                "import assert from 'node:assert/strict';\nit('a', () => {});\n",
                Some("from 'node:assert/strict';\n\nit('case_"),
            ),
        ];
        for (path, text, holds) in cases {
            let found = planted_in(path, text);
            assert_eq!(found.is_some(), holds.is_some(), "{path}");
            let found = found.unwrap_or_default();
            assert!(found.contains(holds.unwrap_or_default()), "{path}: {found}");
        }
    }
}
