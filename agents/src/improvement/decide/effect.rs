//! Decides what the use of a lesson did.

use std::collections::BTreeMap;

use ropewalk_knowledge::Effect;
use ropewalk_schemas::KnowledgeId;
use ropewalk_schemas::knowledge::Injection;
use ropewalk_schemas::task::TaskState;

use super::metrics::TaskFacts;

/// How often a lesson was carried by tasks of one build, and how they fared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Use {
    /// Tasks that carried it and passed at their first try.
    pub helped: usize,
    /// Tasks that carried it and failed all the same.
    pub failed: usize,
}

/// Counts the uses by lesson. What the build wrote down goes before what its tasks show; a use that was held out on
/// purpose, and a task that was left out, say nothing.
pub fn uses<'a>(
    injections: impl IntoIterator<Item = (&'a Injection, Option<TaskFacts>)>,
) -> BTreeMap<KnowledgeId, Use> {
    let mut uses: BTreeMap<KnowledgeId, Use> = BTreeMap::new();
    for (injection, task) in injections {
        let seen = task.and_then(|task| match task.state {
            TaskState::Complete => Some(task.passed_first()),
            TaskState::Failed => Some(false),
            _ => None,
        });
        let counted = uses.entry(injection.item).or_default();
        match injection.helped.or(seen).filter(|_| !injection.held_out) {
            Some(true) => counted.helped += 1,
            Some(false) => counted.failed += 1,
            None => {}
        }
    }
    uses
}

/// Decides the effect of a lesson in one build: it counts once, by what most of its tasks show.
pub fn effect(seen: Use) -> Option<Effect> {
    match seen {
        Use {
            helped: 0,
            failed: 0,
        } => None,
        Use { helped, failed } if helped >= failed => Some(Effect::PreventedFailure),
        Use { .. } => Some(Effect::DidNotHelp),
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use ropewalk_schemas::{SpecId, TaskId};
    use uuid::Uuid;

    use super::*;

    fn injection(held_out: bool, helped: Option<bool>) -> Injection {
        Injection {
            item: KnowledgeId(Uuid::from_u128(1)),
            build: None,
            spec: SpecId(Uuid::from_u128(2)),
            task: TaskId::parse("T-001").unwrap(),
            held_out,
            helped,
            at: DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn what_the_build_wrote_down_goes_before_what_its_tasks_show() {
        let task = |state, failures| {
            Some(TaskFacts {
                state,
                failures,
                has_gotchas: true,
            })
        };
        let rows = [
            (false, Some(true), task(TaskState::Failed, 3), (1, 0)),
            (false, None, task(TaskState::Complete, 0), (1, 0)),
            (false, None, task(TaskState::Complete, 1), (0, 1)),
            (false, None, task(TaskState::Failed, 3), (0, 1)),
            (false, None, task(TaskState::Skipped, 1), (0, 0)),
            (false, None, None, (0, 0)),
            (true, Some(true), task(TaskState::Complete, 0), (0, 0)),
        ];
        for (held_out, written, task, (helped, failed)) in rows {
            let row = injection(held_out, written);
            let counted = uses([(&row, task)]);
            assert_eq!(
                counted[&row.item],
                Use { helped, failed },
                "{written:?} {task:?}"
            );
        }
    }

    #[test]
    fn a_lesson_counts_once_by_what_most_tasks_show() {
        let rows = [
            (0, 0, None),
            (1, 0, Some(Effect::PreventedFailure)),
            (2, 2, Some(Effect::PreventedFailure)),
            (1, 2, Some(Effect::DidNotHelp)),
        ];
        for (helped, failed, expected) in rows {
            assert_eq!(
                effect(Use { helped, failed }),
                expected,
                "{helped} {failed}"
            );
        }
    }
}
