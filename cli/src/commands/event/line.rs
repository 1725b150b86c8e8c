//! Shows an event as one line.

use chrono::{DateTime, Utc};
use ropewalk_desk::views::event::TimelineEvent;
use ropewalk_schemas::clip;
use serde_json::Value;

/// The fields of a payload that say most about it, the most telling first.
const TELLING: [&str; 16] = [
    "text",
    "answer",
    "error",
    "reason",
    "detail",
    "message",
    "content",
    "artifact",
    "to",
    "status",
    "branch",
    "commit_sha",
    "file",
    "hash",
    "question",
    "name",
];

/// Returns the line for people.
pub fn human(line: &TimelineEvent) -> String {
    let event = &line.event;
    let gist = gist(&event.data);
    let text = format!(
        "{:>6}  {}  {:<26} {}  {gist}",
        line.sequence,
        clock(event.time),
        event.event_type,
        event.subject
    );
    text.trim_end().to_owned()
}

fn clock(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S").to_string()
}

/// Returns the most telling field of a payload, shortened, and the tasks that it set free.
fn gist(data: &Value) -> String {
    let telling = TELLING
        .iter()
        .find_map(|field| data.get(field)?.as_str())
        .map(|text| clip::line(text, 100));
    let unblocked: Vec<&str> = data
        .get("unblocked")
        .and_then(Value::as_array)
        .map(|tasks| tasks.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let freed = (!unblocked.is_empty()).then(|| format!("unblocks {}", unblocked.join(", ")));
    let parts: Vec<String> = telling.into_iter().chain(freed).collect();
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_tells_most() {
        let data = serde_json::json!({ "file": "src/a.rs", "error": "expected 1,\n got 2" });
        assert_eq!(gist(&data), "expected 1, got 2");
        assert_eq!(gist(&serde_json::json!({ "count": 3 })), "");
        let landed = serde_json::json!({ "commit_sha": "ab12", "unblocked": ["T-2", "T-3"] });
        assert_eq!(gist(&landed), "ab12; unblocks T-2, T-3");
    }
}
