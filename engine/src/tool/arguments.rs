//! Checks what a model wrote against a JSON Schema, and names the field that does not fit.

use std::sync::Arc;

use jsonschema::Validator;
use serde_json::Value;

/// The most violations that are told at once.
const MOST: usize = 10;
/// The longest part of a violation that is told, in characters.
const LONGEST: usize = 300;

/// Is a compiled JSON Schema.
#[derive(Debug, Clone)]
pub(crate) struct Schema(Arc<Validator>);

impl Schema {
    /// Compiles a schema; the error says what is wrong with it.
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        jsonschema::validator_for(schema)
            .map(|validator| Self(Arc::new(validator)))
            .map_err(|error| error.to_string())
    }
}

/// Lists what does not fit, each with the field's path; empty when all is well.
pub(crate) fn violations(schema: &Schema, value: &Value) -> Vec<String> {
    schema
        .0
        .iter_errors(value)
        .take(MOST)
        .map(|error| {
            let path = error.instance_path().to_string();
            let said: String = error.to_string().chars().take(LONGEST).collect();
            if path.is_empty() {
                said
            } else {
                format!("`{}`: {said}", path.trim_start_matches('/'))
            }
        })
        .collect()
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
            (json!({ "path": "a", "pth": 1 }), vec!["'pth'"]),
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
