//! Counts tasks by outcome and tells the result in one line.

use ropewalk_schemas::build::TaskCounts;
use ropewalk_schemas::task::{Task, TaskState};

/// Counts the tasks of a build by outcome.
pub fn count(tasks: &[Task]) -> TaskCounts {
    let of = |state| {
        let number = tasks.iter().filter(|task| task.state == state).count();
        u32::try_from(number).unwrap_or(u32::MAX)
    };
    TaskCounts {
        total: u32::try_from(tasks.len()).unwrap_or(u32::MAX),
        complete: of(TaskState::Complete),
        failed: of(TaskState::Failed),
        skipped: of(TaskState::Skipped),
        blocked: of(TaskState::Blocked),
    }
}

/// Returns whether an attempt holds the task.
pub const fn is_active(state: TaskState) -> bool {
    matches!(
        state,
        TaskState::Claimed | TaskState::Working | TaskState::Validating | TaskState::Landing
    )
}

/// Names the tasks in `state`, for people; none when there are none.
pub fn named(tasks: &[Task], state: TaskState) -> Option<String> {
    let names: Vec<String> = tasks
        .iter()
        .filter(|task| task.state == state)
        .map(|task| format!("`{}`", task.id))
        .collect();
    (!names.is_empty()).then(|| names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::decide::fixture::task;

    #[test]
    fn tasks_are_counted_and_named_by_outcome() {
        let tasks = [
            task("A", TaskState::Complete, &[]),
            task("B", TaskState::Failed, &[]),
            task("C", TaskState::Blocked, &["B"]),
            task("D", TaskState::Failed, &[]),
            task("E", TaskState::Ready, &[]),
        ];
        let expected = TaskCounts {
            total: 5,
            complete: 1,
            failed: 2,
            skipped: 0,
            blocked: 1,
        };
        assert_eq!(count(&tasks), expected);
        assert_eq!(
            named(&tasks, TaskState::Failed).as_deref(),
            Some("`B`, `D`")
        );
        assert_eq!(named(&tasks, TaskState::Skipped), None);
    }
}
