//! Takes a typed result from a model, by a tool call.

use std::sync::Arc;

use ropewalk_llm::ToolSpec;
use serde_json::Value;

use crate::tool::{Schema, violations, without_namespace};

/// Checks a result that fits the schema; the errors go back to the model.
pub type Check = Arc<dyn Fn(&Value) -> Result<(), Vec<String>> + Send + Sync>;

/// Keeps what was handed in, so that the next result may say what changes alone.
pub trait Amendable: Send + Sync {
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
    /// What results change where they need not be whole; none where each one stands for itself. Where there is one, draft and check
    /// see a result whether it fits the schema or not: they tell all that is wrong with it at once, and how that is mended.
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
}

impl<'a> Intake<'a> {
    /// Compiles the schema; the error says what is wrong with it.
    pub(crate) fn open(submission: &'a Submission) -> Result<Self, String> {
        let schema = Schema::compile(&submission.schema).map_err(|reason| {
            format!("the schema of `{}` is invalid: {reason}", submission.name)
        })?;
        Ok(Self { submission, schema })
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
        if let Some(draft) = &self.submission.draft {
            return (self.submission.check)(&draft.whole(value)?);
        }
        let violations = violations(&self.schema, value);
        if violations.is_empty() {
            (self.submission.check)(value)
        } else {
            Err(violations)
        }
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
            check: Arc::new(|_| Ok(())),
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

    /// Half of what is to be measured stands already, and a result may leave out that half.
    struct Measure;

    impl Amendable for Measure {
        fn whole(&self, result: &Value) -> Result<Value, Vec<String>> {
            let mut whole = json!({ "confidence": 0.5 });
            for (name, value) in result.as_object().into_iter().flatten() {
                whole[name] = value.clone();
            }
            Ok(whole)
        }
    }

    #[test]
    fn a_result_over_a_draft_is_told_everything_at_once_by_its_check() {
        let mut submission = submission();
        submission.draft = Some(Arc::new(Measure));
        submission.check = Arc::new(|value: &Value| {
            let faults = ["confidence", "unit"].into_iter();
            let faults = faults.filter(|name| !value[name].is_number());
            let faults: Vec<String> = faults.map(|name| format!("mend `{name}`")).collect();
            if faults.is_empty() {
                Ok(())
            } else {
                Err(faults)
            }
        });
        let intake = Intake::open(&submission).unwrap();
        for (result, expected) in [
            (json!({ "unit": 1 }), vec![]),
            (
                json!({ "confidence": "high" }),
                vec!["mend `confidence`", "mend `unit`"],
            ),
        ] {
            let told = intake.check(&result).err().unwrap_or_default();
            assert_eq!(told, expected, "{result}");
        }
    }
}
