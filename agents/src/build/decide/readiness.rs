//! Decides which tasks are ready, blocked or left out by the edges alone, and says why.

use std::collections::{HashMap, HashSet, VecDeque};

use ropewalk_schemas::TaskId;
use ropewalk_schemas::task::{Task, TaskState};

/// The reason of a task that only waits for a loop.
const FREE_LOOP: &str = "ready; waits for a free loop";

/// A change of a task that its edges call for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shift {
    /// The task.
    pub task: TaskId,
    /// Where it goes.
    pub to: TaskState,
    /// Why it does not run.
    pub reason: Option<String>,
    /// What stands in its way, the culprit last.
    pub blocked_by: Vec<TaskId>,
}

/// Returns every task whose state, reason or chain differs from what its edges call for.
///
/// A task behind a failed one is blocked with the chain and revives by itself. A task behind one that people left
/// out is left out too: it could never become ready.
pub fn shifts(tasks: &[Task]) -> Vec<Shift> {
    let by_id: HashMap<&TaskId, &Task> = tasks.iter().map(|task| (&task.id, task)).collect();
    tasks
        .iter()
        .filter(|task| follows_edges(task))
        .filter_map(|task| {
            let shift = due(task, &by_id);
            let changed = shift.to != task.state
                || shift.reason != task.reason
                || shift.blocked_by != task.blocked_by;
            changed.then_some(shift)
        })
        .collect()
}

/// Says whether the edges decide about this task: it neither runs, waits for something else, nor was decided by people.
fn follows_edges(task: &Task) -> bool {
    match task.state {
        TaskState::Pending | TaskState::Ready => true,
        // Without a chain it was a person's or PM's word that blocked it, or a person's that left it out.
        TaskState::Blocked | TaskState::Skipped => !task.blocked_by.is_empty(),
        _ => false,
    }
}

fn due(task: &Task, by_id: &HashMap<&TaskId, &Task>) -> Shift {
    let shift = |to, reason: Option<String>, blocked_by| Shift {
        task: task.id.clone(),
        to,
        reason,
        blocked_by,
    };
    if let Some(chain) = chain_to(task, by_id, left_out_by_decision) {
        let reason = told(&chain, "was skipped");
        return shift(TaskState::Skipped, Some(reason), chain);
    }
    if let Some(chain) = chain_to(task, by_id, |task| task.state == TaskState::Failed) {
        let reason = told(&chain, "failed");
        return shift(TaskState::Blocked, Some(reason), chain);
    }
    let open: Vec<String> = task
        .block
        .depends_on
        .iter()
        .filter(|needed| {
            by_id
                .get(needed)
                .is_none_or(|needed| needed.state != TaskState::Complete)
        })
        .map(|needed| format!("`{needed}`"))
        .collect();
    if open.is_empty() {
        let reason = match (&task.reason, task.state) {
            (Some(reason), TaskState::Ready) => reason.clone(),
            _ => unblocked(task),
        };
        shift(TaskState::Ready, Some(reason), Vec::new())
    } else {
        let reason = format!("waits for {}", open.join(", "));
        shift(TaskState::Pending, Some(reason), Vec::new())
    }
}

/// Returns the tasks that waited for nothing but `landed` any more.
pub fn unblocked_by(tasks: &[Task], landed: &TaskId) -> Vec<TaskId> {
    let complete = |id: &TaskId| {
        id == landed
            || tasks
                .iter()
                .any(|task| task.id == *id && task.state == TaskState::Complete)
    };
    tasks
        .iter()
        .filter(|task| task.state == TaskState::Pending)
        .filter(|task| task.block.depends_on.contains(landed))
        .filter(|task| task.block.depends_on.iter().all(complete))
        .map(|task| task.id.clone())
        .collect()
}

/// A task left out with a chain follows another one; only the first in the chain was decided about.
fn left_out_by_decision(task: &Task) -> bool {
    task.state == TaskState::Skipped && task.blocked_by.is_empty()
}

fn unblocked(task: &Task) -> String {
    match task.block.depends_on.last() {
        Some(needed) => format!("{FREE_LOOP}; unblocked by `{needed}`"),
        None => FREE_LOOP.to_owned(),
    }
}

/// Finds the shortest chain of dependencies from `task` to one that is a culprit; the culprit comes last.
fn chain_to(
    task: &Task,
    by_id: &HashMap<&TaskId, &Task>,
    culprit: impl Fn(&Task) -> bool,
) -> Option<Vec<TaskId>> {
    let mut queue: VecDeque<Vec<TaskId>> = task
        .block
        .depends_on
        .iter()
        .map(|needed| vec![needed.clone()])
        .collect();
    let mut seen: HashSet<TaskId> = HashSet::new();
    while let Some(chain) = queue.pop_front() {
        let last = chain.last()?;
        if !seen.insert(last.clone()) {
            continue;
        }
        let Some(needed) = by_id.get(last) else {
            continue;
        };
        if culprit(needed) {
            return Some(chain);
        }
        for next in &needed.block.depends_on {
            let mut longer = chain.clone();
            longer.push(next.clone());
            queue.push_back(longer);
        }
    }
    None
}

fn told(chain: &[TaskId], fate: &str) -> String {
    let links: Vec<String> = chain.iter().map(|task| format!("`{task}`")).collect();
    format!("needs {}, which {fate}", links.join(", which needs "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::decide::fixture::{id, task};
    use TaskState::{Complete, Failed, Pending, Ready, Skipped, Working};

    /// Applies the shifts and returns every task as `id state`.
    fn settled(tasks: &mut [Task]) -> Vec<String> {
        for shift in shifts(tasks) {
            let task = tasks.iter_mut().find(|task| task.id == shift.task).unwrap();
            task.state = shift.to;
            task.reason = shift.reason;
            task.blocked_by = shift.blocked_by;
        }
        tasks
            .iter()
            .map(|task| format!("{} {}", task.id, task.state))
            .collect()
    }

    #[test]
    fn a_task_is_ready_when_everything_it_needs_is_complete() {
        let mut tasks = [
            task("A", Complete, &[]),
            task("B", Pending, &["A"]),
            task("C", Pending, &["A", "B"]),
        ];
        assert_eq!(settled(&mut tasks), ["A complete", "B ready", "C pending"]);
        assert_eq!(tasks[2].reason.as_deref(), Some("waits for `B`"));
        assert_eq!(
            tasks[1].reason.as_deref(),
            Some("ready; waits for a free loop; unblocked by `A`")
        );
        assert!(shifts(&tasks).is_empty(), "a second look changes nothing");
    }

    #[test]
    fn a_landing_unblocks_what_waited_for_nothing_else() {
        let tasks = [
            task("A", Working, &[]),
            task("B", Complete, &[]),
            task("C", Pending, &["A", "B"]),
            task("D", Pending, &["A", "C"]),
            task("E", Ready, &["B"]),
        ];
        assert_eq!(unblocked_by(&tasks, &id("A")), [id("C")]);
        assert!(unblocked_by(&tasks, &id("B")).is_empty());
    }

    #[test]
    fn dependents_of_a_failed_task_are_blocked_with_the_chain_and_revive() {
        let mut tasks = [
            task("T-1", Failed, &[]),
            task("T-2", Working, &[]),
            task("T-3", Pending, &["T-1", "T-2"]),
            task("T-4", Pending, &["T-2"]),
            task("T-5", Pending, &["T-3", "T-4"]),
        ];
        assert_eq!(
            settled(&mut tasks),
            [
                "T-1 failed",
                "T-2 working",
                "T-3 blocked",
                "T-4 pending",
                "T-5 blocked"
            ]
        );
        assert_eq!(tasks[4].blocked_by, [id("T-3"), id("T-1")]);
        assert_eq!(
            tasks[4].reason.as_deref(),
            Some("needs `T-3`, which needs `T-1`, which failed")
        );
        tasks[0].state = Ready;
        settled(&mut tasks);
        assert_eq!((tasks[2].state, tasks[4].state), (Pending, Pending));
    }

    #[test]
    fn what_needs_a_skipped_task_is_skipped_with_it_and_comes_back_with_it() {
        let mut tasks = [
            task("A", Skipped, &[]),
            task("B", Pending, &["A"]),
            task("C", Pending, &["B"]),
            task("D", Ready, &[]),
        ];
        assert_eq!(
            settled(&mut tasks),
            ["A skipped", "B skipped", "C skipped", "D ready"]
        );
        tasks[0].state = Ready;
        assert_eq!(
            settled(&mut tasks),
            ["A ready", "B pending", "C pending", "D ready"]
        );
    }

    #[test]
    fn a_ring_or_an_unknown_dependency_never_becomes_ready() {
        let mut tasks = [
            task("A", Pending, &["B"]),
            task("B", Pending, &["A"]),
            task("C", Pending, &["X"]),
        ];
        assert_eq!(settled(&mut tasks), ["A pending", "B pending", "C pending"]);
        assert_eq!(tasks[2].reason.as_deref(), Some("waits for `X`"));
    }
}
