//! Keeps what a model has handed in so far, so that the next time it writes what changes alone.

use std::sync::Mutex;

use ropewalk_schemas::specification::Document;
use ropewalk_schemas::task::TaskBlock;
use serde_json::Value;

use super::{Facts, ModelSubmission, fields, overlay, read, schema};

/// What stands in one conversation about a specification.
#[derive(Debug)]
pub struct Draft {
    facts: Facts,
    stands: Mutex<DraftState>,
}

#[derive(Debug)]
struct DraftState {
    /// What was handed in last, or the revision that is to be changed.
    written: Option<Value>,
    /// What the last submission came to, where it passed.
    taken: Option<ModelSubmission>,
}

impl Draft {
    /// Begins with the revision that is to be changed, if there is one.
    pub fn new(facts: Facts, previous: Option<Value>) -> Self {
        let stands = DraftState {
            written: previous,
            taken: None,
        };
        Self {
            facts,
            stands: Mutex::new(stands),
        }
    }

    /// Takes a submission, whole or of changes; the errors are for the model, all at once.
    pub fn hand_in(&self, submitted: &Value) -> Result<(), Vec<String>> {
        let mut stands = self.stands();
        stands.taken = None;
        let whole = match (submitted["amends"] == true, &stands.written) {
            (false, _) => submitted.clone(),
            (true, Some(written)) => overlay::over(written, submitted),
            (true, None) => {
                return Err(vec![
                    "`amends` changes what stands, and nothing does yet; hand in the whole `document` and `tasks`".to_owned(),
                ]);
            }
        };
        let read = read(&whole, &self.facts);
        if whole["document"].is_object() || whole["tasks"].is_array() {
            stands.written = Some(without_unknown(whole));
        }
        stands.taken = Some(read?);
        Ok(())
    }

    /// Returns what the last submission came to; none where it was refused.
    pub fn taken(&self) -> Option<ModelSubmission> {
        self.stands().taken.clone()
    }

    fn stands(&self) -> std::sync::MutexGuard<'_, DraftState> {
        // Nothing in here panics half-way; what a panic elsewhere left is whole.
        self.stands
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Leaves out the fields that were refused: a change that does not name them again is not to bring them back.
fn without_unknown(mut written: Value) -> Value {
    fields::keep_known(&mut written["document"], &schema::<Document>());
    let task = schema::<TaskBlock>();
    for block in written["tasks"].as_array_mut().into_iter().flatten() {
        fields::keep_known(block, &task);
    }
    written
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::specification::submission::tests::whole;

    fn drafted(previous: Option<Value>) -> Draft {
        Draft::new(Facts::default(), previous)
    }

    fn title_and_tasks(draft: &Draft) -> (String, Vec<String>) {
        let Some(ModelSubmission::Plan(plan)) = draft.taken() else {
            panic!("a plan is expected")
        };
        let tasks = plan.tasks.iter().map(|task| task.id.to_string());
        (plan.document.title.clone(), tasks.collect())
    }

    #[test]
    fn a_refused_plan_is_mended_by_what_changes_alone() {
        let draft = drafted(None);
        let mut bad = whole();
        bad["document"]["budget"] = json!("a day");
        bad["tasks"][0]["validation"]["expected"] = json!("green");
        assert_eq!(draft.hand_in(&bad).unwrap_err().len(), 2);
        assert_eq!(draft.taken(), None);
        let mended = json!({ "amends": true, "tasks": [{ "id": "T-001", "validation": { "expected": "exit 0" } }] });
        draft.hand_in(&mended).unwrap();
        assert_eq!(
            title_and_tasks(&draft),
            ("Habits".to_owned(), vec!["T-001".to_owned()])
        );
    }

    #[test]
    fn a_revision_is_changed_in_what_people_want_changed() {
        let draft = drafted(Some(whole()));
        let question =
            json!({ "amends": true, "question": { "type": "blocking", "text": "Which?" } });
        draft.hand_in(&question).unwrap();
        assert!(matches!(draft.taken(), Some(ModelSubmission::Question(_))));
        draft
            .hand_in(&json!({ "amends": true, "document": { "title": "Streaks" } }))
            .unwrap();
        assert_eq!(
            title_and_tasks(&draft),
            ("Streaks".to_owned(), vec!["T-001".to_owned()])
        );
        let nothing = draft.hand_in(&json!({ "amends": true, "dropped": ["T-001"] }));
        assert!(nothing.is_err(), "a plan without tasks is none");
        draft.hand_in(&whole()).unwrap();
        assert_eq!(
            title_and_tasks(&draft).0,
            "Habits",
            "a whole one takes its place"
        );
    }

    #[test]
    fn nothing_is_changed_where_nothing_stands() {
        let refused = drafted(None)
            .hand_in(&json!({ "amends": true }))
            .unwrap_err();
        assert!(refused[0].contains("nothing does yet"), "{refused:?}");
    }
}
