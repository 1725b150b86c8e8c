//! Tells in a few messages what a revision asks for, to whoever approves it where no page fits.

mod changes;

use ropewalk_schemas::clip;
use ropewalk_schemas::specification::{Requirement, Revision, Specification};
use ropewalk_schemas::task::TaskBlock;
use ropewalk_store::{ReadError, Store, revision_key};

/// The most letters of one thing that is told, such as what a requirement says.
const LINE: usize = 400;
/// The most letters of a list; what is left out is said.
const LIST: usize = 4_000;
/// The most letters of what is told briefly, where that can be.
const BRIEF: usize = 1_500;

/// How much of a revision is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutlineExtent {
    /// What changed, and of the rest as much as is read at once.
    Brief,
    /// All of it.
    Whole,
}

/// What a revision asks for, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// The words.
    pub text: String,
    /// Whether nothing of it is shortened to be told briefly.
    pub is_whole: bool,
}

/// How many letters there are for what a line says.
#[derive(Debug, Clone, Copy)]
struct Room {
    line: usize,
    /// For how a requirement is accepted; it is not said where there are none.
    acceptance: usize,
}

impl Room {
    const WHOLE: Self = Self {
        line: LINE,
        acceptance: 200,
    };
    const BRIEF: Self = Self {
        line: 160,
        acceptance: 0,
    };
}

/// Tells what changed since the revision before, and what a revision asks for beside that.
pub async fn outline(
    store: &Store,
    spec: &Specification,
    revision: &Revision,
    extent: OutlineExtent,
) -> Result<Outline, ReadError> {
    let before = revision.number.saturating_sub(1);
    let before = store
        .get::<Revision>(&revision_key(spec.id, before))
        .await?;
    let before = before.map(|before| before.record);
    Ok(told(before.as_ref(), revision, extent))
}

fn told(before: Option<&Revision>, revision: &Revision, extent: OutlineExtent) -> Outline {
    let text = written(before, revision, Room::WHOLE);
    if extent == OutlineExtent::Whole || text.chars().count() <= BRIEF {
        return Outline {
            text,
            is_whole: true,
        };
    }
    Outline {
        text: written(before, revision, Room::BRIEF),
        is_whole: false,
    }
}

/// Tells what a revision is to reach, what it requires, which tasks it makes of that, and what it leaves out; what changed since
/// the one before stands first, and is told once.
fn written(before: Option<&Revision>, revision: &Revision, room: Room) -> String {
    let document = &revision.document;
    let is_told = before.map(|before| changes::told(before, revision));
    let stays = |has: &dyn Fn(&Revision) -> bool| before.is_none_or(has);
    let objective = Some(clip::line(&document.objective, LINE));
    let objective =
        objective.filter(|_| stays(&|before| before.document.objective == document.objective));
    let requirements = document
        .all_requirements()
        .filter(|one| stays(&|before| before.document.all_requirements().any(|was| was == *one)));
    let tasks = revision
        .tasks
        .iter()
        .filter(|task| stays(&|before| before.tasks.contains(task)));
    let left_out = document
        .out_of_scope
        .iter()
        .filter(|line| stays(&|before| before.document.out_of_scope.contains(line)));
    let title = |title: &str| match before {
        Some(_) => format!("{title}, as before"),
        None => title.to_owned(),
    };
    let parts = [
        is_told,
        list(&title("Objective"), objective),
        list(
            &title("Requirements"),
            requirements.map(|one| required(one, room)),
        ),
        list(
            &title("Tasks"),
            tasks.map(|task| planned(task, revision, room)),
        ),
        list(
            &title("Out of scope"),
            left_out.map(|line| point(line, room)),
        ),
        list("Risks", document.risks.iter().map(|line| point(line, room))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join("\n\n")
}

/// Writes a title and what stands below it; nothing where that is nothing.
fn list(title: &str, lines: impl IntoIterator<Item = String>) -> Option<String> {
    let lines: Vec<String> = lines.into_iter().filter(|line| !line.is_empty()).collect();
    let lines = lines.join("\n");
    (!lines.is_empty()).then(|| format!("**{title}**\n{}", clip::lines(&lines, LIST)))
}

fn required(one: &Requirement, room: Room) -> String {
    format!("• {}: {}", one.id, said(one, room))
}

/// Returns what a requirement says, and how it is accepted.
fn said(one: &Requirement, room: Room) -> String {
    let text = clip::line(&one.text, room.line);
    if room.acceptance == 0 || one.acceptance.trim().is_empty() {
        return text;
    }
    let accepted = clip::line(&one.acceptance, room.acceptance);
    format!("{text}\n   accepted: {accepted}")
}

fn planned(task: &TaskBlock, revision: &Revision, room: Room) -> String {
    let does = clip::line(&task.in_words(), room.line);
    let (done, files) = (done(task, revision), files(task));
    format!("• {}: {does}{done}\n   {files}", task.id)
}

/// Says that a task has landed, where it has.
fn done(task: &TaskBlock, revision: &Revision) -> &'static str {
    if revision.kept.contains(&task.id) {
        " (done already)"
    } else {
        ""
    }
}

fn files(task: &TaskBlock) -> String {
    let files: Vec<String> = task.files().map(|file| format!("`{file}`")).collect();
    clip::line(&files.join(", "), LINE)
}

fn point(line: &str, room: Room) -> String {
    match clip::line(line, room.line) {
        empty if empty.is_empty() => empty,
        line => format!("• {line}"),
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::ContentHash;
    use serde_json::{Value, json};

    use super::*;

    const SPEC: &str = "00000000-0000-7000-8000-000000000000";

    fn requirement(id: &str, text: &str) -> Value {
        json!({ "id": id, "text": text, "acceptance": "walks\nare seen" })
    }

    fn task(id: &str, title: &str, files: [&str; 2]) -> Value {
        json!({ "id": id, "title": title, "action": "CREATE", "file": files[0], "more_files": [files[1]],
            "validation": { "command": "true", "expected": "exit 0" } })
    }

    fn revision(number: u32, document: &Value, tasks: &[Value]) -> Revision {
        serde_json::from_value(json!({
            "spec": SPEC, "number": number, "hash": ContentHash::of(b"two"), "at": "2026-11-21T00:00:00Z",
            "document": document, "tasks": tasks,
        }))
        .unwrap()
    }

    #[test]
    fn an_outline_says_what_is_asked_for_and_stays_short() {
        let mut asked = vec![requirement("FR-1", "counts walks")];
        asked.extend((2..200).map(|number| requirement(&format!("FR-{number}"), &"x".repeat(900))));
        let document = json!({ "objective": "People see how far they walk.", "requirements": asked,
            "out_of_scope": ["maps", ""], "risks": ["rain"] });
        let tasks = [task("T-001", "Count the walks", ["a.rs", "b.rs"])];
        let revision = revision(1, &document, &tasks);
        let whole = told(None, &revision, OutlineExtent::Whole);
        for part in [
            "**Objective**\nPeople see how far they walk.\n",
            "• FR-1: counts walks\n   accepted: walks are seen\n",
            "\n[…]\n\n**Tasks**\n• T-001: Count the walks\n   `a.rs`, `b.rs`",
            "**Out of scope**\n• maps",
            "**Risks**\n• rain",
        ] {
            assert!(whole.text.contains(part), "{part} in {}", whole.text);
        }
        assert!(whole.text.chars().count() < 3 * LIST, "{}", whole.text);
        let brief = told(None, &revision, OutlineExtent::Brief);
        assert_eq!((whole.is_whole, brief.is_whole), (true, false));
        assert!(
            brief.text.contains("• FR-1: counts walks\n• FR-2: xxx"),
            "{}",
            brief.text
        );
    }

    #[test]
    fn what_changed_is_told_first_in_words_and_nothing_twice() {
        let before = json!({ "objective": "People see their walks.", "out_of_scope": ["maps", "rivers"], "data": ["walks"],
            "requirements": [requirement("FR-1", "counts walks"), requirement("FR-2", "names dogs"), requirement("FR-3", "sings")] });
        let after = json!({ "objective": "People see their walks.", "out_of_scope": ["maps", "cats"], "data": ["walks, rests"],
            "requirements": [requirement("FR-1", "counts walks"), requirement("FR-2", "names all dogs"), requirement("FR-4", "counts rests")] });
        let counts = task("T-001", "Count the walks", ["a.rs", "b.rs"]);
        let before = revision(
            1,
            &before,
            &[counts.clone(), task("T-002", "Name dogs", ["c.rs", "d.rs"])],
        );
        let after = revision(
            2,
            &after,
            &[
                counts,
                task("T-002", "Name dogs", ["c.rs", "e.rs"]),
                task("T-003", "Count rests", ["f.rs", "g.rs"]),
            ],
        );
        let told = told(Some(&before), &after, OutlineExtent::Brief);
        let expected = "**Changed since revision 1**\n\
             • FR-2 now: names all dogs\n   accepted: walks are seen\n\
             • FR-4 is new: counts rests\n   accepted: walks are seen\n\
             • FR-3 is gone: sings\n\
             • T-002 changed (its files): Name dogs\n   `c.rs`, `e.rs`\n\
             • T-003 is new: Count rests\n   `f.rs`, `g.rs`\n\
             • Left out now: cats\n\
             • No longer left out: rivers\n\
             • Also changed: the data\n\n\
             **Objective, as before**\nPeople see their walks.\n\n\
             **Requirements, as before**\n• FR-1: counts walks\n   accepted: walks are seen\n\n\
             **Tasks, as before**\n• T-001: Count the walks\n   `a.rs`, `b.rs`\n\n\
             **Out of scope, as before**\n• maps";
        assert_eq!((told.text.as_str(), told.is_whole), (expected, true));
        let same = super::told(Some(&after), &after, OutlineExtent::Whole).text;
        assert!(
            same.starts_with("Nothing changed since revision 2.\n\n**Objective, as before**"),
            "{same}"
        );
    }
}
