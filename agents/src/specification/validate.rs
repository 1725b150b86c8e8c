//! Checks a specification before anybody reads it: what it says, what its tasks say, and how they fit together.

use std::collections::{BTreeMap, BTreeSet};

use ropewalk_gate::counts::can_count;
use ropewalk_gate::line::has_pipeline;
use ropewalk_schemas::specification::{Complexity, Document};
use ropewalk_schemas::task::{Action, Expectation, TaskBlock};
use ropewalk_schemas::{GlobPattern, RepoPath, RequirementId, TaskId};

use super::order;
use crate::idea_folder::is_placeholder_line;

/// The most tasks of one specification.
const TASKS: usize = 60;
/// A task of more files is hard to check and keeps others waiting for them.
const FILES: usize = 8;
/// A task that takes longer is to be split.
const TASK_MINUTES: u32 = 60;

/// What a specification is checked against.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The keys of the files at the head of the repository.
    pub existing: BTreeSet<String>,
    /// The phases of the stack, in order.
    pub phases: Vec<String>,
    /// How much was asked for.
    pub complexity: Option<Complexity>,
    /// Files that change whenever certain others are made.
    pub shared: Vec<SharedFile>,
    /// Whether checks run in a shell that does not tell how the members of a pipeline fared.
    pub no_pipelines: bool,
    /// Whether the project describes how a test runner of its own speaks.
    pub own_runner: bool,
    /// Numbers of migrations that are taken, by directory.
    pub migrations: BTreeMap<String, BTreeSet<u32>>,
}

/// A file that changes whenever certain others are made, such as a router.
#[derive(Debug, Clone)]
pub struct SharedFile {
    /// The file.
    pub path: RepoPath,
    /// Those after which it changes.
    pub after: GlobPattern,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// What must be mended, in words for the model.
    pub errors: Vec<String>,
    /// What people should know.
    pub warnings: Vec<String>,
}

/// Checks a specification.
pub fn check(document: &Document, tasks: &[TaskBlock], facts: &Facts) -> Findings {
    let mut findings = Findings::default();
    check_document(document, &mut findings);
    check_requirements(document, tasks, &mut findings);
    check_tasks(tasks, facts, &mut findings);
    check_dependencies(tasks, &mut findings);
    check_files(document, tasks, facts, &mut findings);
    check_size(tasks.len(), facts.complexity, &mut findings);
    findings
}

fn check_document(document: &Document, findings: &mut Findings) {
    if is_placeholder_line(&document.title) {
        findings.errors.push(format!(
            "`document.title` is `{}`; give the specification a title of its own",
            document.title
        ));
    }
    if is_placeholder_line(&document.objective) {
        findings
            .errors
            .push("`document.objective` says nothing; say what is to be reached".to_owned());
    }
    if document.requirements.is_empty() {
        findings
            .errors
            .push("`document.requirements` is empty; name at least one".to_owned());
    }
    if document.success_criteria.is_empty() {
        findings
            .warnings
            .push("no success criteria are named".to_owned());
    }
}

fn check_requirements(document: &Document, tasks: &[TaskBlock], findings: &mut Findings) {
    let mut known: BTreeSet<&RequirementId> = BTreeSet::new();
    for requirement in document.requirements.iter().chain(&document.quality) {
        if !known.insert(&requirement.id) {
            findings
                .errors
                .push(format!("requirement `{}` is there twice", requirement.id));
        }
        if requirement.text.trim().is_empty() || requirement.acceptance.trim().is_empty() {
            findings.errors.push(format!(
                "requirement `{}` has no text or no acceptance",
                requirement.id
            ));
        }
    }
    let mut covered: BTreeSet<&RequirementId> = BTreeSet::new();
    for task in tasks {
        if task.requirements.is_empty() {
            findings
                .warnings
                .push(format!("task `{}` names no requirement", task.id));
        }
        for id in task.requirements.iter().filter_map(|line| line.id.as_ref()) {
            if !known.contains(id) {
                findings.errors.push(format!(
                    "task `{}` names the requirement `{id}`, which is not there",
                    task.id
                ));
            }
            covered.insert(id);
        }
    }
    for requirement in &document.requirements {
        if !covered.contains(&requirement.id) {
            findings.errors.push(format!(
                "requirement `{}` is covered by no task",
                requirement.id
            ));
        }
    }
}

fn check_tasks(tasks: &[TaskBlock], facts: &Facts, findings: &mut Findings) {
    if tasks.is_empty() {
        findings
            .errors
            .push("`tasks` is empty; name at least one".to_owned());
    }
    if tasks.len() > TASKS {
        findings.errors.push(format!(
            "there are {} tasks; {TASKS} is the most",
            tasks.len()
        ));
    }
    let mut ids: BTreeSet<&TaskId> = BTreeSet::new();
    for task in tasks {
        if !ids.insert(&task.id) {
            findings
                .errors
                .push(format!("task `{}` is there twice", task.id));
        }
        check_task(task, facts, findings);
    }
}

fn check_task(task: &TaskBlock, facts: &Facts, findings: &mut Findings) {
    let id = &task.id;
    let files = task.files().count();
    if files > FILES {
        findings.warnings.push(format!(
            "task `{id}` has {files} files; more than {FILES} are hard to check at once"
        ));
    }
    let mut keys = BTreeSet::new();
    if let Some(twice) = task.files().find(|file| !keys.insert(file.key())) {
        findings
            .errors
            .push(format!("task `{id}` names the file `{twice}` twice"));
    }
    if task.validation.command.trim().is_empty() {
        findings
            .errors
            .push(format!("task `{id}` has no validation command"));
    }
    check_validation(task, facts, findings);
    if task
        .priority
        .is_some_and(|priority| !(1..=10).contains(&priority))
    {
        findings
            .errors
            .push(format!("task `{id}` has a priority that is not 1 to 10"));
    }
    if task
        .estimate_minutes
        .is_some_and(|minutes| minutes > TASK_MINUTES)
    {
        findings.warnings.push(format!(
            "task `{id}` takes more than an hour and should be split"
        ));
    }
    if !facts.phases.is_empty() && !facts.phases.contains(&task.phase) {
        findings.warnings.push(format!(
            "task `{id}` has the phase `{}`, which the stack does not know; it comes last where nothing else decides",
            task.phase
        ));
    }
}

/// Finds checks of which nobody could ever say whether they hold.
fn check_validation(task: &TaskBlock, facts: &Facts, findings: &mut Findings) {
    let (id, validation) = (&task.id, &task.validation);
    let command = &validation.command;
    let counts = matches!(validation.expected, Expectation::Tests(_));
    if counts && !facts.own_runner && !can_count(command) {
        findings.errors.push(format!(
            "task `{id}` expects tests of `{command}`, which reports none; name a command that runs tests, or expect `exit 0`"
        ));
    }
    if facts.no_pipelines && has_pipeline(command) {
        findings.errors.push(format!(
            "task `{id}` has a pipeline in `{command}`, which needs bash, and there is none; write the check without it"
        ));
    }
}

fn check_dependencies(tasks: &[TaskBlock], findings: &mut Findings) {
    let ids: BTreeSet<&TaskId> = tasks.iter().map(|task| &task.id).collect();
    for task in tasks {
        let mut named = BTreeSet::new();
        for needed in &task.depends_on {
            if needed == &task.id {
                findings
                    .errors
                    .push(format!("task `{}` depends on itself", task.id));
            } else if !ids.contains(needed) {
                findings.errors.push(format!(
                    "task `{}` depends on `{needed}`, which is not there",
                    task.id
                ));
            }
            if !named.insert(needed) {
                findings
                    .errors
                    .push(format!("task `{}` depends on `{needed}` twice", task.id));
            }
        }
    }
    let ring = order::ring(tasks);
    if !ring.is_empty() {
        let names: Vec<String> = ring.iter().map(|id| format!("`{id}`")).collect();
        findings.errors.push(format!(
            "the tasks {} depend on each other in a ring",
            names.join(", ")
        ));
    }
}

fn check_files(document: &Document, tasks: &[TaskBlock], facts: &Facts, findings: &mut Findings) {
    let mut creators: BTreeMap<String, &TaskId> = BTreeMap::new();
    for task in tasks.iter().filter(|task| task.action == Action::Create) {
        let key = task.file.key();
        if facts.existing.contains(&key) {
            findings.errors.push(format!(
                "task `{}` creates `{}`, which is there already; make it an UPDATE",
                task.id, task.file
            ));
        }
        if let Some(other) = creators.insert(key, &task.id) {
            findings.errors.push(format!(
                "tasks `{other}` and `{}` both create `{}`",
                task.id, task.file
            ));
        }
        if let Some(number) = taken_migration(&task.file, facts) {
            findings.errors.push(format!(
                "task `{}` creates `{}`, but the migration number {number} is taken",
                task.id, task.file
            ));
        }
    }
    let touched: BTreeSet<String> = tasks
        .iter()
        .flat_map(TaskBlock::files)
        .map(RepoPath::key)
        .collect();
    for plan in &document.modified_files {
        if !touched.contains(&plan.path.key()) {
            findings.errors.push(format!(
                "`{}` is to be modified, but no task touches it",
                plan.path
            ));
        }
    }
    for plan in &document.avoid_files {
        if touched.contains(&plan.path.key()) {
            findings.errors.push(format!(
                "`{}` is to be left alone, but a task touches it",
                plan.path
            ));
        }
    }
    for shared in &facts.shared {
        let made = tasks
            .iter()
            .filter(|task| task.action == Action::Create)
            .find(|task| shared.after.matches(task.file.as_str()) && task.file != shared.path);
        if let Some(task) = made
            && facts.existing.contains(&shared.path.key())
            && !touched.contains(&shared.path.key())
        {
            findings.warnings.push(format!(
                "task `{}` creates `{}`, but no task updates the shared `{}`",
                task.id, task.file, shared.path
            ));
        }
    }
}

fn taken_migration(file: &RepoPath, facts: &Facts) -> Option<u32> {
    let (directory, number) = super::migrations::numbered(file)?;
    facts
        .migrations
        .get(directory)?
        .contains(&number)
        .then_some(number)
}

fn check_size(count: usize, complexity: Option<Complexity>, findings: &mut Findings) {
    let Some(complexity) = complexity else { return };
    let most = most_tasks(complexity);
    if count > most {
        findings.warnings.push(format!(
            "{count} tasks were planned; {most} is the most that this complexity usually needs"
        ));
    }
}

/// Returns how many tasks a plan of this size has at most; the fewest that can be checked apart are the best.
pub const fn most_tasks(complexity: Complexity) -> usize {
    match complexity {
        Complexity::Simple => 8,
        Complexity::Medium => 15,
        Complexity::Complex => 30,
    }
}

#[cfg(test)]
pub(super) mod tests;
