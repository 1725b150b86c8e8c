//! Keeps what a model has handed in so far, so that the next time it writes what changes alone.

use std::sync::Mutex;

use ropewalk_engine::Amendable;
use ropewalk_schemas::question::QuestionKind;
use ropewalk_schemas::specification::Document;
use ropewalk_schemas::task::TaskBlock;
use serde_json::{Value, json};

use super::{Facts, ModelSubmission, fields, overlay, read, read_with_faults, schema};

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

    /// Takes a whole submission; the errors are for the model, all at once.
    pub fn take(&self, whole: &Value) -> Result<(), Vec<String>> {
        let read = read(whole, &self.facts)?;
        self.stands().taken = Some(read);
        Ok(())
    }

    /// Takes a whole submission, also a plan that does not fit together.
    pub fn take_with_faults(&self, whole: &Value) -> Result<(), Vec<String>> {
        let read = read_with_faults(whole, &self.facts)?;
        self.stands().taken = Some(read);
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

impl Amendable for Draft {
    fn whole(&self, submitted: &Value) -> Result<Value, Vec<String>> {
        let mut stands = self.stands();
        stands.taken = None;
        // Who writes it otherwise means it, too, and is told: what stands is not to be lost over that.
        let amends = !matches!(submitted["amends"], Value::Null | Value::Bool(false));
        let written = match (amends, &stands.written) {
            (false, _) => submitted.clone(),
            (true, Some(written)) => overlay::over(written, submitted),
            (true, None) => {
                return Err(vec![
                    "`amends` changes what stands, and nothing does yet; hand in the whole `document` and `tasks`".to_owned(),
                ]);
            }
        };
        let whole = overlay::with_rest(written.clone(), submitted);
        if written["document"].is_object() || written["tasks"].is_array() {
            stands.written = Some(without_unknown(written));
        }
        // What stands may have its faults still: they do not keep anybody from asking.
        let question = &submitted["question"];
        let blocking = question["type"] == QuestionKind::Blocking.as_str();
        Ok(if blocking {
            json!({ "question": question })
        } else {
            whole
        })
    }
}

/// Leaves out the fields that were refused: a change that does not name them again is not to bring them back.
fn without_unknown(mut written: Value) -> Value {
    if let Some(fields) = written.as_object_mut() {
        fields.retain(|name, _| ["document", "tasks", "built_with"].contains(&name.as_str()));
    }
    if let Some(document) = written.get_mut("document") {
        fields::keep_known(document, &schema::<Document>());
    }
    let task = schema::<TaskBlock>();
    for block in written
        .get_mut("tasks")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        fields::keep_known(block, &task);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::specification::submission::tests::whole;

    fn drafted(previous: Option<Value>) -> Draft {
        Draft::new(Facts::default(), previous)
    }

    fn hand_in(draft: &Draft, submitted: &Value) -> Result<(), Vec<String>> {
        draft.whole(submitted).and_then(|whole| draft.take(&whole))
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
        assert_eq!(hand_in(&draft, &bad).unwrap_err().len(), 2);
        assert_eq!(draft.taken(), None);
        let mended = json!({ "amends": true, "tasks": [{ "id": "T-001", "validation": { "expected": "exit 0" } }] });
        hand_in(&draft, &mended).unwrap();
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
        hand_in(&draft, &question).unwrap();
        assert!(matches!(draft.taken(), Some(ModelSubmission::Question(_))));
        hand_in(
            &draft,
            &json!({ "amends": true, "document": { "title": "Streaks" } }),
        )
        .unwrap();
        assert_eq!(
            title_and_tasks(&draft),
            ("Streaks".to_owned(), vec!["T-001".to_owned()])
        );
        let nothing = hand_in(&draft, &json!({ "amends": true, "dropped": ["T-001"] }));
        assert!(nothing.is_err(), "a plan without tasks is none");
        hand_in(&draft, &whole()).unwrap();
        assert_eq!(
            title_and_tasks(&draft).0,
            "Habits",
            "a whole one takes its place"
        );
    }

    #[test]
    fn a_question_comes_first_whatever_is_wrong_with_what_stands() {
        let draft = drafted(None);
        let refused = json!({ "document": { "title": "Habits" } });
        draft.whole(&refused).unwrap();
        let question = json!({ "type": "blocking", "text": "Which?" });
        let asked = draft.whole(&json!({ "amends": true, "question": question }));
        assert_eq!(asked, Ok(json!({ "question": question })));
    }

    #[test]
    fn a_change_of_what_there_is_not_is_refused() {
        let draft = drafted(Some(whole()));
        let mut astray = json!({
            "amends": true, "title": "Streaks", "risks": [], "tasks": [{ "id": "T-001", "priority": 11 }],
            "document": { "objective": "Keep habits" },
        });
        let refused = hand_in(&draft, &astray).unwrap_err().join("\n");
        for named in ["`title`: there is no such field", "`T-001` has a priority"] {
            assert!(refused.contains(named), "{refused}");
        }
        assert!(!refused.contains("risks"), "{refused}");
        for (name, value) in [("dropped", "FR-1"), ("tasks", "[]"), ("document", "none")] {
            astray[name] = json!(value);
        }
        let refused = hand_in(&draft, &astray).unwrap_err().join("\n");
        for named in ["`dropped` is none", "`tasks` is none", "`document`: "] {
            assert!(refused.contains(named), "{refused}");
        }
        // What could be laid over it was, and what could not has taken nothing away.
        let mended = json!({ "amends": true, "tasks": [{ "id": "T-001", "priority": 2 }] });
        hand_in(&draft, &mended).unwrap();
        let Some(ModelSubmission::Plan(plan)) = draft.taken() else {
            panic!("a plan is expected")
        };
        let told = (plan.document.objective.as_str(), plan.tasks[0].priority);
        assert_eq!(told, ("Keep habits", Some(2)));
    }

    #[test]
    fn what_was_refused_beside_a_plan_does_not_come_back_with_a_change_of_it() {
        let draft = drafted(None);
        let mut astray = whole();
        astray["summary"] = json!("habits");
        astray["built_with"] = json!(["Rust"]);
        let refused = hand_in(&draft, &astray).unwrap_err();
        assert_eq!(refused.len(), 2, "{refused:?}");
        let mended = json!({ "amends": true, "built_with": "in Rust" });
        assert_eq!(hand_in(&draft, &mended), Ok(()));
    }

    #[test]
    fn nothing_is_changed_where_nothing_stands() {
        let refused = hand_in(&drafted(None), &json!({ "amends": true })).unwrap_err();
        assert!(refused[0].contains("nothing does yet"), "{refused:?}");
    }
}
