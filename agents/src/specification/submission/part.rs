//! Reads a part of a submission: what cannot be read in one place hides nothing of what is wrong in the others.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use serde_path_to_error::{Error, Segment};

/// Stands in the place of what could not be read. A fault that names it is one of the program's own.
pub(super) const UNREAD: &str = "x-unread-x";
/// So many faults of one part are found.
const FAULTS: usize = 40;

/// Reads what was written of the part called `name`. What cannot be read is told, and what `stand_in` has there takes its place,
/// so that the rest can be looked at; without that it is left out.
pub(super) fn read<T: DeserializeOwned>(
    written: &Value,
    stand_in: &Value,
    name: &str,
    faults: &mut Vec<String>,
) -> Option<T> {
    let mut value = written.clone();
    for _ in 0..FAULTS {
        let error = match serde_path_to_error::deserialize(&value) {
            Ok(read) => return Some(read),
            Err(error) => error,
        };
        faults.push(told(&error, name));
        replace(&mut value, stand_in, &error)?;
    }
    faults.push(format!(
        "more of `{name}` cannot be read; the rest is told once these are mended"
    ));
    None
}

fn told(error: &Error<serde_json::Error>, name: &str) -> String {
    let (place, what) = (error.path().to_string(), error.inner().to_string());
    // What lies at the root of the part has no path.
    let place = match place.as_str() {
        "." => format!("`{name}`"),
        place => format!("`{name}`, `{place}`"),
    };
    // Some errors say themselves how they are mended.
    if what.contains("; ") {
        return format!("{place}: {what}");
    }
    let mend = mend(&what);
    format!("{place}: {what}; {mend}")
}

/// Says how a part that cannot be read is mended.
fn mend(what: &str) -> &'static str {
    if what.starts_with("missing field") {
        "add it"
    } else if what.starts_with("unknown variant") {
        "write one of those"
    } else {
        "write it as the schema of this call has it"
    }
}

/// Puts something that can be read where `error` is; none where nothing is known to do.
fn replace(value: &mut Value, stand_in: &Value, error: &Error<serde_json::Error>) -> Option<()> {
    let path: Vec<&Segment> = error.path().iter().collect();
    let what = error.inner().to_string();
    let missing = what.strip_prefix("missing field `");
    if let Some(field) = missing.and_then(|rest| rest.split('`').next()) {
        let given = part_of(stand_in, &path)?.get(field)?.clone();
        let fields = place_in(value, &path)?.as_object_mut()?;
        fields.insert(field.to_owned(), given);
    } else if let Some(given) = part_of(stand_in, &path) {
        *place_in(value, &path)? = given.clone();
    } else {
        let (Segment::Map { key }, above) = path.split_last()? else {
            return None;
        };
        place_in(value, above)?.as_object_mut()?.remove(key)?;
    }
    Some(())
}

/// Returns what stands in at a path: one item stands in for every item of its list.
fn part_of<'a>(stand_in: &'a Value, path: &[&Segment]) -> Option<&'a Value> {
    path.iter()
        .try_fold(stand_in, |place, segment| match segment {
            Segment::Seq { .. } => place.get(0),
            Segment::Map { key } => place.get(key),
            Segment::Enum { .. } | Segment::Unknown => None,
        })
}

fn place_in<'a>(value: &'a mut Value, path: &[&Segment]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |place, segment| match segment {
        Segment::Seq { index } => place.get_mut(*index),
        Segment::Map { key } => place.get_mut(key),
        Segment::Enum { .. } | Segment::Unknown => None,
    })
}

/// Stands in for a task: what it has to say, and one item of each of its lists.
pub(super) fn of_task() -> Value {
    json!({
        "id": UNREAD, "action": "UPDATE", "file": UNREAD, "more_files": [UNREAD], "read_first": [UNREAD],
        "leave_alone": [UNREAD], "requirements": [{ "text": UNREAD }], "gotchas": [{ "text": UNREAD }],
        "validation": { "command": UNREAD, "expected": "exit 0" }, "depends_on": [UNREAD],
    })
}

/// Stands in for a document.
pub(super) fn of_document() -> Value {
    let requirement = json!({ "id": UNREAD, "text": UNREAD, "acceptance": UNREAD });
    let file = json!({ "path": UNREAD, "purpose": UNREAD });
    json!({
        "title": UNREAD, "context_read": [UNREAD], "missing_inputs": [UNREAD], "objective": UNREAD,
        "success_criteria": [UNREAD], "out_of_scope": [UNREAD], "requirements": [requirement], "quality": [requirement],
        "new_files": [file], "modified_files": [file], "avoid_files": [file], "interfaces": [UNREAD], "data": [UNREAD],
        "dependencies": [UNREAD], "new_packages": [{ "manager": UNREAD, "name": UNREAD, "purpose": UNREAD }],
        "gotchas": [{ "text": UNREAD }], "validation": [UNREAD], "risks": [UNREAD],
    })
}

/// Stands in for a question.
pub(super) fn of_question() -> Value {
    json!({ "type": "clarifying", "text": UNREAD, "options": [{ "label": UNREAD }] })
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::specification::Document;
    use ropewalk_schemas::task::TaskBlock;
    use schemars::JsonSchema;

    use super::*;
    use crate::model_question::ModelQuestion;

    fn read_task(written: &Value) -> (Option<TaskBlock>, Vec<String>) {
        let mut faults = Vec::new();
        let read = read(written, &of_task(), "task", &mut faults);
        (read, faults)
    }

    #[test]
    fn every_place_that_cannot_be_read_is_told_and_the_rest_is_read() {
        let written = json!({
            "id": "T-1", "file": "../escape", "more_files": ["a.rs", 3, "b.rs", "/root"], "priority": "high",
            "requirements": ["FR-1", { "id": "a b", "text": 7 }, { "id": "FR-2" }], "estimate_minutes": 5,
            "validation": { "expected": "green" },
        });
        let (read, faults) = read_task(&written);
        let told = faults.join("\n");
        for named in [
            "`task`: missing field `action`; add it",
            "`task`, `file`: `../escape` leaves the repository",
            "`task`, `more_files[1]`: ",
            "`task`, `more_files[3]`: `/root` is absolute",
            "`task`, `priority`: ",
            "`task`, `requirements[0]`: ",
            "`task`, `requirements[1].id`: `a b` is not a valid requirement id",
            "`task`, `requirements[1].text`: ",
            "`task`, `validation`: missing field `command`; add it",
            "`task`, `validation.expected`: `green` is not an expectation",
        ] {
            assert!(told.contains(named), "{named}: {told}");
        }
        assert_eq!(faults.len(), 10, "{told}");
        let task = read.unwrap();
        let read = (task.id.as_str(), task.estimate_minutes, task.priority);
        assert_eq!(read, ("T-1", Some(5), None));
        assert_eq!(task.more_files.len(), 4, "each in its place");
    }

    #[test]
    fn what_is_no_part_at_all_is_told_once() {
        for written in [json!("a text"), json!(null), json!(7)] {
            let (read, faults) = read_task(&written);
            assert!(read.is_some_and(|task| task.id.as_str() == UNREAD));
            assert_eq!(faults.len(), 1, "{faults:?}");
        }
    }

    /// Says whether what stands in for a part can be read, has every field that has to be written, and an item of every list.
    fn check_stand_in<T: DeserializeOwned + JsonSchema>(stand_in: &Value) {
        let read = serde_json::from_value::<T>(stand_in.clone());
        assert_eq!(read.err().map(|error| error.to_string()), None);
        let schema = ropewalk_engine::schema_of::<T>();
        for name in schema["required"].as_array().into_iter().flatten() {
            assert!(!stand_in[name.as_str().unwrap()].is_null(), "{name}");
        }
        for (name, field) in schema["properties"].as_object().unwrap() {
            let is_list = field["type"] == "array";
            assert!(!is_list || !stand_in[name][0].is_null(), "{name}");
        }
    }

    #[test]
    fn something_can_stand_in_for_whatever_cannot_be_read() {
        check_stand_in::<TaskBlock>(&of_task());
        check_stand_in::<Document>(&of_document());
        check_stand_in::<ModelQuestion>(&of_question());
    }
}
