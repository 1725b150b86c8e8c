//! The form that a model fills in. What the program fills in by itself is no part of it: whatever a model wrote there would
//! be replaced, and lost.

use std::collections::BTreeSet;

use ropewalk_engine::schema_of;
use ropewalk_schemas::specification::Document;
use ropewalk_schemas::task::TaskBlock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model_question::ModelQuestion;

/// The fields that the program fills in: which documents it showed, which it did not find, what was learned, whose a file is.
const FILLED: [&str; 4] = ["context_read", "missing_inputs", "gotchas", "owner"];

/// What a model hands in, from which its schema is made.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Form {
    /// True where this call changes what stands already: the revision that you are shown, or what you handed in last where that came
    /// back. Write what changes alone: a field that you leave out stays as it is; a requirement or task whose `id` is there already
    /// changes in the fields that you give, and one with a new `id` is added; any other list takes the place of the old one. Where this
    /// is left out, the call is the whole specification, and nothing of an earlier one counts.
    #[serde(default)]
    #[expect(
        dead_code,
        reason = "the schema is made of it; the draft reads the field by its name"
    )]
    amends: bool,
    /// With `amends: true` alone: the ids of the requirements and tasks that are taken out.
    #[serde(default)]
    #[expect(
        dead_code,
        reason = "the schema is made of it; the draft reads the field by its name"
    )]
    dropped: Vec<String>,
    /// What spec.md says; leave it out when a blocking question has to be answered first.
    #[serde(default)]
    #[expect(
        dead_code,
        reason = "the schema is made of it; its content is read with the path of each error"
    )]
    document: Option<Document>,
    /// The tasks of tasks.md.
    #[serde(default)]
    #[expect(
        dead_code,
        reason = "the schema is made of it; its content is read with the path of each error"
    )]
    tasks: Vec<TaskBlock>,
    /// Where the repository holds no code yet: the words, copied from a document or an answer, by which people say what it is
    /// built with.
    #[serde(default)]
    #[expect(
        dead_code,
        reason = "the schema is made of it; the plan is read with the field by its name"
    )]
    built_with: Option<String>,
    /// A question, if one has to be put; a blocking one takes the place of document and tasks.
    #[serde(default)]
    #[expect(
        dead_code,
        reason = "the schema is made of it; its content is read with the path of each error"
    )]
    question: Option<ModelQuestion>,
}

/// Returns the schema of what a model may write of a `T`.
pub fn schema<T: JsonSchema>() -> Value {
    let mut schema = schema_of::<T>();
    prune(&mut schema, &mut BTreeSet::new());
    schema
}

/// Leaves out what the program fills in, and what was `told` of the items of a list before.
fn prune(schema: &mut Value, told: &mut BTreeSet<String>) {
    match schema {
        Value::Object(parts) => {
            if let Some(Value::Object(items)) = parts.get_mut("items") {
                let text = items.get("description").and_then(Value::as_str);
                if text.is_some_and(|text| !told.insert(text.to_owned())) {
                    items.remove("description");
                }
            }
            if let Some(Value::Object(fields)) = parts.get_mut("properties") {
                fields.retain(|name, _| !FILLED.contains(&name.as_str()));
            }
            if let Some(Value::Array(names)) = parts.get_mut("required") {
                names.retain(|name| !name.as_str().is_some_and(|name| FILLED.contains(&name)));
            }
            parts.values_mut().for_each(|part| prune(part, told));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| prune(item, told)),
        _ => {}
    }
}

/// Returns what a model may write of `written`, a document or a task: as it would hand it in again.
pub fn shown(written: &impl Serialize) -> Value {
    // Records of plain fields, which JSON can always hold.
    let mut value = serde_json::to_value(written).unwrap_or_default();
    leave_out(&mut value);
    value
}

fn leave_out(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !FILLED.contains(&name.as_str()));
            fields.values_mut().for_each(leave_out);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::task::GotchaReference;
    use serde_json::json;

    use super::*;
    use crate::specification::submission::fields;

    #[test]
    fn what_a_path_is_stands_in_the_form_once() {
        let form = schema::<Form>().to_string();
        assert_eq!(form.matches("relative to the root").count(), 1, "{form}");
        assert!(!form.contains("case-folding"), "{form}");
    }

    #[test]
    fn what_is_shown_of_a_revision_can_be_handed_in_again() {
        let file = json!({ "path": "a.rs", "purpose": "new", "owner": "ada" });
        let whole: Document = serde_json::from_value(json!({
            "title": "Habits", "objective": "o", "context_read": ["README.md"],
            "missing_inputs": ["market.md"], "gotchas": [{ "text": "months differ" }],
            "new_files": [file], "risks": ["none"],
        }))
        .unwrap();
        assert_eq!(
            whole.gotchas,
            [GotchaReference {
                id: None,
                text: "months differ".to_owned()
            }]
        );
        let shown = shown(&whole);
        assert_eq!(
            fields::unknown(&shown, &schema::<Document>()),
            Vec::<String>::new()
        );
        assert_eq!(shown["new_files"][0]["path"], "a.rs");
        for ours in FILLED {
            assert!(!shown.to_string().contains(ours), "{ours}: {shown}");
        }
    }
}
