//! Takes what the model of an attempt hands in, by the tool that ends its work. A summary that was right once need not be written
//! again with the mended work.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ropewalk_engine::{Amendable, Submission, plain_schema_of};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::attempt::report::{Lesson, SUMMARY_KEPT, TaskResult};

/// The tool that ends an attempt.
pub(super) const FINISH: &str = "finish";
/// How often a wrong or missing result is sent back.
const REPAIRS: u32 = 2;

/// The newest summary that a conversation handed in and that nothing was wrong with, whatever became of the work. It follows from the
/// replies alone: a conversation that is taken up again comes to the same, and so does one whose older messages made room.
#[derive(Debug, Default)]
pub(in crate::attempt) struct KeptSummary(Mutex<Option<String>>);

impl KeptSummary {
    /// Returns the summary; none before there was one.
    pub(in crate::attempt) fn newest(&self) -> Option<String> {
        self.kept().clone()
    }

    fn kept(&self) -> MutexGuard<'_, Option<String>> {
        // Nothing in here panics half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Amendable for KeptSummary {
    fn whole(&self, result: &Value) -> Result<Value, Vec<String>> {
        let Some(fields) = result.as_object() else {
            return Err(vec!["a result is an object with its fields".to_owned()]);
        };
        let mut kept = self.kept();
        let mut faults = Vec::new();
        match part::<String>(result, "summary") {
            Ok(Some(summary)) if !summary.trim().is_empty() => *kept = Some(summary),
            Ok(None) if kept.is_some() => {}
            Ok(_) => faults.push("`summary` says nothing; say what you changed".to_owned()),
            Err(fault) => faults.push(fault),
        }
        let is_kept = faults.is_empty();
        faults.extend(part::<String>(result, "blocked").err());
        match part::<Lesson>(result, "lesson") {
            Ok(Some(lesson)) if lesson.text.trim().is_empty() => {
                faults.push("`lesson`: its `text` says nothing; leave it out".to_owned());
            }
            Ok(_) => {}
            Err(fault) => faults.push(fault),
        }
        if faults.is_empty() {
            let mut whole = fields.clone();
            whole.insert("summary".to_owned(), json!(*kept));
            return Ok(Value::Object(whole));
        }
        faults.extend(is_kept.then(|| SUMMARY_KEPT.to_owned()));
        Err(faults)
    }
}

/// Reads a field of a result; none where it is left out. Says what is wrong with one that cannot be read.
pub(in crate::attempt) fn part<T: DeserializeOwned>(
    result: &Value,
    name: &str,
) -> Result<Option<T>, String> {
    serde_json::from_value(result[name].clone()).map_err(|error| format!("`{name}`: {error}"))
}

/// Asks for the result of a conversation that has handed in `kept` so far.
pub(super) fn finish(kept: &Arc<KeptSummary>) -> Submission {
    Submission {
        name: FINISH.to_owned(),
        description:
            "Ends the work on this task. The gate then checks it. Leave `summary` out only where you were told that it is kept."
                .to_owned(),
        schema: plain_schema_of::<TaskResult>(),
        draft: Some(Arc::clone(kept) as Arc<dyn Amendable>),
        // All that can be wrong is told by the draft.
        check: Arc::new(|_| Ok(())),
        repairs: REPAIRS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is expected of a result: the summary that holds with it, or what its refusal says.
    type Outcome = Result<&'static str, &'static [&'static str]>;

    const SAYS_NOTHING: &[&str] = &["`summary` says nothing"];

    #[test]
    fn a_summary_is_written_once_and_what_is_wrong_beside_it_alone_is_told() {
        let rows: [(Value, Outcome, Option<&str>); 12] = [
            (json!({}), Err(SAYS_NOTHING), None),
            (json!({ "summary": " \n" }), Err(SAYS_NOTHING), None),
            (
                json!({ "summary": 3 }),
                Err(&["`summary`: invalid type"]),
                None,
            ),
            (
                json!({ "summary": "one", "lesson": { "globs": ["*"] } }),
                Err(&["`lesson`: missing field `text`", SUMMARY_KEPT]),
                Some("one"),
            ),
            (
                json!({ "lesson": "words" }),
                Err(&["expected an object with its `text`", SUMMARY_KEPT]),
                Some("one"),
            ),
            (
                json!({ "blocked": true, "lesson": { "text": "" } }),
                Err(&[
                    "`blocked`: invalid type",
                    "`lesson`: its `text`",
                    SUMMARY_KEPT,
                ]),
                Some("one"),
            ),
            (json!({ "lesson": { "text": "x" } }), Ok("one"), Some("one")),
            (
                json!({ "summary": null, "blocked": null }),
                Ok("one"),
                Some("one"),
            ),
            // One that is wrong takes nothing away.
            (json!({ "summary": "" }), Err(SAYS_NOTHING), Some("one")),
            (json!([]), Err(&["an object"]), Some("one")),
            (json!({ "summary": "two" }), Ok("two"), Some("two")),
            (json!({}), Ok("two"), Some("two")),
        ];
        let kept = KeptSummary::default();
        for (result, expected, newest) in rows {
            let found = kept.whole(&result);
            match (&found, expected) {
                (Ok(whole), Ok(summary)) => assert_eq!(whole["summary"], summary, "{result}"),
                (Err(told), Err(expected)) => {
                    assert_eq!(told.len(), expected.len(), "{told:?}");
                    for (told, expected) in told.iter().zip(expected) {
                        assert!(told.contains(expected), "{told}");
                    }
                }
                (found, expected) => panic!("{result}: {found:?}, not {expected:?}"),
            }
            assert_eq!(kept.newest().as_deref(), newest, "{result}");
        }
    }

    #[test]
    fn the_model_reads_what_a_result_may_hold_in_plain_words() {
        let expected = json!({
            "type": "object",
            "properties": {
                "summary": { "type": "string", "minLength": 1,
                    "description": "What you changed, and what whoever builds on it has to know: names, signatures, decisions. Two to five sentences." },
                "blocked": { "type": "string",
                    "description": "Only where the task cannot be done as it stands: why, and what would have to change. Nothing lands then, and a person decides." },
                "lesson": {
                    "type": "object",
                    "description": "A mistake that you made and mended and that others should avoid, if there was one.",
                    "properties": {
                        "text": { "type": "string", "minLength": 1 },
                        "globs": { "type": "array", "items": { "type": "string" } },
                    },
                    "required": ["text"],
                },
            },
        });
        assert_eq!(finish(&Arc::default()).schema, expected);
    }
}
