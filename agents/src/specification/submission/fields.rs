//! Finds fields that nobody reads: whoever wrote one meant something by it.

use serde_json::Value;

/// Lists the fields of `value` that `schema` does not know, by path.
pub(super) fn unknown(value: &Value, schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    look(value, schema, "", &mut found);
    found
}

/// Lists the fields of `value` itself, not those of what lies within, that `schema` does not know.
pub(super) fn unknown_here(value: &Value, schema: &Value) -> Vec<String> {
    let known = part(schema, "properties").and_then(Value::as_object);
    let fields = value.as_object().into_iter().flatten();
    let unknown = fields.filter(|(name, value)| {
        known.is_some_and(|known| !known.contains_key(*name)) && !says_nothing(value)
    });
    unknown.map(|(name, _)| name.clone()).collect()
}

fn look(value: &Value, schema: &Value, place: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let Some(known) = part(schema, "properties").and_then(Value::as_object) else {
                return;
            };
            for (name, value) in fields {
                let path = match place {
                    "" => name.clone(),
                    place => format!("{place}.{name}"),
                };
                match known.get(name) {
                    Some(schema) => look(value, schema, &path, found),
                    None if says_nothing(value) => {}
                    None => found.push(path),
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = part(schema, "items") else {
                return;
            };
            for (index, item) in items.iter().enumerate() {
                look(item, schema, &format!("{place}[{index}]"), found);
            }
        }
        _ => {}
    }
}

/// Removes the fields of `value` that `schema` does not know.
pub(super) fn keep_known(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(fields) => {
            let Some(known) = part(schema, "properties").and_then(Value::as_object) else {
                return;
            };
            fields.retain(|name, _| known.contains_key(name));
            for (name, value) in fields {
                keep_known(value, &known[name]);
            }
        }
        Value::Array(items) => {
            if let Some(schema) = part(schema, "items") {
                for item in items {
                    keep_known(item, schema);
                }
            }
        }
        _ => {}
    }
}

/// Where nothing was written, nothing is lost.
fn says_nothing(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

/// Returns a part of a schema, or of the branch of it that has one: what may be absent is a choice with nothing.
fn part<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let branches = || {
        let branches = schema.get("anyOf").or_else(|| schema.get("oneOf"))?;
        branches.as_array()?.iter().find_map(|one| one.get(name))
    };
    schema.get(name).or_else(branches)
}
