//! Orders the tasks that may be claimed: edges decide what is ready, everything here only breaks ties.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use ropewalk_schemas::ComponentName;
use ropewalk_schemas::natural::NaturalName;
use ropewalk_schemas::task::{Action, Task, TaskState};
use ropewalk_schemas::{RepoPath, TaskId};

/// The priority of a task that names none.
const DEFAULT_PRIORITY: u8 = 5;

/// Returns the files that a task locks, in canonical order; one that only verifies writes nothing and so locks nothing.
pub fn locked_files(task: &Task) -> Vec<RepoPath> {
    if task.block.action == Action::Verify {
        return Vec::new();
    }
    let granted = task.regate.iter().flat_map(|kept| &kept.granted);
    let granted = granted.chain(&task.resume_granted);
    let mut files: Vec<RepoPath> = task.block.files().chain(granted).cloned().collect();
    files.sort_by_key(RepoPath::key);
    files.dedup_by_key(|file| file.key());
    files
}

/// Returns the tasks that `loop_name` may claim at `now`, the most fitting first.
///
/// Order: not meant for another loop, phase by first appearance in the plan, priority, how many tasks wait for
/// it, id. An assignment is a preference only, so that work never waits for a loop that is gone.
pub fn claimable<'a>(
    tasks: &'a [Task],
    loop_name: &ComponentName,
    now: DateTime<Utc>,
) -> Vec<&'a Task> {
    let phases = phase_order(tasks);
    let weight = criticality(tasks);
    let mut ready: Vec<&Task> = tasks
        .iter()
        .filter(|task| task.state == TaskState::Ready)
        .filter(|task| task.not_before.is_none_or(|earliest| earliest <= now))
        .collect();
    leave_to_elders(&mut ready);
    ready.sort_by_key(|task| {
        let elsewhere = task
            .assigned_to
            .as_ref()
            .is_some_and(|wanted| wanted != loop_name);
        (
            elsewhere,
            phases.get(task.block.phase.as_str()).copied(),
            task.block.priority.unwrap_or(DEFAULT_PRIORITY),
            Reverse(weight.get(&task.id).copied()),
            NaturalName(task.id.as_str()),
        )
    });
    ready
}

/// Says that `task` is the first of `order` that has not ended, or that none of them is left.
pub fn may_begin(order: &[TaskId], tasks: &[Task], task: &TaskId) -> bool {
    let has_ended = |id: &TaskId| {
        let found = tasks.iter().find(|task| task.id == *id);
        found.is_none_or(|task| {
            matches!(
                task.state,
                TaskState::Complete | TaskState::Skipped | TaskState::Failed
            )
        })
    };
    let first = order.iter().find(|id| !has_ended(id));
    first.is_none_or(|first| first == task)
}

/// Leaves out the tasks that share a file with one that has waited for its files for longer: it goes first.
fn leave_to_elders(ready: &mut Vec<&Task>) {
    let elders: Vec<(DateTime<Utc>, NaturalName<'_>, Vec<String>)> = ready
        .iter()
        .filter_map(|task| {
            Some((
                task.wants_files_since?,
                NaturalName(task.id.as_str()),
                keys(task),
            ))
        })
        .collect();
    ready.retain(|task| {
        let files = keys(task);
        !elders.iter().any(|(since, elder, theirs)| {
            let id = NaturalName(task.id.as_str());
            let goes_first = task
                .wants_files_since
                .is_none_or(|own| (*since, *elder) < (own, id));
            *elder != id && goes_first && theirs.iter().any(|file| files.contains(file))
        })
    });
}

fn keys(task: &Task) -> Vec<String> {
    locked_files(task).iter().map(RepoPath::key).collect()
}

/// Returns each phase's place, by its first task in the plan.
fn phase_order(tasks: &[Task]) -> HashMap<&str, usize> {
    let mut planned: Vec<&Task> = tasks.iter().collect();
    planned.sort_by_key(|task| task.number);
    let mut phases = HashMap::new();
    for task in planned {
        let next = phases.len();
        phases.entry(task.block.phase.as_str()).or_insert(next);
    }
    phases
}

/// Returns how many tasks need each task, directly or not.
pub fn criticality(tasks: &[Task]) -> HashMap<&TaskId, usize> {
    tasks
        .iter()
        .map(|task| (&task.id, dependents(tasks, &task.id).len()))
        .collect()
}

/// Says whether `task` can wait for `other`: not where that waits for it, directly or not, so that neither would go first.
pub fn can_wait_for(tasks: &[Task], task: &TaskId, other: &TaskId) -> bool {
    task != other && !dependents(tasks, task).contains(other)
}

/// Returns the tasks that need `task`, directly or not.
pub fn dependents<'a>(tasks: &'a [Task], task: &TaskId) -> HashSet<&'a TaskId> {
    let mut found: HashSet<&TaskId> = HashSet::new();
    let mut frontier = vec![task.clone()];
    while let Some(needed) = frontier.pop() {
        for candidate in tasks {
            if candidate.block.depends_on.contains(&needed) && found.insert(&candidate.id) {
                frontier.push(candidate.id.clone());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::fixture::{id, noon, task};

    fn names(tasks: &[Task]) -> Vec<String> {
        let me = ComponentName::parse("loop-1").unwrap();
        claimable(tasks, &me, noon())
            .into_iter()
            .map(|task| task.id.to_string())
            .collect()
    }

    #[test]
    fn only_ready_tasks_whose_time_has_come_are_claimable() {
        let mut later = task("T-2", TaskState::Ready, &[]);
        later.not_before = Some(noon() + chrono::TimeDelta::seconds(1));
        let mut due = task("T-3", TaskState::Ready, &[]);
        due.not_before = Some(noon());
        let tasks = [task("T-1", TaskState::Pending, &[]), later, due];
        assert_eq!(names(&tasks), ["T-3"]);
    }

    #[test]
    fn ties_are_broken_by_phase_then_priority_then_weight_then_id() {
        let mut first_phase = task("T-1", TaskState::Complete, &[]);
        first_phase.block.phase = "database".to_owned();
        let mut database = task("T-9", TaskState::Ready, &[]);
        database.block.phase = "database".to_owned();
        let mut urgent = task("T-8", TaskState::Ready, &[]);
        urgent.block.priority = Some(1);
        let tasks = [
            first_phase,
            task("T-10", TaskState::Ready, &[]),
            task("T-2", TaskState::Ready, &[]),
            task("T-3", TaskState::Ready, &[]),
            task("T-4", TaskState::Pending, &["T-3"]),
            urgent,
            database,
        ];
        assert_eq!(names(&tasks), ["T-9", "T-8", "T-3", "T-2", "T-10"]);
    }

    #[test]
    fn who_waited_longer_for_a_file_goes_first_whatever_else_orders_them() {
        let waited = |id: &str, seconds| {
            let mut waited = task(id, TaskState::Ready, &[]);
            waited.wants_files_since = Some(noon() + chrono::TimeDelta::seconds(seconds));
            waited.block.file = RepoPath::parse("shared").unwrap();
            waited
        };
        let mut fresh = task("T-1", TaskState::Ready, &[]);
        fresh.block.more_files = vec![RepoPath::parse("SHARED").unwrap()];
        let mut other = task("T-2", TaskState::Ready, &[]);
        other.block.file = RepoPath::parse("other").unwrap();
        let tasks = [fresh, other, waited("T-3", 9), waited("T-4", 3)];
        assert_eq!(names(&tasks), ["T-2", "T-4"]);
    }

    #[test]
    fn two_that_each_need_what_the_other_joins_never_wait_for_each_other() {
        let mut tasks = [
            task("MERGE-1", TaskState::Claimed, &[]),
            task("MERGE-2", TaskState::Claimed, &[]),
            task("MERGE-3", TaskState::Claimed, &[]),
        ];
        let waits =
            |tasks: &[Task], task: &str, other: &str| can_wait_for(tasks, &id(task), &id(other));
        let either = [("MERGE-1", "MERGE-2"), ("MERGE-2", "MERGE-1")];
        assert!(either.iter().all(|(one, other)| waits(&tasks, one, other)));
        assert!(!waits(&tasks, "MERGE-1", "MERGE-1"));
        tasks[0].block.depends_on.push(id("MERGE-2"));
        assert!(!waits(&tasks, "MERGE-2", "MERGE-1"));
        // Nor over a third one.
        tasks[1].block.depends_on.push(id("MERGE-3"));
        assert!(!waits(&tasks, "MERGE-3", "MERGE-1"));
        assert!(waits(&tasks, "MERGE-1", "MERGE-3"), "it does already");
    }

    #[test]
    fn a_task_meant_for_another_loop_comes_last_but_is_not_lost() {
        let mut theirs = task("T-1", TaskState::Ready, &[]);
        theirs.assigned_to = Some(ComponentName::parse("loop-2").unwrap());
        let tasks = [theirs, task("T-2", TaskState::Ready, &[])];
        assert_eq!(names(&tasks), ["T-2", "T-1"]);
    }
}
