//! Orders tasks: by their edges alone, with phase and priority to break ties (design §10, §15).

use std::collections::{BTreeMap, BTreeSet};

use ropewalk_schemas::TaskId;
use ropewalk_schemas::natural::NaturalName;
use ropewalk_schemas::task::TaskBlock;

/// Returns the tasks in an order that respects every edge; of those that may come next, the one of the earliest
/// phase comes first, then the one of the highest priority, then the one whose id counts first. Unknown phases come last.
///
/// Tasks in a cycle, which the validation refuses, stay at the end as they were.
pub(super) fn ordered(tasks: Vec<TaskBlock>, phases: &[String]) -> Vec<TaskBlock> {
    let positions = positions(&tasks, phases);
    let mut rest: Vec<Option<TaskBlock>> = tasks.into_iter().map(Some).collect();
    let mut sorted: Vec<TaskBlock> = positions
        .iter()
        .filter_map(|index| rest[*index].take())
        .collect();
    sorted.extend(rest.into_iter().flatten());
    sorted
}

/// Returns the tasks that are in a cycle of dependencies or behind one, in the order of their ids.
pub(super) fn cycle(tasks: &[TaskBlock]) -> Vec<&TaskId> {
    let reached: BTreeSet<usize> = positions(tasks, &[]).into_iter().collect();
    let mut left: Vec<&TaskId> = (0..tasks.len())
        .filter(|index| !reached.contains(index))
        .map(|index| &tasks[index].id)
        .collect();
    left.sort();
    left.dedup();
    left
}

/// Returns for each task all those that it needs, directly or through others.
pub(super) fn needs(tasks: &[TaskBlock]) -> BTreeMap<&TaskId, BTreeSet<&TaskId>> {
    let direct: BTreeMap<&TaskId, &[TaskId]> = tasks
        .iter()
        .map(|task| (&task.id, task.depends_on.as_slice()))
        .collect();
    let reached = |task: &'_ TaskBlock| {
        let mut reached: BTreeSet<&TaskId> = BTreeSet::new();
        let mut open: Vec<&TaskId> = direct
            .get(&task.id)
            .copied()
            .into_iter()
            .flatten()
            .collect();
        while let Some(id) = open.pop() {
            if reached.insert(id) {
                open.extend(direct.get(id).copied().into_iter().flatten());
            }
        }
        reached
    };
    tasks.iter().map(|task| (&task.id, reached(task))).collect()
}

fn positions(tasks: &[TaskBlock], phases: &[String]) -> Vec<usize> {
    let indexes: BTreeMap<&TaskId, usize> = tasks
        .iter()
        .enumerate()
        .map(|(index, task)| (&task.id, index))
        .collect();
    let mut needed: Vec<BTreeSet<usize>> = tasks
        .iter()
        .map(|task| {
            task.depends_on
                .iter()
                .filter_map(|id| indexes.get(id).copied())
                .collect()
        })
        .collect();
    let rank = |index: usize| {
        let task = &tasks[index];
        let phase = phases
            .iter()
            .position(|phase| *phase == task.phase)
            .unwrap_or(phases.len());
        (
            phase,
            task.priority.unwrap_or(5),
            NaturalName(task.id.as_str()),
            index,
        )
    };
    let mut ready: BTreeSet<_> = (0..tasks.len())
        .filter(|index| needed[*index].is_empty())
        .map(rank)
        .collect();
    let mut sorted = Vec::with_capacity(tasks.len());
    while let Some((_, _, _, done)) = ready.pop_first() {
        sorted.push(done);
        for (index, waits) in needed.iter_mut().enumerate() {
            if waits.remove(&done) && waits.is_empty() {
                ready.insert(rank(index));
            }
        }
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::super::validate::tests::task;
    use super::*;

    fn names(tasks: &[TaskBlock]) -> String {
        tasks
            .iter()
            .map(|task| task.id.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn edges_decide_and_the_phase_only_breaks_ties() {
        let phases: Vec<String> = ["database", "types", "api"].map(str::to_owned).to_vec();
        let in_phase = |id: &str, phase: &str, needs: &[&str]| TaskBlock {
            phase: phase.to_owned(),
            ..task(id, needs)
        };
        let cases = [
            (
                vec![
                    in_phase("A", "api", &[]),
                    in_phase("B", "types", &[]),
                    in_phase("C", "database", &[]),
                ],
                "C B A",
            ),
            (
                vec![in_phase("A", "database", &["B"]), in_phase("B", "api", &[])],
                "B A",
            ),
            (
                vec![in_phase("A", "odd", &[]), in_phase("B", "api", &[])],
                "B A",
            ),
            (
                vec![in_phase("B", "api", &[]), in_phase("A", "api", &[])],
                "A B",
            ),
            (
                vec![
                    in_phase("A", "api", &["B"]),
                    in_phase("B", "types", &["C"]),
                    in_phase("C", "api", &[]),
                    in_phase("D", "database", &["A"]),
                ],
                "C B A D",
            ),
        ];
        for (tasks, expected) in cases {
            let before = names(&tasks);
            assert_eq!(names(&ordered(tasks, &phases)), expected, "{before}");
        }
        let urgent = TaskBlock {
            priority: Some(1),
            ..in_phase("B", "api", &[])
        };
        assert_eq!(
            names(&ordered(vec![in_phase("A", "api", &[]), urgent], &phases)),
            "B A"
        );
    }

    #[test]
    fn however_the_blocks_are_shuffled_the_order_is_one() {
        let mut tasks: Vec<TaskBlock> = (1..=12).map(|n| task(&format!("T-{n}"), &[])).collect();
        tasks[1].depends_on = vec![TaskId::parse("T-11").unwrap()];
        tasks[4].priority = Some(1);
        let expected = "T-5 T-1 T-3 T-4 T-6 T-7 T-8 T-9 T-10 T-11 T-2 T-12";
        for turn in 0..tasks.len() {
            // Each step is coprime to the number of tasks, so every task is taken once.
            for step in [1, 5, 7, 11] {
                let shuffled = (0..tasks.len()).map(|at| tasks[(turn + at * step) % 12].clone());
                assert_eq!(
                    names(&ordered(shuffled.collect(), &[])),
                    expected,
                    "{turn} {step}"
                );
            }
        }
    }

    #[test]
    fn a_cycle_is_named_and_loses_no_task() {
        let tasks = vec![
            task("A", &["C"]),
            task("B", &["A"]),
            task("C", &["B"]),
            task("D", &[]),
        ];
        assert_eq!(
            cycle(&tasks)
                .iter()
                .map(|id| id.as_str())
                .collect::<Vec<_>>(),
            ["A", "B", "C"]
        );
        assert_eq!(names(&ordered(tasks, &[])), "D A B C");
        assert!(cycle(&[task("A", &[]), task("B", &["A"])]).is_empty());
    }
}
