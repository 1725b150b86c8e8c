//! Marks what is filled into a prompt, so that the words of the program are told from those of others wherever these stand: in a
//! paragraph, in a list, in a heading.

use serde_json::Value;

/// What stands around each text that is filled in.
const MARKS: [char; 2] = ['«', '»'];
/// Values that bear no mark: they choose what is told, or are words of the program themselves.
const PLAIN: [&str; 8] = [
    "action",
    "by",
    "kind",
    "phase",
    "stack",
    "state",
    "submit_tool",
    "tools",
];

/// Marks each text of `values`.
pub(super) fn marked(values: &Value) -> Value {
    let [begins, ends] = MARKS;
    match values {
        // One that is empty may stand for one that is absent.
        Value::String(text) if !text.is_empty() => Value::String(format!("{begins}{text}{ends}")),
        Value::Array(values) => values.iter().map(marked).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| {
                let is_plain = PLAIN.contains(&name.as_str());
                let value = if is_plain {
                    value.clone()
                } else {
                    marked(value)
                };
                (name.clone(), value)
            });
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

/// Returns whether anything in a text is marked.
pub(super) fn are_in(text: &str) -> bool {
    text.contains(MARKS)
}

/// Leaves out of a text what was filled in; fails on marks that do not pair, behind which words of the program would be lost.
pub(super) fn own(text: &str) -> String {
    let [begins, ends] = MARKS;
    let mut own = String::new();
    let mut open = 0_u32;
    for letter in text.chars() {
        if letter == begins {
            open += 1;
        } else if letter == ends {
            assert!(open > 0, "a mark ends that did not begin: {text}");
            open -= 1;
        } else if open == 0 {
            own.push(letter);
        }
    }
    assert_eq!(open, 0, "a mark does not end: {text}");
    own
}

/// Takes the marks out of a text, and leaves what they stand around.
pub(super) fn plain(text: &str) -> String {
    text.replace(MARKS, "")
}

#[test]
fn what_was_filled_in_is_told_from_what_was_not() {
    let values = serde_json::json!({ "state": "draft", "lines": ["a `b`", ""], "count": 1 });
    let marked = marked(&values);
    let expected = serde_json::json!({ "state": "draft", "lines": ["«a `b`»", ""], "count": 1 });
    assert_eq!(marked, expected);
    let text = "- «a `b`»: one\n- two «c\nd»\n";
    assert!(are_in(text) && !are_in("- one"));
    assert_eq!(own(text), "- : one\n- two \n");
    assert_eq!(plain(text), "- a `b`: one\n- two c\nd\n");
}

#[test]
fn marks_that_do_not_pair_are_no_text() {
    for text in ["a «b", "a» b", "«a «b» c", "«a»» b"] {
        assert!(std::panic::catch_unwind(|| own(text)).is_err(), "{text}");
    }
    assert_eq!(own("«a «b» c» d"), " d");
}
