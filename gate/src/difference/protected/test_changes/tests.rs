//! Tries the rules on what agents do to tests.

use super::*;

/// Says why a change of an existing test is a person's to decide.
fn of(path: &str, before: &str, after: &str) -> Option<String> {
    why(&Change {
        path,
        before: Some(before),
        after: Some(after),
    })
}

#[test]
fn an_existing_test_may_gain_and_nothing_else() {
    let before = "import unittest\n\nclass A(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(add(1), 2)\n";
    let with = |line: &str| format!("{before}{line}\n");
    let gains = [
        with("    def test_b(self):\n        self.assertEqual(add(2), 3)"),
        with("    def assertEven(self, x):\n        assert x % 2 == 0"),
        with("    asserted = 3"),
        before.replace("        self", "          self"),
    ];
    for after in gains {
        assert_eq!(of("tests/test_a.py", before, &after), None, "{after}");
    }
    // What two branches added is joined, with what both hold.
    let [ours, theirs] = ["b", "c"]
        .map(|name| format!("    def test_{name}(self):\n        self.assertEqual(add(2), 3)\n"));
    let marked = format!("{before}<<<<<<< ours\n{ours}=======\n{theirs}>>>>>>> theirs\n");
    let asked = |after: &str| of("tests/test_a.py", &marked, after);
    assert_eq!(asked(&format!("{before}{ours}{theirs}")), None);
    assert!(asked(&format!("{before}{ours}")).is_some());
    let losses = [
        before.replace("2)", "add(1))"),
        before.replace("        self.assertEqual(add(1), 2)\n", ""),
        before.replace("    def", "    @unittest.skip('later')\n    def"),
        before.replace("    def", "    @unittest.expectedFailure\n    def"),
        with("unittest.TestCase.assertEqual = lambda *a: None"),
        with("    def assertEqual(self, a, b): pass"),
        with("setattr(unittest.TestCase, 'assertEqual', print)"),
        with("    def test_a(self):\n        pass"),
        with("pytestmark = pytest.mark.xfail"),
        with("sys.exit(0)"),
        before.replace("add(1), 2)", "add(1), 2),"),
        String::new(),
    ];
    for after in losses {
        assert!(of("tests/test_a.py", before, &after).is_some(), "{after}");
    }
}

#[test]
fn a_test_of_any_runner_may_gain_and_not_be_left_out() {
    let rows = [
        (
            "tests/a.rs",
            "#[test]\nfn a() {}\n",
            "#[test]\n#[ignore]\nfn a() {}\n",
            true,
        ),
        (
            "tests/a.rs",
            "#[test]\nfn a() {}\n",
            "#[test]\nfn a() {}\n#[test]\nfn b() {}\n",
            false,
        ),
        (
            "tests/cases.json",
            "[\n  1\n]\n",
            "[\n  1,\n  2\n]\n",
            false,
        ),
        (
            "tests/cases.py",
            "[\n  1,\n  2\n]\n",
            "[\n  1\n  2\n]\n",
            true,
        ),
        (
            "a.test.js",
            "it('a', f)\n",
            "it('a', f)\nit.only('b', f)\n",
            true,
        ),
        (
            "a.test.js",
            "it('a', f)\n",
            "describe.skip('x', () => {\nit('a', f)\n})\n",
            true,
        ),
        (
            "a.test.js",
            "it('a', f)\n",
            "it('a', f)\nit('b', () => commit(1))\n",
            false,
        ),
        (
            "a_test.go",
            "func TestA() {\n}\n",
            "func TestA() {\nt.Skip()\n}\n",
            true,
        ),
        (
            "tests/check.sh",
            "grep -q a b\n",
            "exit 0\ngrep -q a b\n",
            true,
        ),
    ];
    for (path, before, after, expected) in rows {
        assert_eq!(of(path, before, after).is_some(), expected, "{after}");
    }
}

#[test]
fn all_that_a_test_loses_is_counted_and_what_it_asserts_is_named_first() {
    let plain: Vec<String> = (0..20).map(|number| format!("x{number} = 1\n")).collect();
    let plain = plain.concat();
    let asserts = "    self.assertEqual(add(1), 2)\n";
    let before = format!("{plain}{asserts}");
    let why = of("tests/test_a.py", &before, "y = 1\n").unwrap_or_default();
    let told = "loses or changes 21 lines: self.assertEqual(add(1), 2); x0 = 1; x1 = 1;";
    assert!(why.contains(told), "{why}");
    assert!(why.ends_with("; and 13 more"), "{why}");
    let long = format!("assert {}", "x".repeat(LINE_LETTERS));
    let why = of("tests/test_a.py", &long, "").unwrap_or_default();
    assert!(why.ends_with("x…"), "{why}");
    let why = of("tests/test_a.py", &before, &plain).unwrap_or_default();
    assert!(
        why.ends_with("loses or changes: self.assertEqual(add(1), 2)"),
        "{why}"
    );
}
