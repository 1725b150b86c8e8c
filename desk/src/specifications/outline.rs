//! Tells in a few messages what a revision asks for, to whoever approves it where no page fits.

use ropewalk_config::fenced;
use ropewalk_schemas::clip;
use ropewalk_schemas::specification::{Requirement, Revision, Specification};
use ropewalk_schemas::task::TaskBlock;
use ropewalk_store::{ReadError, Store};

use crate::views::specification::{CompareError, RevisionDifference, compare};

/// The most letters of one thing that is told, such as what a requirement says.
const LINE: usize = 400;
/// The most letters of how a requirement is accepted.
const ACCEPTANCE: usize = 200;
/// The most letters of a list; what is left out is said.
const LIST: usize = 4_000;
/// The most letters of what changed.
const CHANGED: usize = 3_000;

/// Tells what a revision asks for, and what changed since the one before it.
pub async fn outline(
    store: &Store,
    spec: &Specification,
    revision: &Revision,
) -> Result<String, ReadError> {
    let mut parts = vec![outline_told(revision)];
    match compare(store, spec, None, Some(revision.number)).await {
        Ok(changed) => parts.push(changes_told(&changed)),
        // There is none before the first.
        Err(CompareError::Alone(_) | CompareError::Missing { .. }) => {}
        Err(CompareError::Read(error)) => return Err(error),
    }
    parts.retain(|part| !part.is_empty());
    Ok(parts.join("\n\n"))
}

/// Tells what a revision is to reach, what it requires, which tasks it makes of that, and what it leaves out.
fn outline_told(revision: &Revision) -> String {
    let document = &revision.document;
    let requirements = document.all_requirements().map(required);
    let tasks = revision.tasks.iter().map(|task| planned(task, revision));
    let left_out = document.out_of_scope.iter().map(|line| point(line));
    let parts = [
        list("Objective", [clip::line(&document.objective, LINE)]),
        list("Requirements", requirements),
        list("Tasks", tasks),
        list("Out of scope", left_out),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join("\n\n")
}

/// Tells what changed since another revision, in a block of lines that nothing within ends.
fn changes_told(changed: &RevisionDifference) -> String {
    let from = changed.from;
    if changed.difference.is_empty() {
        return format!("Nothing changed since revision {from}.");
    }
    let shown = clip::lines(changed.difference.trim_end(), CHANGED);
    let block = fenced(&shown, Some("diff"));
    format!("**Changed since revision {from}**\n{block}")
}

/// Writes a title and what stands below it; nothing where that is nothing.
fn list(title: &str, lines: impl IntoIterator<Item = String>) -> Option<String> {
    let lines: Vec<String> = lines.into_iter().filter(|line| !line.is_empty()).collect();
    let lines = lines.join("\n");
    (!lines.is_empty()).then(|| format!("**{title}**\n{}", clip::lines(&lines, LIST)))
}

fn required(one: &Requirement) -> String {
    let text = clip::line(&one.text, LINE);
    let accepted = clip::line(&one.acceptance, ACCEPTANCE);
    if accepted.is_empty() {
        return format!("• {}: {text}", one.id);
    }
    format!("• {}: {text}\n   accepted: {accepted}", one.id)
}

fn planned(task: &TaskBlock, revision: &Revision) -> String {
    let files = std::iter::once(&task.file).chain(&task.more_files);
    let files: Vec<String> = files.map(|file| format!("`{file}`")).collect();
    let done = if revision.kept.contains(&task.id) {
        " (done already)"
    } else {
        ""
    };
    let does = clip::line(&task.in_words(), LINE);
    let files = clip::line(&files.join(", "), LINE);
    format!("• {}: {does}{done}\n   {files}", task.id)
}

fn point(line: &str) -> String {
    match clip::line(line, LINE) {
        empty if empty.is_empty() => empty,
        line => format!("• {line}"),
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::ContentHash;
    use serde_json::json;

    use super::*;

    const SPEC: &str = "00000000-0000-7000-8000-000000000000";

    #[test]
    fn an_outline_says_what_is_asked_for_and_stays_short() {
        let requirement = |id: &str, text: &str| json!({ "id": id, "text": text, "acceptance": "walks\nare seen" });
        let mut asked = vec![requirement("FR-1", "counts walks")];
        asked.extend((2..200).map(|number| requirement(&format!("FR-{number}"), &"x".repeat(900))));
        let revision: Revision = serde_json::from_value(json!({
            "spec": SPEC, "number": 2, "hash": ContentHash::of(b"two"), "at": "2026-11-21T00:00:00Z",
            "document": { "objective": "People see how far they walk.", "requirements": asked, "out_of_scope": ["maps", ""] },
            "tasks": [{ "id": "T-001", "title": "Count the walks", "action": "CREATE", "file": "a.rs", "more_files": ["b.rs"],
                "validation": { "command": "true", "expected": "exit 0" } }],
        }))
        .unwrap();
        let told = outline_told(&revision);
        for part in [
            "**Objective**\nPeople see how far they walk.\n",
            "• FR-1: counts walks\n   accepted: walks are seen\n",
            "\n[…]\n\n**Tasks**\n• T-001: Count the walks\n   `a.rs`, `b.rs`",
            "**Out of scope**\n• maps",
        ] {
            assert!(told.contains(part), "{part} in {told}");
        }
        assert!(told.chars().count() < 3 * LIST, "{told}");
    }

    #[test]
    fn no_line_of_what_changed_ends_its_block() {
        let changed = |difference: &str| RevisionDifference {
            id: SPEC.parse().unwrap(),
            from: 1,
            to: 2,
            difference: difference.to_owned(),
        };
        assert_eq!(
            changes_told(&changed("+a\n+````\n")),
            "**Changed since revision 1**\n`````diff\n+a\n+````\n`````"
        );
        assert_eq!(
            changes_told(&changed("")),
            "Nothing changed since revision 1."
        );
    }
}
