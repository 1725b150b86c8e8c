//! Checks what a model wrote against a JSON Schema, and names the field that does not fit.

use std::sync::Arc;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

/// The most violations that are told at once.
const MOST: usize = 10;
/// The longest part of a violation that is told, in characters.
const LONGEST: usize = 300;

/// Is a compiled JSON Schema.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    validator: Arc<Validator>,
    written: Arc<Value>,
}

impl Schema {
    /// Compiles a schema; the error says what is wrong with it.
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        let validator = jsonschema::validator_for(schema).map_err(|error| error.to_string())?;
        Ok(Self {
            validator: Arc::new(validator),
            written: Arc::new(schema.clone()),
        })
    }

    /// Lists the fields that there are where a field was written that there is not.
    fn fields_beside(&self, error: &ValidationError<'_>) -> Option<String> {
        if !matches!(
            error.kind(),
            ValidationErrorKind::AdditionalProperties { .. }
        ) {
            return None;
        }
        let path = error.schema_path().to_string();
        let (object, _) = path.rsplit_once('/')?;
        let fields = self.written.pointer(object)?.get("properties")?;
        let fields: Vec<String> = fields
            .as_object()?
            .keys()
            .map(|name| format!("`{name}`"))
            .collect();
        (!fields.is_empty()).then(|| fields.join(", "))
    }
}

/// Lists what does not fit, each with the field's path; empty when all is well.
pub(crate) fn violations(schema: &Schema, value: &Value) -> Vec<String> {
    let errors = schema.validator.iter_errors(value).take(MOST);
    errors.map(|error| told(schema, &error)).collect()
}

fn told(schema: &Schema, error: &ValidationError<'_>) -> String {
    let path = error.instance_path().to_string();
    let mut said: String = error.to_string().chars().take(LONGEST).collect();
    if let Some(fields) = schema.fields_beside(error) {
        said.push_str("; the fields are ");
        said.push_str(&fields);
    }
    if path.is_empty() {
        said
    } else {
        format!("`{}`: {said}", path.trim_start_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_violation_names_the_field() {
        let schema = Schema::compile(&json!({
            "type": "object",
            "properties": { "path": { "type": "string" }, "edits": { "type": "array", "items": {
                "type": "object", "required": ["old"], "properties": { "old": { "type": "string" } } } } },
            "required": ["path"],
            "additionalProperties": false,
        }))
        .unwrap();
        let cases = [
            (json!({ "path": "a" }), vec![]),
            (json!({}), vec!["\"path\""]),
            (json!({ "path": 1 }), vec!["`path`"]),
            (
                json!({ "path": "a", "edits": [{}] }),
                vec!["`edits/0`", "\"old\""],
            ),
            (
                json!({ "path": "a", "pth": 1 }),
                vec!["'pth'", "the fields are `path`, `edits`"],
            ),
        ];
        for (value, expected) in cases {
            let said = violations(&schema, &value).join("\n");
            assert_eq!(said.is_empty(), expected.is_empty(), "{value} {said}");
            for part in expected {
                assert!(said.contains(part), "{value}: {said}");
            }
        }
    }

    /// Whatever a model writes for arguments is an object that fits, is told by its field, or is given back as it came.
    #[test]
    fn fuzz_tool_json() {
        let table = include_str!("../../tests/tables/tools.json");
        let table: Value = serde_json::from_str(table).unwrap();
        let tools = table.as_array().cloned().unwrap_or_else(|| {
            let named = table.as_object().unwrap().values();
            named.cloned().collect()
        });
        let schemas: Vec<Schema> = tools
            .iter()
            .map(|tool| Schema::compile(tool.get("parameters").unwrap_or(tool)).unwrap())
            .collect();
        assert!(schemas.len() > 5);
        let check = |input: &[u8]| {
            let raw = String::from_utf8_lossy(input);
            let call = ropewalk_llm::ToolUse::parse("id", "tool", &raw);
            if call.malformed {
                assert_eq!(call.input, Value::String(raw.into_owned()));
                return "malformed".to_owned();
            }
            assert!(call.input.is_object());
            let told = schemas.iter().map(|schema| violations(schema, &call.input));
            let told: Vec<usize> = told
                .inspect(|told| assert!(told.len() <= MOST))
                .map(|told| told.len())
                .collect();
            format!("{told:?}")
        };
        let words = [
            "\"path\":",
            "\"command\":",
            "\"edits\":[",
            "{",
            "}",
            "[",
            "]",
            ",",
            "null",
            "true",
            "1e400",
            "-0",
            "\"\\ud800\"",
            "\\u0000",
        ];
        ropewalk_tests::fuzz::Target {
            name: "tool-json",
            words: &words,
            check: &check,
        }
        .run();
    }
}
