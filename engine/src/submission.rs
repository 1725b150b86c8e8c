//! Takes a typed result from a model, by a tool call.

use std::sync::Arc;

use ropewalk_llm::ToolSpec;
use serde_json::Value;

use crate::tool::{Schema, violations, without_namespace};

/// Checks a result that fits the schema; the errors go back to the model.
pub type Check = Arc<dyn Fn(&Value) -> Result<(), Vec<String>> + Send + Sync>;

/// Keeps what was handed in, so that the next result may say what changes alone.
pub trait Amendable: Send + Sync {
    /// Says whether a result only says what changes: it has to fit the schema in what it holds, and may leave out the rest.
    fn amends(&self, result: &Value) -> bool;

    /// Keeps a result, and returns the whole that it comes to; the errors go back to the model.
    fn whole(&self, result: &Value) -> Result<Value, Vec<String>>;
}

/// Asks for a typed result, which ends the job.
#[derive(Clone)]
pub struct Submission {
    /// The name of the tool that takes it.
    pub name: String,
    /// What it is, in words for the model.
    pub description: String,
    /// The JSON Schema of the result, an object.
    pub schema: Value,
    /// What results change where they need not be whole; none where each one stands for itself.
    pub draft: Option<Arc<dyn Amendable>>,
    /// What the schema cannot say of a whole result.
    pub check: Check,
    /// How often a wrong result is sent back.
    pub repairs: u32,
}

impl Submission {
    /// Describes the tool to a model.
    pub(crate) fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: self.schema.clone(),
        }
    }
}

impl std::fmt::Debug for Submission {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Submission")
            .field("name", &self.name)
            .field("repairs", &self.repairs)
            .finish_non_exhaustive()
    }
}

/// Is a submission with its schema compiled.
pub(crate) struct Intake<'a> {
    submission: &'a Submission,
    schema: Schema,
    /// The schema of a result that may leave out anything, where there is a draft that it changes.
    parts: Option<(&'a dyn Amendable, Schema)>,
}

impl<'a> Intake<'a> {
    /// Compiles the schema; the error says what is wrong with it.
    pub(crate) fn open(submission: &'a Submission) -> Result<Self, String> {
        let compile = |schema: &Value| {
            Schema::compile(schema).map_err(|reason| {
                format!("the schema of `{}` is invalid: {reason}", submission.name)
            })
        };
        let parts = match submission.draft.as_deref() {
            Some(draft) => Some((draft, compile(&without_required(&submission.schema))?)),
            None => None,
        };
        Ok(Self {
            submission,
            schema: compile(&submission.schema)?,
            parts,
        })
    }

    /// Says whether a call of `name` is the submission.
    pub(crate) fn takes(&self, name: &str) -> bool {
        let own = &self.submission.name;
        own.eq_ignore_ascii_case(name) || own.eq_ignore_ascii_case(without_namespace(name))
    }

    /// Returns the submission.
    pub(crate) fn submission(&self) -> &'a Submission {
        self.submission
    }

    /// Checks a result; the errors are for the model.
    pub(crate) fn check(&self, value: &Value) -> Result<(), Vec<String>> {
        let Some((draft, parts)) = &self.parts else {
            return self.check_whole(value);
        };
        if draft.amends(value) {
            fits(parts, value)?;
        }
        self.check_whole(&draft.whole(value)?)
    }

    fn check_whole(&self, value: &Value) -> Result<(), Vec<String>> {
        fits(&self.schema, value)?;
        (self.submission.check)(value)
    }
}

fn fits(schema: &Schema, value: &Value) -> Result<(), Vec<String>> {
    match violations(schema, value) {
        violations if violations.is_empty() => Ok(()),
        violations => Err(violations),
    }
}

/// Returns the schema of what fits `schema` as far as it goes.
fn without_required(schema: &Value) -> Value {
    let mut schema = schema.clone();
    leave_out_required(&mut schema);
    schema
}

fn leave_out_required(schema: &mut Value) {
    match schema {
        Value::Object(parts) => {
            // A list says which fields are required; a field of that name has a schema, which is none.
            parts.retain(|name, part| name != "required" || !part.is_array());
            parts.values_mut().for_each(leave_out_required);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out_required),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn submission() -> Submission {
        Submission {
            name: "submit_signals".to_owned(),
            description: "the signals".to_owned(),
            schema: json!({
                "type": "object",
                "properties": { "confidence": { "type": "number" } },
                "required": ["confidence"],
            }),
            draft: None,
            check: Arc::new(|value| {
                if value["confidence"].as_f64() <= Some(1.0) {
                    Ok(())
                } else {
                    Err(vec!["`confidence` is above 1".to_owned()])
                }
            }),
            repairs: 2,
        }
    }

    #[test]
    fn a_result_that_does_not_fit_the_schema_never_reaches_the_check() {
        let mut submission = submission();
        submission.check = Arc::new(|_| panic!("the check must not see this"));
        let intake = Intake::open(&submission).unwrap();
        let errors = intake.check(&json!({ "confidence": "high" })).unwrap_err();
        assert!(errors[0].contains("`confidence`"), "{errors:?}");
    }

    /// A number and a unit, of which a change names one.
    struct Measure;

    impl Amendable for Measure {
        fn amends(&self, result: &Value) -> bool {
            result["amends"] == true
        }

        fn whole(&self, result: &Value) -> Result<Value, Vec<String>> {
            let mut whole = json!({ "confidence": 0.5, "of": { "required": "x" } });
            for (name, value) in result.as_object().into_iter().flatten() {
                whole[name] = value.clone();
            }
            Ok(whole)
        }
    }

    #[test]
    fn a_change_has_to_fit_in_what_it_holds_and_the_whole_in_everything() {
        let mut submission = submission();
        submission.draft = Some(Arc::new(Measure));
        submission.schema["properties"]["of"] = json!({
            "type": "object",
            "properties": { "required": { "type": "string" } },
            "required": ["required"],
        });
        submission.schema["required"] = json!(["confidence", "of"]);
        let intake = Intake::open(&submission).unwrap();
        for (change, refused) in [
            (json!({ "amends": true, "confidence": 0.7 }), None),
            (json!({ "amends": true, "of": { "required": "y" } }), None),
            (
                json!({ "amends": true, "of": { "required": 3 } }),
                Some("`of/required`: 3 is not"),
            ),
            (
                json!({ "amends": true, "of": {} }),
                Some("\"required\" is a required property"),
            ),
            (
                json!({ "amends": true, "confidence": 2 }),
                Some("`confidence` is above 1"),
            ),
        ] {
            let told = intake.check(&change).err().map(|errors| errors.join("\n"));
            match (&told, refused) {
                (None, None) => {}
                (Some(told), Some(refused)) => assert!(told.contains(refused), "{told}"),
                _ => panic!("{change}: {told:?}"),
            }
        }
    }
}
