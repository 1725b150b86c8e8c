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
    let kept = facts.kept(document, tasks);
    check_names(tasks, facts, findings);
    check_created(tasks, &kept, facts, findings);
    check_presence(tasks, &kept, facts, findings);
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

/// Finds files that no task can write, or whose name a command would take for an option.
fn check_names(tasks: &[TaskBlock], facts: &Facts, findings: &mut Findings) {
    for (task, file) in tasks
        .iter()
        .flat_map(|task| task.files().map(move |file| (task, file)))
    {
        let id = &task.id;
        if file.as_str().starts_with('-') {
            findings.fault(format!(
                "task `{id}` names the file `{file}`, which commands take for an option; give it another name"
            ));
        }
        let folder = facts.idea_folder.as_ref();
        if folder.is_some_and(|folder| file.is_within(folder)) {
            findings.fault(format!(
                "task `{id}` names `{file}`, which belongs to the plan itself and is written by the build alone; leave it out"
            ));
        }
        if let Some((link, target)) = link_on(file, facts) {
            findings.fault(format!(
                "task `{id}` names `{file}`, but `{link}` is a symbolic link to `{target}`; name the file that it leads to"
            ));
        }
    }
}

/// Returns the link that a path is or lies behind, with where it leads.
fn link_on<'a>(file: &RepoPath, facts: &'a Facts) -> Option<(&'a str, &'a str)> {
    let key = file.key();
    let ends = key.match_indices('/').map(|(end, _)| end);
    let found = ends
        .chain([key.len()])
        .find_map(|end| facts.links.get_key_value(&key[..end]));
    found.map(|(link, target)| (link.as_str(), target.as_str()))
}

/// What is kept has made its files already: they are there, and so is the number of its migration.
fn check_created(
    tasks: &[TaskBlock],
    kept: &BTreeSet<TaskId>,
    facts: &Facts,
    findings: &mut Findings,
) {
    let mut creators: BTreeMap<String, &TaskId> = BTreeMap::new();
    for task in created(tasks) {
        let key = task.file.key();
        let is_new = !kept.contains(&task.id);
        if is_new && facts.has(&task.file) {
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
        if let Some(number) = taken_migration(&task.file, facts).filter(|_| is_new) {
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
fn check_presence(
    tasks: &[TaskBlock],
    kept: &BTreeSet<TaskId>,
    facts: &Facts,
    findings: &mut Findings,
) {
    let needs = order::needs(tasks);
    for task in tasks.iter().filter(|task| !kept.contains(&task.id)) {
        let made_before = |file: &RepoPath| {
            let before = needs.get(&task.id);
            let mut makers = tasks.iter().filter(|other| {
                let needed = before.is_some_and(|before| before.contains(&other.id));
                needed && other.action != Action::Delete
            });
            makers.any(|other| other.files().any(|made| made.key() == file.key()))
        };
        let absent = |file: &&RepoPath| facts.lacks(file) && !made_before(file);
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
    let works = |task: &&TaskBlock| !matches!(task.action, Action::Delete | Action::Verify);
    let made = tasks.iter().filter(works).flat_map(|task| {
        let files = task.files().filter(|file| facts.lacks(file));
        files.map(move |file| (task, file))
    });
    let made: Vec<(&TaskBlock, &RepoPath)> = made.collect();
    for shared in &facts.shared {
        let of_it = |file: &RepoPath| shared.after.matches(file.as_str()) && *file != shared.path;
        if let Some((task, file)) = made.iter().find(|&&(_, file)| of_it(file))
            && facts.has(&shared.path)
            && !touched.contains(&shared.path.key())
        {
            findings.warn(format!(
                "task `{}` makes `{file}`, but no task changes the shared `{}`",
                task.id, shared.path
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::GlobPattern;

    use super::super::SharedFile;
    use super::super::tests::task;
    use super::*;

    #[test]
    fn a_shared_file_changes_in_the_slice_that_makes_it_necessary() {
        let path = |text: &str| RepoPath::parse(text).unwrap();
        let facts = Facts {
            existing: Some(
                ["src/lib.rs", "src/old.rs"]
                    .map(|text| path(text).key())
                    .into(),
            ),
            shared: vec![SharedFile {
                path: path("src/lib.rs"),
                after: GlobPattern::parse("src/*.rs").unwrap(),
            }],
            ..Facts::default()
        };
        let of = |file: &str, more: &[&str]| TaskBlock {
            action: if facts.has(&path(file)) {
                Action::Update
            } else {
                Action::Create
            },
            file: path(file),
            more_files: more.iter().copied().map(path).collect(),
            ..task("A", &[])
        };
        for (task, warned) in [
            (of("src/new.rs", &["tests/new.rs"]), true),
            (of("src/new.rs", &["src/lib.rs", "tests/new.rs"]), false),
            (of("src/lib.rs", &["src/new.rs"]), false),
            (of("src/old.rs", &["src/new.rs"]), true),
            (of("src/old.rs", &["tests/new.rs"]), false),
        ] {
            let mut findings = Findings::default();
            let tasks = std::slice::from_ref(&task);
            check(&Document::default(), tasks, &facts, &mut findings);
            let told = findings.warnings.join("; ");
            assert_eq!(
                told.contains("shared `src/lib.rs`"),
                warned,
                "{task:?}: {told}"
            );
            assert_eq!(findings.errors, [""; 0], "{task:?}");
        }
    }
}
