//! Says how far the tasks have come that each task needs.

use std::collections::{HashMap, HashSet, VecDeque};

use ropewalk_schemas::TaskId;
use ropewalk_schemas::task::{Task, TaskState};

/// How far the tasks that a task needs have come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edges {
    /// All are complete; the last of them is named.
    Complete(Option<TaskId>),
    /// These are not.
    Open(Vec<TaskId>),
    /// One failed: the chain to it, itself last.
    Failed(Vec<TaskId>),
    /// One was left out: the chain to it, itself last.
    Skipped(Vec<TaskId>),
    /// Some were only to resolve what stands against the task, and were left out.
    Unresolved {
        /// Those.
        left_out: Vec<TaskId>,
        /// How far the others have come.
        others: Box<Edges>,
    },
}

/// Says of every task that follows its edges how far they have come.
///
/// A task behind a failed one is blocked with the chain and revives by itself. A task behind one that people left
/// out is left out too: it could never become ready. One that was only to resolve a conflict is none of the plan: who waited for
/// it can do without, and meets the conflict.
pub fn edges(tasks: &[Task]) -> Vec<(TaskId, Edges)> {
    let by_id: HashMap<&TaskId, &Task> = tasks.iter().map(|task| (&task.id, task)).collect();
    tasks
        .iter()
        .filter(|task| follows_edges(task))
        .map(|task| (task.id.clone(), due(task, &by_id)))
        .collect()
}

/// Says whether the edges decide about this task: it neither runs, waits for something else, nor was decided by people.
pub fn follows_edges(task: &Task) -> bool {
    match task.state {
        TaskState::Pending | TaskState::Ready => true,
        // Without a chain it was a person's or PM's word that blocked it, or a person's that left it out.
        TaskState::Blocked | TaskState::Skipped => !task.blocked_by.is_empty(),
        _ => false,
    }
}

fn due(task: &Task, by_id: &HashMap<&TaskId, &Task>) -> Edges {
    let resolves_no_more = |needed: &TaskId| {
        let needed = by_id.get(needed);
        needed.is_some_and(|needed| left_unresolved(needed))
    };
    let needed = task.block.depends_on.iter().cloned();
    let (left_out, needed): (Vec<TaskId>, Vec<TaskId>) = needed.partition(resolves_no_more);
    let others = of_needed(task, &needed, by_id);
    if left_out.is_empty() {
        return others;
    }
    Edges::Unresolved {
        left_out,
        others: Box::new(others),
    }
}

fn of_needed(task: &Task, needed: &[TaskId], by_id: &HashMap<&TaskId, &Task>) -> Edges {
    if let Some(chain) = chain_to(task, by_id, left_out_by_decision) {
        return Edges::Skipped(chain);
    }
    if let Some(chain) = chain_to(task, by_id, |task| task.state == TaskState::Failed) {
        return Edges::Failed(chain);
    }
    let is_open = |needed: &&TaskId| {
        by_id
            .get(needed)
            .is_none_or(|needed| needed.state != TaskState::Complete)
    };
    let open: Vec<TaskId> = needed.iter().filter(is_open).cloned().collect();
    if open.is_empty() {
        Edges::Complete(needed.last().cloned())
    } else {
        Edges::Open(open)
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

/// Says whether a task was only to resolve what stands against others, and was left out.
fn left_unresolved(task: &Task) -> bool {
    task.state == TaskState::Skipped && task.joins.is_some()
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
        // What waited for one that was left out is about to do without it.
        let needed = by_id.get(last).filter(|needed| !left_unresolved(needed));
        let Some(needed) = needed else {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::failure::is_to_be_resolved;
    use crate::decide::fixture::{failure, id, noon, task};
    use crate::machine::task::{Input, apply};
    use TaskState::{Complete, Failed, Pending, Ready, Skipped, Working};
    use ropewalk_schemas::CommitId;
    use ropewalk_schemas::attempt::{Failure, FailureClass};

    /// Applies the shifts and returns every task as `id state`.
    fn settled(tasks: &mut [Task]) -> Vec<String> {
        for (id, edges) in edges(tasks) {
            let task = tasks.iter_mut().find(|task| task.id == id).unwrap();
            let (after, _) = apply(task, Input::Edges(edges), noon()).unwrap();
            *task = after;
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
        let before = tasks.clone();
        settled(&mut tasks);
        assert_eq!(tasks, before, "a second look changes nothing");
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
    fn who_waited_for_a_conflict_to_be_resolved_goes_on_to_meet_it_where_that_is_left_out() {
        let joining = |name: &str, state, needs: &[&str]| {
            let other = CommitId::parse(&"a".repeat(40)).unwrap();
            let mut joining = task(name, state, needs);
            joining.joins = Some(other);
            joining
        };
        let mut wanted_again = task("B", Pending, &["A", "MERGE-1"]);
        let earlier = [FailureClass::ValidationFailed, FailureClass::Conflict];
        wanted_again.earlier_failures = earlier.map(|class| failure(class, "x")).to_vec();
        let mut tasks = [
            task("A", Working, &[]),
            wanted_again,
            task("C", Pending, &["B"]),
            task("D", Pending, &["MERGE-1"]),
            joining("MERGE-1", Skipped, &["MERGE-2"]),
            joining("MERGE-2", Failed, &[]),
            task("E", Pending, &["MERGE-2"]),
        ];
        assert_eq!(
            settled(&mut tasks),
            [
                "A working",
                "B pending",
                "C pending",
                "D ready",
                "MERGE-1 skipped",
                "MERGE-2 failed",
                "E blocked"
            ]
        );
        assert_eq!(tasks[1].block.depends_on, [id("A")]);
        let classes =
            |failures: &[Failure]| failures.iter().map(|one| one.class).collect::<Vec<_>>();
        // It is asked about before anything else resolves it.
        assert!(!is_to_be_resolved(&tasks[1]));
        assert_eq!(classes(&tasks[1].failures), [FailureClass::Conflict]);
        assert_eq!(
            classes(&tasks[1].earlier_failures),
            [FailureClass::ValidationFailed]
        );
        let again = Input::Retry { guidance: None };
        let (wanted, _) = apply(&tasks[1], again, noon()).unwrap();
        assert!(is_to_be_resolved(&wanted));
        tasks[0].state = Complete;
        assert_eq!(settled(&mut tasks)[1], "B ready");
    }

    #[test]
    fn a_cycle_or_an_unknown_dependency_never_becomes_ready() {
        let mut tasks = [
            task("A", Pending, &["B"]),
            task("B", Pending, &["A"]),
            task("C", Pending, &["X"]),
        ];
        assert_eq!(settled(&mut tasks), ["A pending", "B pending", "C pending"]);
        assert_eq!(tasks[2].reason.as_deref(), Some("waits for `X`"));
    }
}
