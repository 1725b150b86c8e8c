use std::fmt::Write as _;

use super::super::Change;
use super::super::test_changes;

/// Says whether a change of an existing test is a person's to decide.
fn asks(path: &str, before: &str, after: &str) -> bool {
    let change = Change {
        path,
        before: Some(before),
        after: Some(after),
    };
    test_changes::why(&change).is_some()
}

/// Looks at changes of one line of imports in a file that goes on with `rest`.
fn check(path: &str, rest: &str, rows: &[(&str, &str, bool)]) {
    for (before, after, expected) in rows {
        let file = |line: &str| format!("{line}\n\n{rest}\n");
        assert_eq!(
            asks(path, &file(before), &file(after)),
            *expected,
            "{before} -> {after}"
        );
    }
}

/// Lines of imports before and after, and whether a person is asked.
const PYTHON: &[(&str, &str, bool)] = &[
    ("from app import add", "from app import add, sub", false),
    (
        "from app import add",
        "from app import sub, add  # both",
        false,
    ),
    (
        "from app import add",
        "from app import (\n    add,\n    sub,\n)",
        false,
    ),
    (
        "from app import (\n    add,\n)",
        "from app import add, sub",
        false,
    ),
    (
        "from app import (\n    add,\n)",
        "from app import (\n    add,\n    sub,\n)",
        false,
    ),
    ("from . import add", "from . import add, sub", false),
    ("import os", "import os, sys", false),
    ("import os.path", "import os.path, os.other", false),
    ("from app import add", "from app import add, mul", false),
    (
        "from app import add as plus",
        "from app import add as plus, sub as minus",
        false,
    ),
    // Removed, replaced, renamed, out of another module.
    ("from app import add, sub", "from app import add", true),
    ("from app import add", "from app import sub", true),
    ("from app import add", "from app import add as plus", true),
    ("from app import add as plus", "from app import add", true),
    ("from app import add", "from fake import add, sub", true),
    ("from app import add", "from .app import add, sub", true),
    ("import os", "import os as system", true),
    ("import os", "if False:\n    import os, sys", true),
    // What is gained takes the place of what is used.
    (
        "from app import add",
        "from app import add, mock as assert_equal",
        true,
    ),
    ("from app import add", "from app import add, app", true),
    (
        "from app import add",
        "from app import add, fake as add",
        true,
    ),
    (
        "from app import add",
        "from app import add\nfrom fake import add",
        true,
    ),
    (
        "from app import add",
        "from app import add\nfrom fake import *",
        true,
    ),
    ("from app import add", "from app import *", true),
    (
        "from app import add",
        "from app import add\nimport fake as add",
        true,
    ),
    // Two meanings of one name: the order decides.
    (
        "from app import add\nfrom other import add",
        "from other import add\nfrom app import add, sub",
        true,
    ),
    // More than a line of imports.
    (
        "from app import add",
        "from app import add, sub; add = sub",
        true,
    ),
    (
        "from app import add",
        "from app import add, sub\nimport pytest; pytest.skip()",
        true,
    ),
];

#[test]
fn an_import_of_python_may_gain_a_name_and_nothing_else() {
    let rest = "class A(TestCase):\n    def test_a(self):\n        # sub comes later\n        assert_equal(app.mul(1), add(1), 2)";
    check("tests/test_a.py", rest, PYTHON);
}

#[test]
fn what_stands_in_a_string_is_no_import() {
    let before = "SOURCE = \"\"\"\nfrom app import add\n\"\"\"\n\"\"\"One line.\"\"\"\nfrom app import run\n";
    let text = before.replace("import add", "import add, sub");
    assert!(asks("tests/test_a.py", before, &text));
    let import = before.replace("import run", "import run, stop");
    assert!(!asks("tests/test_a.py", before, &import));
    let before = "const text = `\nimport { a } from 'b'\n`\nimport { c } from 'd'\n";
    assert!(asks(
        "a.test.js",
        before,
        &before.replace("{ a }", "{ a, e }")
    ));
    assert!(!asks(
        "a.test.js",
        before,
        &before.replace("{ c }", "{ c, e }")
    ));
    let before = "const TEXT: &str = \"\nuse a::{b};\n\";\nuse c::{d};\n";
    assert!(asks("tests/a.rs", before, &before.replace("{b}", "{b, e}")));
    assert!(!asks(
        "tests/a.rs",
        before,
        &before.replace("{d}", "{d, e}")
    ));
}

#[test]
fn an_import_of_rust_may_gain_a_name_and_nothing_else() {
    let rest = "#[test]\nfn a() {\n    assert_eq!(add(1), list.push(2), io::mul(3));\n}";
    check(
        "tests/a.rs",
        rest,
        &[
            ("use app::{add};", "use app::{add, sub};", false),
            ("use app::add;", "use app::{add, sub};", false),
            (
                "use app::add;",
                "use app::{\n    add,\n    sub::{self, Sub},\n};",
                false,
            ),
            (
                "use app::{add, sub::Sub};",
                "use app::add;\nuse app::sub::{More, Sub};",
                false,
            ),
            ("use app::add;", "use app::{add, push, mul};", false),
            ("use std::io::{self};", "use std::io::{self, Read};", false),
            ("use std::io;", "use std::io::{self, Read};", false),
            (
                "use app::Add as _;",
                "use app::{Add as _, Sub as _};",
                false,
            ),
            (
                "use app::add;",
                "use app::add;\nmod more {\n    use super::*;\n}",
                false,
            ),
            ("use app::{add, sub};", "use app::add;", true),
            ("use app::add;", "use app::sub;", true),
            ("use app::add;", "use app::{add as plus, sub};", true),
            ("use app::add;", "use fake::{add, sub};", true),
            ("use app::add;", "pub use app::{add, sub};", true),
            ("use app::add;", "use app::{add, mock as assert_eq};", true),
            ("use app::add;", "use app::{add, list};", true),
            ("use app::add;", "use app::{add, io};", true),
            ("use app::add;", "use app::add;\nuse fake::*;", true),
            ("use app::add;", "use app::{add, *};", true),
        ],
    );
}

/// The same in JavaScript and TypeScript.
const SCRIPT: &[(&str, &str, bool)] = &[
    (
        "import { add } from './app'",
        "import { add, sub } from './app'",
        false,
    ),
    (
        "import { add } from './from'",
        "import {\n  add,\n  sub as minus,\n} from './from';",
        false,
    ),
    (
        "import add from \"./app\";",
        "import add, { sub } from \"./app\";",
        false,
    ),
    (
        "import * as app from './app'",
        "import all, * as app from './app'",
        false,
    ),
    (
        "import type { Add } from './app'",
        "import type { Add, Sub } from './app'",
        false,
    ),
    (
        "import { type Add } from './app'",
        "import { type Add, sub } from './app'",
        false,
    ),
    (
        "const { add } = require('./app');",
        "const { add, sub: minus } = require('./app');",
        false,
    ),
    (
        "import './setup'",
        "import './setup'\nimport './more'",
        false,
    ),
    (
        "import { add, sub } from './app'",
        "import { add } from './app'",
        true,
    ),
    (
        "import { add } from './app'",
        "import { add as plus, sub } from './app'",
        true,
    ),
    (
        "import { add } from './app'",
        "import { add, sub } from './fake'",
        true,
    ),
    (
        "import { Add } from './app'",
        "import type { Add, Sub } from './app'",
        true,
    ),
    (
        "import add from './app'",
        "import { add } from './app'",
        true,
    ),
    ("import './setup'", "import './other'", true),
    (
        "const { add } = require('./app');",
        "const { add: plus, sub } = require('./app');",
        true,
    ),
    (
        "const { add } = require('./app');",
        "let { add, sub } = require('./app');",
        true,
    ),
    (
        "const { add } = config;",
        "const { add, sub } = config;",
        true,
    ),
    (
        "import { add } from './app'",
        "import { add, expect } from './app'",
        true,
    ),
    (
        "import { add } from './app'",
        "import { add, never as it } from './app'",
        true,
    ),
    (
        "import { add } from './app'",
        "import { add, more } from './app'",
        true,
    ),
    (
        "import { add } from './app'",
        "import { add, sub } from './app'; it = () => {}",
        true,
    ),
];

#[test]
fn an_import_of_a_script_may_gain_a_name_and_nothing_else() {
    let rest = "it('adds', () => { expect(add(1), ...more, list.sub).toBe(2) })";
    check("src/a.test.ts", rest, SCRIPT);
}

#[test]
fn imports_of_go_may_gain_a_package_and_nothing_else() {
    let rest = "func TestA(t *testing.T) {\n\tassert.Equal(t, app.Add(1), 2)\n}";
    check(
        "a_test.go",
        rest,
        &[
            (
                "import \"testing\"",
                "import (\n\t\"fmt\"\n\t\"testing\"\n)",
                false,
            ),
            (
                "import (\n\t\"testing\"\n)",
                "import (\n\t\"fmt\"\n\t\"testing\"\n)",
                false,
            ),
            ("import \"testing\"", "import t2 \"testing\"", true),
            ("import \"testing\"", "import \"fmt\"", true),
            (
                "import \"testing\"",
                "import (\n\tassert \"fake\"\n\t\"testing\"\n)",
                true,
            ),
            (
                "import \"testing\"",
                "import (\n\t. \"fake\"\n\t\"testing\"\n)",
                true,
            ),
        ],
    );
}

#[test]
fn a_file_of_another_language_is_judged_line_by_line() {
    assert!(asks("tests/a.rb", "require 'a'\n", "require 'a', 'b'\n"));
    assert!(!asks(
        "tests/a.rb",
        "require 'a'\n",
        "require 'a'\nrequire 'b'\n"
    ));
}

#[test]
fn a_file_that_is_too_long_is_judged_line_by_line() {
    let lines = |count: usize| "pass\n".repeat(count);
    let [short, long] = [10, 10_000].map(lines);
    let (before, after) = ("from x import a\n", "from x import a, b\n");
    for (rest, expected) in [(&short, false), (&long, true)] {
        let (before, after) = (format!("{before}{rest}"), format!("{after}{rest}"));
        assert_eq!(asks("tests/test_a.py", &before, &after), expected);
    }
    let mut many = String::new();
    for number in 0..2_001 {
        writeln!(many, "import m{number}").unwrap();
    }
    let (before, after) = (format!("{many}{before}"), format!("{many}{after}"));
    assert!(asks("tests/test_a.py", &before, &after));
}
