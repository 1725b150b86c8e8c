//! Checks the files of a plan against those that are there and against each other.

use std::collections::{BTreeMap, BTreeSet};

use ropewalk_schemas::specification::Document;
use ropewalk_schemas::task::{Action, TaskBlock};
use ropewalk_schemas::{RepoPath, TaskId};

use super::{Facts, Findings};
use crate::specification::{migrations, order};

/// Checks every file that the plan names.
pub(super) fn check(
    document: &Document,
    tasks: &[TaskBlock],
    facts: &Facts,
    findings: &mut Findings,
) {
    check_created(tasks, facts, findings);
    check_presence(tasks, facts, findings);
    let touched: BTreeSet<String> = tasks
        .iter()
        .flat_map(TaskBlock::files)
        .map(RepoPath::key)
        .collect();
    for plan in &document.modified_files {
        if !touched.contains(&plan.path.key()) {
            findings.fault(format!(
                "`{}` is to be modified, but no task touches it; add it to the `file` or `more_files` of one, or leave it out of `modified_files`",
                plan.path
            ));
        }
    }
    for plan in &document.avoid_files {
        if touched.contains(&plan.path.key()) {
            findings.fault(format!(
                "`{}` is to be left alone, but a task touches it; take it out of the task or out of `avoid_files`",
                plan.path
            ));
        }
    }
    check_shared(tasks, &touched, facts, findings);
}

fn check_created(tasks: &[TaskBlock], facts: &Facts, findings: &mut Findings) {
    let mut creators: BTreeMap<String, &TaskId> = BTreeMap::new();
    for task in created(tasks) {
        let key = task.file.key();
        if facts.existing.contains(&key) {
            findings.fault(format!(
                "task `{}` creates `{}`, which is there already; make it an UPDATE",
                task.id, task.file
            ));
        }
        if let Some(other) = creators.insert(key, &task.id) {
            findings.fault(format!(
                "tasks `{other}` and `{}` both create `{}`; let one UPDATE it and depend on the other",
                task.id, task.file
            ));
        }
        if let Some(number) = taken_migration(&task.file, facts) {
            findings.fault(format!(
                "task `{}` creates `{}`, but the migration number {number} is taken; take the next free one",
                task.id, task.file
            ));
        }
    }
}

fn created(tasks: &[TaskBlock]) -> impl Iterator<Item = &TaskBlock> {
    tasks.iter().filter(|task| task.action == Action::Create)
}

fn taken_migration(file: &RepoPath, facts: &Facts) -> Option<u32> {
    let (directory, number) = migrations::numbered(file)?;
    facts
        .migrations
        .get(directory)?
        .contains(&number)
        .then_some(number)
}

/// Finds files that are changed, removed or to be read, but that are neither there nor made in time.
fn check_presence(tasks: &[TaskBlock], facts: &Facts, findings: &mut Findings) {
    let needs = order::needs(tasks);
    for task in tasks {
        let made_before = |file: &RepoPath| {
            let before = needs.get(&task.id);
            let mut makers = tasks.iter().filter(|other| {
                let needed = before.is_some_and(|before| before.contains(&other.id));
                needed && other.action != Action::Delete
            });
            makers.any(|other| other.files().any(|made| made.key() == file.key()))
        };
        let absent = |file: &&RepoPath| !facts.existing.contains(&file.key()) && !made_before(file);
        let does = match task.action {
            Action::Update => Some("updates"),
            Action::Delete => Some("deletes"),
            Action::Create | Action::Add | Action::Verify => None,
        };
        if let (Some(does), Some(file)) = (does, Some(&task.file).filter(absent)) {
            findings.fault(format!(
                "task `{}` {does} `{file}`, which is not there and which no task makes that it depends on; mend the path, make it a CREATE, or depend on the task that makes it",
                task.id
            ));
        }
        for file in task.read_first.iter().filter(absent) {
            findings.fault(format!(
                "task `{}` is to read `{file}` first, which is not there and which no task makes that it depends on; mend the path or leave it out",
                task.id
            ));
        }
    }
}

fn check_shared(
    tasks: &[TaskBlock],
    touched: &BTreeSet<String>,
    facts: &Facts,
    findings: &mut Findings,
) {
    for shared in &facts.shared {
        let made = created(tasks)
            .find(|task| shared.after.matches(task.file.as_str()) && task.file != shared.path);
        if let Some(task) = made
            && facts.existing.contains(&shared.path.key())
            && !touched.contains(&shared.path.key())
        {
            findings.warn(format!(
                "task `{}` creates `{}`, but no task updates the shared `{}`",
                task.id, task.file, shared.path
            ));
        }
    }
}
