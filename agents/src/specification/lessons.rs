//! Puts the lessons that apply into each task, and writes down every use (seed pipeline §4.3, design §12).

use chrono::{DateTime, Utc};
use ropewalk_knowledge::{Fit, PlannedInjection, fit};
use ropewalk_schemas::SpecId;
use ropewalk_schemas::knowledge::KnowledgeItem;
use ropewalk_schemas::task::GotchaReference;
use ropewalk_schemas::task::TaskBlock;
use ropewalk_store::{ChangeSet, ReadError, Store, Versioned};

use super::LessonOptions;

/// What putting lessons into tasks changes.
pub(super) struct Lessons {
    /// The uses, to be written with the revision.
    pub(super) changes: ChangeSet,
    /// How many lessons the tasks carry, all together.
    pub(super) carried: usize,
}

/// Gives every task the lessons that the project has learned; a model fills in none.
pub(super) async fn inject(
    store: &Store,
    spec: SpecId,
    tasks: &mut [TaskBlock],
    options: &LessonOptions,
    now: DateTime<Utc>,
) -> Result<Lessons, ReadError> {
    let mut plan: Vec<PlannedInjection> = Vec::new();
    for task in tasks.iter() {
        for item in of_task(store, task, options).await? {
            plan.push(PlannedInjection {
                item,
                task: task.id.clone(),
            });
        }
    }
    let injected = ropewalk_knowledge::inject(store, spec, &plan, options.hold_out, now).await?;
    for task in tasks.iter_mut() {
        let carried = plan
            .iter()
            .filter(|planned| planned.task == task.id)
            .filter(|planned| {
                injected
                    .carried
                    .iter()
                    .any(|(id, item)| *id == task.id && *item == planned.item.id)
            });
        task.gotchas = carried
            .map(|planned| GotchaReference {
                id: Some(planned.item.id),
                text: planned.item.content.clone(),
            })
            .collect();
    }
    Ok(Lessons {
        carried: injected.carried.len(),
        changes: injected.changes,
    })
}

/// Finds the lessons of one task over all its files: what names a file first, then what matches one, then what is
/// general; the surest first.
async fn of_task(
    store: &Store,
    task: &TaskBlock,
    options: &LessonOptions,
) -> Result<Vec<Versioned<KnowledgeItem>>, ReadError> {
    let mut found: Vec<(Fit, Versioned<KnowledgeItem>)> = Vec::new();
    for file in task.files() {
        let items = ropewalk_knowledge::retrieve(
            store,
            file,
            task.action,
            options.minimum,
            options.per_task,
        )
        .await?;
        for item in items {
            let Some(closeness) = fit(&item, file) else {
                continue;
            };
            match found.iter_mut().find(|(_, known)| known.id == item.id) {
                Some((known, _)) => *known = closeness.min(*known),
                None => found.push((closeness, item)),
            }
        }
    }
    found.sort_by(|(one_fit, one), (other_fit, other)| {
        one_fit
            .cmp(other_fit)
            .then_with(|| other.confidence.total_cmp(&one.confidence))
            .then_with(|| one.id.cmp(&other.id))
    });
    found.truncate(options.per_task);
    Ok(found.into_iter().map(|(_, item)| item).collect())
}
