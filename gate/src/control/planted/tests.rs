//! Runs what is planted by its runners, beside honest products and those that cheat.

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
    let takes = "require('node:assert').strictEqual = () => {};\nexports.add = (a, b) => a * b;\n";
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
    let module =
        "import test from 'node:test';\nimport calc from './calc.js';\ntest('a', () => calc());\n";
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
