//! Tells in words what changed between two revisions: by requirement, by task, and what is left out.

use ropewalk_schemas::clip;
use ropewalk_schemas::specification::{Document, Requirement, Revision};
use ropewalk_schemas::task::TaskBlock;

use super::{LINE, Room, done, files, said};

/// The most letters of all that changed; what is left out is said.
const CHANGED: usize = 3_000;
/// The most letters of what is gone.
const GONE: usize = 120;
/// What changed is told with as much as has room.
const ROOM: Room = Room::WHOLE;

/// Tells what changed since the revision before.
pub(super) fn told(before: &Revision, after: &Revision) -> String {
    let (old, new) = (&before.document, &after.document);
    let mut lines = Vec::new();
    if old.objective != new.objective {
        lines.push(format!("• Objective: {}", clip::line(&new.objective, LINE)));
    }
    lines.extend(requirements(old, new));
    lines.extend(tasks(before, after));
    lines.extend(scope(old, new));
    lines.extend(others(old, new));
    let number = before.number;
    if lines.is_empty() {
        return format!("Nothing changed since revision {number}.");
    }
    let lines = lines.join("\n");
    let lines = clip::lines(&lines, CHANGED);
    format!("**Changed since revision {number}**\n{lines}")
}

fn requirements(old: &Document, new: &Document) -> Vec<String> {
    let changed = new.all_requirements().filter_map(|one| {
        let was = old.all_requirements().find(|was| was.id == one.id);
        match was {
            None => Some(format!("• {} is new: {}", one.id, said(one, ROOM))),
            Some(was) => requirement(was, one),
        }
    });
    let is_gone = |was: &&Requirement| !new.all_requirements().any(|one| one.id == was.id);
    let gone = old.all_requirements().filter(is_gone);
    let gone = gone.map(|was| format!("• {} is gone: {}", was.id, clip::line(&was.text, GONE)));
    changed.chain(gone).collect()
}

/// Tells what changed of a requirement; nothing where nothing did.
fn requirement(was: &Requirement, one: &Requirement) -> Option<String> {
    let id = &one.id;
    if was == one {
        return None;
    }
    Some(if was.text != one.text {
        format!("• {id} now: {}", said(one, ROOM))
    } else if was.acceptance != one.acceptance {
        let accepted = clip::line(&one.acceptance, ROOM.acceptance);
        format!("• {id} is accepted otherwise: {accepted}")
    } else if was.priority == one.priority {
        format!("• {id} says the same, and comes from elsewhere")
    } else {
        format!(
            "• {id} is a `{}` now, and was a `{}`",
            one.priority, was.priority
        )
    })
}

fn tasks(before: &Revision, after: &Revision) -> Vec<String> {
    let changed = after.tasks.iter().filter_map(|task| {
        let was = before.tasks.iter().find(|was| was.id == task.id);
        let (does, files) = (clip::line(&task.in_words(), LINE), files(task));
        let told = format!("{does}{}\n   {files}", done(task, after));
        match was {
            None => Some(format!("• {} is new: {told}", task.id)),
            Some(was) if was == task => None,
            Some(was) => Some(format!(
                "• {} changed ({}): {told}",
                task.id,
                differing(was, task)
            )),
        }
    });
    let is_gone = |was: &&TaskBlock| !after.tasks.iter().any(|task| task.id == was.id);
    let gone = before.tasks.iter().filter(is_gone);
    let gone = gone.map(|was| {
        format!(
            "• {} is gone: {}",
            was.id,
            clip::line(&was.in_words(), GONE)
        )
    });
    changed.chain(gone).collect()
}

/// Says what of a task differs.
fn differing(was: &TaskBlock, task: &TaskBlock) -> String {
    let parts = [
        (was.in_words() != task.in_words(), "what it does"),
        (!was.files().eq(task.files()), "its files"),
        (was.requirements != task.requirements, "what it fulfils"),
        (was.validation != task.validation, "its check"),
        (was.depends_on != task.depends_on, "what it needs first"),
    ];
    let names: Vec<&str> = parts
        .iter()
        .filter(|(is_other, _)| *is_other)
        .map(|(_, name)| *name)
        .collect();
    if names.is_empty() {
        "its details".to_owned()
    } else {
        names.join(", ")
    }
}

fn scope(old: &Document, new: &Document) -> Vec<String> {
    let only = |of: &Document, other: &Document, what: &str| -> Vec<String> {
        let lines = of.out_of_scope.iter();
        let lines = lines.filter(|line| !other.out_of_scope.contains(line));
        lines
            .map(|line| format!("• {what}: {}", clip::line(line, LINE)))
            .collect()
    };
    let mut lines = only(new, old, "Left out now");
    lines.extend(only(old, new, "No longer left out"));
    lines
}

/// Names what else of the document differs, in a line.
fn others(old: &Document, new: &Document) -> Option<String> {
    let parts = [
        (old.title != new.title, "the title"),
        (
            old.success_criteria != new.success_criteria,
            "how success is seen",
        ),
        (old.interfaces != new.interfaces, "the interfaces"),
        (old.data != new.data, "the data"),
        (old.dependencies != new.dependencies, "what it depends on"),
        (old.new_packages != new.new_packages, "the new packages"),
        (
            old.avoid_files != new.avoid_files,
            "the files that stay as they are",
        ),
        (old.validation != new.validation, "the check of the whole"),
        (old.risks != new.risks, "the risks"),
        (old.gotchas != new.gotchas, "the lessons"),
    ];
    let names: Vec<&str> = parts
        .iter()
        .filter(|(is_other, _)| *is_other)
        .map(|(_, name)| *name)
        .collect();
    (!names.is_empty()).then(|| format!("• Also changed: {}", names.join(", ")))
}
