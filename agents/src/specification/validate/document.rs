//! Checks what a specification says: its requirements, interfaces and packages.

use std::collections::{BTreeMap, BTreeSet};

use ropewalk_schemas::specification::{Document, Interface};
use ropewalk_schemas::task::{Action, TaskBlock};
use ropewalk_schemas::{RequirementId, TaskId};

use super::tasks::meant;
use super::{Facts, Findings};
use crate::idea_folder::is_placeholder_line;
use crate::specification::order;

/// Checks the text by itself.
pub(super) fn check(document: &Document, facts: &Facts, findings: &mut Findings) {
    if is_placeholder_line(&document.title) {
        findings.fault(format!(
            "`document.title` is `{}`; give the specification a title of its own",
            document.title
        ));
    }
    if is_placeholder_line(&document.objective) {
        findings.fault("`document.objective` says nothing; say what is to be reached");
    }
    if document.requirements.is_empty() {
        findings.fault("`document.requirements` is empty; name at least one");
    }
    if document.success_criteria.is_empty() {
        findings.warn("no success criteria are named");
    }
    let mut known: BTreeSet<&RequirementId> = BTreeSet::new();
    for requirement in document.all_requirements() {
        let id = &requirement.id;
        if !known.insert(id) {
            findings.fault(format!(
                "requirement `{id}` is there twice; number each once"
            ));
        }
        if is_placeholder_line(&requirement.text) {
            findings.fault(format!(
                "requirement `{id}` has no text; say what is required"
            ));
        }
        if is_placeholder_line(&requirement.acceptance) {
            findings.fault(format!(
                "requirement `{id}` has no acceptance; say what a check can show to be true"
            ));
        }
    }
    check_replacements(document, facts, findings);
    check_packages(document, facts, findings);
}

/// Checks what requirements say of those whose place they take.
fn check_replacements(document: &Document, facts: &Facts, findings: &mut Findings) {
    let all = document.all_requirements();
    let mut replaced: BTreeMap<&RequirementId, &RequirementId> = BTreeMap::new();
    for (id, old) in all.filter_map(|one| Some((&one.id, one.replaces.as_ref()?))) {
        if id == old {
            findings.fault(format!(
                "requirement `{id}` replaces itself; one that only changes keeps its id and says nothing in `replaces`"
            ));
            continue;
        }
        if !facts.replaceable.contains(old) {
            let known: Vec<&str> = facts
                .replaceable
                .iter()
                .map(RequirementId::as_str)
                .collect();
            let known = match known.as_slice() {
                [] => "there is no revision before this one; leave `replaces` out".to_owned(),
                known => format!("the revision before has {}", known.join(", ")),
            };
            findings.fault(format!(
                "requirement `{id}` replaces `{old}`, which is not known: {known}"
            ));
        }
        if let Some(other) = replaced.insert(old, id) {
            findings.fault(format!(
                "`{other}` and `{id}` both replace `{old}`; let one of them take its place, and the other stand for itself"
            ));
        }
    }
}

fn check_packages(document: &Document, facts: &Facts, findings: &mut Findings) {
    let may = |manager: &str| {
        let mut installers = facts.installers.iter();
        installers.any(|name| name.eq_ignore_ascii_case(manager.trim()))
    };
    let refused = document.new_packages.iter();
    for package in refused.filter(|package| !may(&package.manager)) {
        let who = match facts.installers.as_slice() {
            [] => "no package manager may install anything here".to_owned(),
            names => format!("only {} may install here", names.join(" and ")),
        };
        findings.fault(format!(
            "the package `{}` of `{}` cannot be had: {who}; plan without it, or ask first with a blocking question (`build.package_managers` allows one)",
            package.name, package.manager
        ));
    }
}

/// Checks what the text says of the tasks.
pub(super) fn check_against_tasks(
    document: &Document,
    tasks: &[TaskBlock],
    findings: &mut Findings,
) {
    check_coverage(document, tasks, findings);
    check_interfaces(&document.interfaces, tasks, findings);
}

fn check_coverage(document: &Document, tasks: &[TaskBlock], findings: &mut Findings) {
    let all = document.all_requirements();
    let known: BTreeSet<&RequirementId> = all.map(|requirement| &requirement.id).collect();
    for task in tasks {
        if task.requirements.is_empty() {
            findings.warn(format!("task `{}` names no requirement", task.id));
        }
        for id in task.requirements.iter().filter_map(|line| line.id.as_ref()) {
            if !known.contains(id) {
                findings.fault(format!(
                    "task `{}` names the requirement `{id}`, which is not there; add it to `document.requirements` or leave it out of the task",
                    task.id
                ));
            }
        }
    }
    let covering = |id: &RequirementId| -> Vec<&TaskBlock> {
        tasks.iter().filter(|task| task.is_for(id)).collect()
    };
    for id in document.quality.iter().map(|quality| &quality.id) {
        if covering(id).is_empty() {
            findings.warn(format!(
                "no task is for `{id}`, and no check will show it: it stays open"
            ));
        }
    }
    for requirement in &document.requirements {
        let id = &requirement.id;
        let covering = covering(id);
        if covering.is_empty() {
            findings.fault(format!(
                "requirement `{id}` is covered by no task; name it in the `requirements` of the task that fulfils it"
            ));
        } else if covering.iter().all(|task| task.preserves) {
            findings.fault(format!(
                "nothing can show requirement `{id}`: the checks of its tasks pass before the work, too (`preserves`); let a task whose check fails before cover it, or move it to `document.quality`"
            ));
        } else if covering.iter().all(|task| shows_nothing_new(task)) {
            findings.fault(format!(
                "nothing can show requirement `{id}`: its tasks make nothing, and none of them waits for one that does (VERIFY without `depends_on`); name it in the `requirements` of the task that fulfils it, or move it to `document.quality`"
            ));
        }
    }
}

/// Says whether the check of a task has to pass before any work, too: on what nobody has touched, or may not have.
fn shows_nothing_new(task: &TaskBlock) -> bool {
    task.preserves || (task.action == Action::Verify && task.depends_on.is_empty())
}

fn check_interfaces(interfaces: &[Interface], tasks: &[TaskBlock], findings: &mut Findings) {
    let ids: BTreeSet<&TaskId> = tasks.iter().map(|task| &task.id).collect();
    let needs = order::needs(tasks);
    for interface in interfaces {
        let shown = shown(&interface.signature);
        if interface.signature.trim().is_empty() {
            findings.fault("an interface has no signature; write it as code, or leave it out");
        }
        for task in interface.made_by.iter().chain(&interface.used_by) {
            if !ids.contains(task) {
                findings.fault(format!(
                    "the interface `{shown}` names the task `{task}`, which is not there; {}",
                    meant(task, &ids)
                ));
            }
        }
        let Some(maker) = &interface.made_by else {
            continue;
        };
        let apart = |user: &&TaskId| {
            let known = ids.contains(user) && *user != maker;
            known && !needs.get(user).is_some_and(|needs| needs.contains(maker))
        };
        for user in interface.used_by.iter().filter(apart) {
            findings.fault(format!(
                "task `{user}` uses `{shown}`, which task `{maker}` makes, but does not depend on it; add `{maker}` to its `depends_on`"
            ));
        }
    }
}

/// The first line of a signature is enough to know it by.
fn shown(signature: &str) -> &str {
    signature.trim().lines().next().unwrap_or_default()
}
