//! Counts tasks by outcome and tells the result in one line.

use ropewalk_schemas::build::TaskCounts;
use ropewalk_schemas::fulfilment::Fulfilment;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{RequirementId, TaskId};

use super::order::dependents;

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

/// Names the requirements whose checks prove nothing; none where there are none.
pub fn unverified(requirements: &[(RequirementId, Fulfilment)]) -> Option<String> {
    let found = requirements
        .iter()
        .filter(|(_, is)| *is == Fulfilment::Unverified);
    let names: Vec<&str> = found.map(|(id, _)| id.as_str()).collect();
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!("unverified, since their checks pass without the work: {names}")
    })
}

/// Names the requirements that no task is for; none where there are none.
pub fn unplanned(requirements: &[(RequirementId, Fulfilment)], tasks: &[Task]) -> Option<String> {
    let planned = |id: &RequirementId| tasks.iter().any(|task| task.is_for(id));
    let found = requirements.iter().filter(|(id, _)| !planned(id));
    let names: Vec<&str> = found.map(|(id, _)| id.as_str()).collect();
    (!names.is_empty()).then(|| format!("open, since no task is for it: {}", names.join(", ")))
}

/// What the end of one task means for the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskImpact {
    /// So many cannot go on without it.
    pub blocked: u32,
    /// So many go on without it.
    pub continuing: u32,
}

impl TaskImpact {
    /// Tells it to people.
    pub fn in_words(self) -> String {
        if self == Self::default() {
            return "No other task is left.".to_owned();
        }
        format!(
            "{} {} blocked by it, {} {} on without it.",
            self.blocked,
            if self.blocked == 1 {
                "task is"
            } else {
                "tasks are"
            },
            self.continuing,
            if self.continuing == 1 {
                "task goes"
            } else {
                "tasks go"
            },
        )
    }
}

/// Counts whom the failure of `failed` keeps from going on, and who goes on.
pub fn standing(tasks: &[Task], failed: &TaskId) -> TaskImpact {
    let behind = dependents(tasks, failed);
    let open = |task: &&Task| {
        task.state.is_active()
            || matches!(
                task.state,
                TaskState::Pending | TaskState::Ready | TaskState::Waiting | TaskState::Blocked
            )
    };
    let (blocked, others): (Vec<&Task>, Vec<&Task>) = tasks
        .iter()
        .filter(|task| task.id != *failed)
        .filter(open)
        .partition(|task| behind.contains(&task.id));
    let going = others
        .iter()
        .filter(|task| task.state != TaskState::Blocked);
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    TaskImpact {
        blocked: number(blocked.len()),
        continuing: number(going.count()),
    }
}

/// Tells a build that was asked to pause and still runs.
pub fn pausing(tasks: &[Task]) -> String {
    let running = tasks.iter().filter(|task| task.state.is_active()).count();
    format!("pause requested, {running} running")
}

/// Says which running tasks a stop ends, as the end of a sentence; nothing when none runs.
pub fn ended_by_stop<'a>(tasks: impl IntoIterator<Item = &'a Task>) -> String {
    let names: Vec<String> = tasks
        .into_iter()
        .filter(|task| task.state.is_active())
        .map(|task| format!("`{}`", task.id))
        .collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        "; ended in mid-attempt with their work kept: {}",
        names.join(", ")
    )
}

/// What parts the reason of a build from what is added to it.
pub(crate) const ADDITION: &str = "; ";

/// Adds what was told to the reason of a build, once.
pub fn with_addition(reason: Option<&str>, told: &str) -> String {
    match reason {
        Some(reason) if reason.contains(told) => reason.to_owned(),
        Some(reason) => format!("{reason}{ADDITION}{told}"),
        None => told.to_owned(),
    }
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

    #[test]
    fn what_is_told_is_told_once() {
        assert_eq!(with_addition(None, "new"), "new");
        assert_eq!(with_addition(Some("old"), "new"), "old; new");
        assert_eq!(with_addition(Some("old; new"), "new"), "old; new");
    }
    use crate::decide::fixture::task;

    #[test]
    fn what_nothing_shows_is_named() {
        let of = |id: &str, is| (RequirementId::parse(id).unwrap(), is);
        let all = [
            of("FR-1", Fulfilment::Met),
            of("FR-2", Fulfilment::Unverified),
            of("FR-3", Fulfilment::Open),
            of("FR-4", Fulfilment::WeaklyMet),
            of("FR-5", Fulfilment::MetByNewTests),
            of("FR-6", Fulfilment::MetUnseen),
            of("FR-7", Fulfilment::MetByNewTests),
        ];
        assert_eq!(
            Fulfilment::summed_up(&all, &[]),
            "5 met (FR-5, FR-7 with a task of which new tests alone fail without the work; FR-4 with a task whose check could \
             not run without the work; FR-6 with a task of whose check nobody has seen a test fail), 1 unverified (FR-2), \
             1 open (FR-3)"
        );
        assert_eq!(Fulfilment::summed_up(&all[..1], &[]), "1 met");
        assert_eq!(Fulfilment::summed_up(&[], &[]), "0 met");
        assert!(unverified(&all).unwrap().ends_with(": FR-2"));
        assert_eq!(unverified(&all[..1]), None);
    }

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

    #[test]
    fn a_failure_keeps_its_dependents_back_and_nobody_else() {
        let tasks = [
            task("T-1", TaskState::Working, &[]),
            task("T-2", TaskState::Working, &[]),
            task("T-3", TaskState::Pending, &["T-1", "T-2"]),
            task("T-4", TaskState::Pending, &["T-2"]),
            task("T-5", TaskState::Pending, &["T-3", "T-4"]),
            task("T-6", TaskState::Complete, &[]),
            task("T-7", TaskState::Blocked, &["T-8"]),
        ];
        let found = standing(&tasks, &tasks[0].id);
        let expected = TaskImpact {
            blocked: 2,
            continuing: 2,
        };
        assert_eq!(found, expected);
        assert_eq!(
            found.in_words(),
            "2 tasks are blocked by it, 2 tasks go on without it."
        );
        assert_eq!(TaskImpact::default().in_words(), "No other task is left.");
    }
}
