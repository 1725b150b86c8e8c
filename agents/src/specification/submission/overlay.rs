//! Puts what changes over what stands, so that nobody writes a whole specification anew for one line of it.

use serde_json::{Map, Value};

/// Returns what stands with a change over it: fields that the change leaves out stay, a requirement or task with a known id
/// changes in the fields that are given, an unknown one is added, those that `dropped` names go.
pub(super) fn over(stands: &Value, change: &Value) -> Value {
    let mut whole = stands.clone();
    let dropped = change["dropped"].as_array().map_or(&[][..], Vec::as_slice);
    let mut document = match whole.get_mut("document").map(Value::take) {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    for list in ["requirements", "quality"] {
        if let Some(list) = document.get_mut(list) {
            drop_items(list, dropped);
        }
    }
    for (name, value) in change["document"].as_object().into_iter().flatten() {
        match (name.as_str(), value) {
            ("requirements" | "quality", Value::Array(items)) => join(&mut document, name, items),
            _ => patch(document.entry(name).or_insert(Value::Null), value),
        }
    }
    whole["document"] = Value::Object(document);
    if let Some(tasks) = whole.get_mut("tasks") {
        drop_items(tasks, dropped);
    }
    if let (Value::Object(whole), Value::Array(tasks)) = (&mut whole, &change["tasks"]) {
        join(whole, "tasks", tasks);
    }
    if change["built_with"].is_string() {
        whole["built_with"] = change["built_with"].clone();
    }
    whole["question"] = change["question"].clone();
    whole
}

/// Returns a whole with what a submission holds that nothing reads, and what it holds in a form that nothing reads: whoever wrote it
/// is told.
pub(super) fn with_rest(mut whole: Value, submitted: &Value) -> Value {
    for (name, given) in submitted.as_object().into_iter().flatten() {
        let is_read = match name.as_str() {
            "document" => given.is_object(),
            "tasks" => given.is_array(),
            "built_with" => given.is_string(),
            "question" => true,
            _ => false,
        };
        if !is_read && !given.is_null() {
            whole[name] = given.clone();
        }
    }
    whole
}

fn drop_items(list: &mut Value, dropped: &[Value]) {
    if let Value::Array(items) = list {
        items.retain(|item| !dropped.contains(&item["id"]));
    }
}

/// Joins items into the list of that name, by their `id`.
fn join(holder: &mut Map<String, Value>, name: &str, changes: &[Value]) {
    let list = holder.entry(name).or_insert(Value::Null);
    let mut items = match list.take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    };
    for change in changes {
        let same = |item: &&mut Value| item["id"].is_string() && item["id"] == change["id"];
        match items.iter_mut().find(same) {
            Some(item) => patch(item, change),
            None => items.push(change.clone()),
        }
    }
    *list = Value::Array(items);
}

/// Changes the fields that are given, also of what lies within; anything but an object takes the place of what stood.
fn patch(place: &mut Value, change: &Value) {
    match (place, change) {
        (Value::Object(fields), Value::Object(changes)) => {
            for (name, change) in changes {
                patch(fields.entry(name).or_insert(Value::Null), change);
            }
        }
        (place, change) => *place = change.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_change_leaves_out_stays() {
        let stands = json!({
            "document": {
                "title": "Habits", "risks": ["one", "two"],
                "requirements": [{ "id": "FR-1", "text": "count", "priority": "must" }, { "id": "FR-2", "text": "tell" }],
            },
            "tasks": [
                { "id": "T-001", "file": "a.py", "requirements": [{ "id": "FR-1" }, { "id": "FR-2" }],
                  "validation": { "command": "true", "expected": "exit 0" } },
                { "id": "T-002", "file": "b.py" },
            ],
        });
        let change = json!({
            "amends": true, "dropped": ["FR-2", "T-002"],
            "document": { "risks": ["three"], "requirements": [{ "id": "FR-1", "text": "count days" }, { "id": "FR-3" }] },
            "tasks": [
                { "id": "T-001", "requirements": [{ "id": "FR-1" }], "validation": { "expected": "tests >= 2" } },
                { "id": "T-003", "file": "c.py" },
            ],
        });
        let expected = json!({
            "document": {
                "title": "Habits", "risks": ["three"],
                "requirements": [{ "id": "FR-1", "text": "count days", "priority": "must" }, { "id": "FR-3" }],
            },
            "tasks": [
                { "id": "T-001", "file": "a.py", "requirements": [{ "id": "FR-1" }],
                  "validation": { "command": "true", "expected": "tests >= 2" } },
                { "id": "T-003", "file": "c.py" },
            ],
            "question": null,
        });
        let whole = over(&stands, &change);
        assert_eq!(whole, expected);
        assert_eq!(over(&whole, &change), expected, "twice is once");
    }
}
