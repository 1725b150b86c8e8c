//! Checks what tasks say, each by itself and of each other.

use std::collections::BTreeSet;

use ropewalk_gate::counts::can_count;
use ropewalk_gate::line::has_pipeline;
use ropewalk_schemas::TaskId;
use ropewalk_schemas::task::{Action, Expectation, PLAIN_PHASE, TaskBlock};

use super::{Facts, Findings};
use crate::specification::order;

/// The most tasks of one specification.
const TASKS: usize = 60;
/// A task of more files is hard to check and keeps others waiting for them.
const FILES: usize = 8;
/// A task that takes longer is to be split.
const TASK_MINUTES: u32 = 60;
/// A longer title is cut where it is the subject of a commit.
const TITLE_LETTERS: usize = 72;

/// Checks a task by itself.
pub(super) fn check(task: &TaskBlock, facts: &Facts, findings: &mut Findings) {
    let id = &task.id;
    // What is made of it is kept under a ref of this name.
    if id.as_str().strip_suffix(".lock").is_some() {
        findings.fault(format!(
            "the id of task `{id}` ends in `.lock`, as no ref of git may; give it another one"
        ));
    }
    if task.title().is_some_and(|title| title.contains('\n')) {
        findings.fault(format!(
            "the title of task `{id}` has several lines; say it in one of at most {TITLE_LETTERS} letters"
        ));
    }
    let files = task.files().count();
    if files > FILES {
        findings.warn(format!(
            "task `{id}` has {files} files; more than {FILES} are hard to check at once"
        ));
    }
    let mut keys = BTreeSet::new();
    if let Some(twice) = task.files().find(|file| !keys.insert(file.key())) {
        findings.fault(format!(
            "task `{id}` names the file `{twice}` twice; name it once"
        ));
    }
    check_validation(task, facts, findings);
    if task
        .priority
        .is_some_and(|priority| !(1..=10).contains(&priority))
    {
        findings.fault(format!(
            "task `{id}` has a priority that is not 1 to 10; 1 comes first"
        ));
    }
    if task
        .estimate_minutes
        .is_some_and(|minutes| minutes > TASK_MINUTES)
    {
        findings.warn(format!(
            "task `{id}` takes more than an hour and should be split"
        ));
    }
    let is_known = task.phase == PLAIN_PHASE || facts.phases.contains(&task.phase);
    if !facts.phases.is_empty() && !is_known {
        findings.warn(format!(
            "task `{id}` has the phase `{}`, which the stack does not know; it comes last where nothing else decides",
            task.phase
        ));
    }
}

/// Finds checks of which nobody could ever say whether they hold.
fn check_validation(task: &TaskBlock, facts: &Facts, findings: &mut Findings) {
    let (id, validation) = (&task.id, &task.validation);
    let command = &validation.command;
    if command.trim().is_empty() {
        findings.fault(format!(
            "task `{id}` has no validation command; name one that fails before the work and passes after it"
        ));
        return;
    }
    let counts = matches!(validation.expected, Expectation::Tests(_));
    if counts && !facts.own_runner && !can_count(command) {
        findings.fault(format!(
            "task `{id}` expects tests of `{command}`, which reports none; name a command that runs tests, or expect `exit 0`"
        ));
    }
    // Whoever approves it sees it whole, as a block.
    if command.contains("```") {
        findings.fault(format!(
            "task `{id}` has three backticks in its validation command, which would not be shown whole to who approves it; \
             write the check without them"
        ));
    }
    if facts.no_pipelines && has_pipeline(command) {
        findings.fault(format!(
            "task `{id}` has a pipeline in `{command}`, which needs bash, and there is none; write the check without it"
        ));
    }
}

/// Checks the list and its edges.
pub(super) fn check_together(tasks: &[TaskBlock], findings: &mut Findings) {
    if tasks.is_empty() {
        findings.fault("`tasks` is empty; name at least one");
    }
    if tasks.len() > TASKS {
        findings.fault(format!(
            "there are {} tasks; {TASKS} is the most: join those that are checked together",
            tasks.len()
        ));
    }
    let mut ids: BTreeSet<&TaskId> = BTreeSet::new();
    for task in tasks {
        if !ids.insert(&task.id) {
            findings.fault(format!(
                "task `{}` is there twice; give each an id of its own",
                task.id
            ));
        }
    }
    for task in tasks {
        check_edges(task, &ids, findings);
    }
    let cycle = order::cycle(tasks);
    if !cycle.is_empty() {
        let names: Vec<String> = cycle.iter().map(|id| format!("`{id}`")).collect();
        findings.fault(format!(
            "the tasks {} depend on each other in a cycle; take one edge out of it, or join them",
            names.join(", ")
        ));
    }
}

/// Finds checks that an earlier task may make pass alone: a count over a suite holds as soon as there are enough tests in it, whoever
/// brought them.
pub(super) fn check_counts(tasks: &[TaskBlock], kept: &BTreeSet<TaskId>, findings: &mut Findings) {
    let needs = order::needs(tasks);
    let counts = |task: &&TaskBlock| matches!(task.validation.expected, Expectation::Tests(_));
    // What changes nothing is to pass before, too.
    let changes = |task: &&TaskBlock| !task.preserves && task.action != Action::Verify;
    let new = |task: &&TaskBlock| !kept.contains(&task.id);
    let counting = tasks.iter().filter(counts).filter(changes);
    for task in counting.clone().filter(new) {
        let command = task.validation.command.trim();
        let is_before = |other: &&TaskBlock| {
            let needed = needs.get(&task.id);
            needed.is_some_and(|needed| needed.contains(&other.id))
                && other.validation.command.trim() == command
        };
        if let Some(other) = counting.clone().find(is_before) {
            findings.fault(format!(
                "task `{}` counts the tests of `{command}`, as task `{}` does, on which it depends: those that come with that one may be enough without it; let its command name test files or tests of its own or, where its runner takes no names, expect that its output `contains` the name of a test that only it brings",
                task.id, other.id
            ));
        }
    }
}

fn check_edges(task: &TaskBlock, ids: &BTreeSet<&TaskId>, findings: &mut Findings) {
    let id = &task.id;
    let mut named = BTreeSet::new();
    for needed in &task.depends_on {
        if needed == id {
            findings.fault(format!("task `{id}` depends on itself; leave that out"));
        } else if !ids.contains(needed) {
            findings.fault(format!(
                "task `{id}` depends on `{needed}`, which is not there; {}",
                meant(needed, ids)
            ));
        }
        if !named.insert(needed) {
            findings.fault(format!(
                "task `{id}` depends on `{needed}` twice; name it once"
            ));
        }
    }
}

/// Says which task was meant by an id that there is not: one that differs in case, signs or leading zeros alone.
pub(super) fn meant(id: &TaskId, ids: &BTreeSet<&TaskId>) -> String {
    let same = ids.iter().find(|other| plain(other) == plain(id));
    same.map_or_else(
        || "name a task of this plan".to_owned(),
        |other| format!("did you mean `{other}`?"),
    )
}

/// Returns the words and numbers of an id.
fn plain(id: &TaskId) -> Vec<String> {
    let text = id.as_str().to_ascii_lowercase();
    let mut parts: Vec<String> = Vec::new();
    let mut last = None;
    for letter in text.chars() {
        let digit = letter.is_ascii_digit();
        match (last == Some(digit), parts.last_mut()) {
            _ if !letter.is_ascii_alphanumeric() => {
                last = None;
                continue;
            }
            (true, Some(part)) => part.push(letter),
            _ => parts.push(letter.to_string()),
        }
        last = Some(digit);
    }
    let parts = parts.into_iter();
    parts
        .map(|part| match part.trim_start_matches('0') {
            "" => part,
            rest => rest.to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::task::Validation;

    use super::*;
    use crate::specification::validate::tests::task;

    #[test]
    fn a_count_that_an_earlier_task_may_bring_alone_is_a_fault() {
        let counting = |id: &str, needs: &[&str], command: &str| TaskBlock {
            validation: Validation {
                command: command.to_owned(),
                expected: Expectation::Tests(9),
            },
            ..task(id, needs)
        };
        let whole = |id: &str, needs: &[&str]| counting(id, needs, "pytest -q");
        let preserving = TaskBlock {
            preserves: true,
            ..whole("B", &["A"])
        };
        let verifying = TaskBlock {
            action: Action::Verify,
            ..whole("B", &["A"])
        };
        let rows = [
            (
                vec![whole("A", &[]), counting("B", &["A"], " pytest -q\n")],
                1,
            ),
            (
                vec![whole("A", &[]), task("C", &["A"]), whole("B", &["C"])],
                1,
            ),
            (vec![whole("A", &[]), whole("B", &[])], 0),
            (
                vec![
                    whole("A", &[]),
                    counting("B", &["A"], "pytest -q test_b.py"),
                ],
                0,
            ),
            (vec![task("A", &[]), whole("B", &["A"])], 0),
            (vec![whole("A", &[]), preserving], 0),
            (vec![whole("A", &[]), verifying], 0),
        ];
        let faults = |tasks: &[TaskBlock], kept: BTreeSet<TaskId>| {
            let mut findings = Findings::default();
            check_counts(tasks, &kept, &mut findings);
            findings.errors
        };
        for (tasks, expected) in rows {
            let found = faults(&tasks, BTreeSet::new());
            assert_eq!(found.len(), expected, "{found:?}");
            let told = "task `B` counts the tests of `pytest -q`, as task `A` does";
            assert!(
                found.iter().all(|fault| fault.starts_with(told)),
                "{found:?}"
            );
        }
        // What is done stays as it is.
        let tasks = [whole("A", &[]), whole("B", &["A"])];
        let kept = BTreeSet::from([TaskId::parse("B").unwrap()]);
        assert_eq!(faults(&tasks, kept), [""; 0]);
    }

    #[test]
    fn a_task_whose_work_no_ref_could_keep_is_a_fault() {
        for (id, faults) in [("T-1", 0), ("T-1.locked", 0), ("T-1.lock", 1)] {
            let mut findings = Findings::default();
            check(&task(id, &[]), &Facts::default(), &mut findings);
            assert_eq!(findings.errors.len(), faults, "{:?}", findings.errors);
        }
    }
}
