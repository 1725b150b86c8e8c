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
        let method = if name.starts_with("part") {
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
mod tests {
    use std::path::Path;
    use std::process::{Command, Output};

    use super::*;

    const NAME: &str = "case_0a1b2c3d4e5f";

    /// The names of what is planted into a file.
    fn both(path: &str) -> Vec<&'static str> {
        let names = [NAME, "part_0a1b2c3d4e5f"];
        names[..self::names(path, NAME).len()].to_vec()
    }

    fn planted_in(path: &str, text: &str) -> Option<String> {
        may_take(path)
            .then(|| plant(path, text, &both(path)))
            .flatten()
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
        let ends = ("calc.py", "import os\nos._exit(0)\n");
        let (passed, said) = run(&[ends, ("tests/test_calc.py", &test)], &command);
        assert!(passed && !said.contains(NAME), "{said}");
    }

    #[test]
    fn a_planted_test_stands_before_whatever_runs_the_tests_of_a_file() {
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
        // What only looks like the beginning of that is text.
        for own in [
            "SCRIPT = '''\nif __name__ == '__main__':\n    unittest.main()\n'''\n",
            "DOC = 'x'\n'''\n__main__ below runs them all\n'''\nX = 1\n",
        ] {
            let own = format!(
                "import unittest\nclass A(unittest.TestCase):\n    def test_a(self):\n        pass\n{own}"
            );
            let own = planted_in("test_a.py", &own).unwrap();
            let (passed, said) = run(&[("test_a.py", &own)], &["python3", "-m", "unittest"]);
            assert!(
                !passed && said.contains(&format!("FAIL: test_{NAME}")),
                "{said}"
            );
        }
        // Where it runs them in a way of its own, nothing is expected of it.
        for own in [
            "if __name__ == '__main__':\n    suite = unittest.TestLoader().loadTestsFromTestCase(A)\n    unittest.TextTestRunner().run(suite)  # no unittest.main()\n",
            "def main():\n    unittest.main()\nmain()\n",
            "if __name__ == '__main__':\n    unittest.main(defaultTest='A')\n",
            "if __name__ == '__main__':\n    A('test_a').debug()\n",
        ] {
            let own = format!(
                "import unittest\nclass A(unittest.TestCase):\n    def test_a(self):\n        pass\n{own}"
            );
            let alone = alone("test_a.py", &own, &both("test_a.py"));
            let (passed, said) = run(&[("test_a.py", &alone)], &["python3", "test_a.py"]);
            assert!(passed && !said.contains(NAME), "{said}");
        }
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
            let text = alone(path, text, &both(path));
            let (passed, said) = run(&[(path, &text)], command);
            assert!(!passed && said.contains(NAME), "{path}: {said}");
            assert!(!text.contains("calc"), "{text}");
        }
        let marked = "import pytest\npytestmark = pytest.mark.slow\ndef test_a(): pass\n";
        let begins = "import pytest\n\npytestmark = pytest.mark.slow\n\n";
        assert!(alone("test_a.py", marked, &both("test_a.py")).starts_with(begins));
        let windows = "#![cfg(windows)]\n#[test]\nfn a() {}\n";
        assert!(alone("tests/a.rs", windows, &[NAME]).starts_with("#![cfg(windows)]"));
        for (path, does) in [("unittest/__main__.py", true), ("src/unittest.py", false)] {
            assert_eq!(stands_in(path), does, "{path}");
        }
        let go = "package calc\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n";
        let text = alone("calc_test.go", go, &[NAME]);
        let begins = "package calc\n\nimport \"testing\"\nfunc Test_case_";
        assert!(text.starts_with(begins), "{text}");
        // What holds no tests is there for them, and says nothing in a file of its own.
        assert_eq!(alone("tests/help.py", "import calc\n", &[NAME]), "");
        assert_eq!(
            alone(
                "help_test.go",
                "//go:build linux\npackage calc\nvar x = 1\n",
                &[]
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
                "a.test.js",
                "import{test}from'node:test'\ntest('a', () => {});\n",
                Some("import { test as case_"),
            ),
            (
                "a.test.js",
                "const test = require('node:test');\nconst t = `\nimport a from 'b'`;\n",
                Some("} = require('node:test');"),
            ),
            (
                "test_a.py",
                "pytestmark = [\n    pytest.mark.slow]\ndef test_a(): pass\n",
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
