//! Judges what becomes of tests that a file of Python holds which is not named like one: in a product, or where a pattern of the
//! project's own finds them. They may gain, as every test may.

use std::borrow::Cow;

use super::{Change, test_changes};

/// Says why a change takes something from the tests of a file of Python.
pub(super) fn why(change: &Change<'_>) -> Option<String> {
    let ending = change.path.rsplit_once('.').map(|(_, ending)| ending);
    if ending != Some("py") {
        return None;
    }
    let before = tests_of(change.before?);
    if before.is_empty() {
        return None;
    }
    let after = tests_of(change.after.unwrap_or_default());
    test_changes::why(&Change {
        path: change.path,
        before: Some(&before),
        // Where the tests are gone, so is all of what they were.
        after: (!after.is_empty()).then_some(&*after),
    })
}

/// Returns the classes and functions at the top of a file that are tests, with their decorators.
fn tests_of(text: &str) -> Cow<'_, str> {
    if !text.contains("test") && !text.contains("TestCase") {
        return Cow::Borrowed("");
    }
    let mut tests = String::new();
    let mut decorators = String::new();
    let mut is_test = false;
    for line in text.split_inclusive('\n') {
        let is_inner = line.trim().is_empty() || line.starts_with([' ', '\t', ')', '#']);
        if !is_inner {
            if line.starts_with('@') {
                decorators.push_str(line);
                is_test = false;
                continue;
            }
            is_test = begins_test(line);
            if is_test {
                tests.push_str(&decorators);
            }
            decorators.clear();
        }
        if is_test && !line.trim().is_empty() {
            tests.push_str(line);
        }
    }
    Cow::Owned(tests)
}

fn begins_test(line: &str) -> bool {
    let line = line.strip_prefix("async ").unwrap_or(line);
    let is_case =
        line.starts_with("class ") && (line.contains("TestCase") || line.starts_with("class Test"));
    is_case || line.starts_with("def test_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_in_a_product_may_gain_and_nothing_else() {
        let file = |product: &str, test: &str| {
            format!(
                "import unittest\n\n\ndef sub(a, b):\n    return {product}\n\n\nclass Sums(unittest.TestCase):\n    def test_sub(self):\n        {test}\n"
            )
        };
        let holds = "self.assertEqual(sub(5, 3), 2)";
        let before = file("0", holds);
        let more = file("a - b", holds) + "\n    def test_more(self):\n        self.fail()\n";
        for (after, is_asked) in [
            (file("a - b", holds), false),
            (more, false),
            (file("b - a", "self.assertEqual(sub(5, 3), -2)"), true),
            (file("b - a", "sub(5, 3)"), true),
            ("def sub(a, b):\n    return 0\n".to_owned(), true),
            (before.replace("class", "@unittest.skip\nclass"), true),
        ] {
            let change = Change {
                path: "calc.py",
                before: Some(&before),
                after: Some(&after),
            };
            assert_eq!(why(&change).is_some(), is_asked, "{after}");
        }
    }

    #[test]
    fn what_is_no_test_is_nobodys_question() {
        let change = Change {
            path: "calc.py",
            before: Some("def latest():\n    return 1\n\n\nclass Contest:\n    pass\n"),
            after: Some(""),
        };
        assert_eq!(why(&change), None);
    }
}
