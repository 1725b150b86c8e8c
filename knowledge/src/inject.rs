//! Puts items into tasks, and writes down each use, so that its effect can be measured.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use ropewalk_schemas::attempt::Attempt;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::knowledge::{Injection, KnowledgeItem};
use ropewalk_schemas::{BuildId, KnowledgeId, SpecId, TaskId};
use ropewalk_store::{ChangeSet, Query, ReadError, Store, Versioned};

use crate::decide;

/// Is an item that applies to a task.
#[derive(Debug, Clone)]
pub struct PlannedInjection {
    /// The item.
    pub item: Versioned<KnowledgeItem>,
    /// The task.
    pub task: TaskId,
}

/// Is what a task gets and what it does not.
#[derive(Debug, Clone)]
pub struct InjectionResult {
    /// What is to be written; empty when nothing changes.
    pub changes: ChangeSet,
    /// The items to put into tasks, in the order of the plan.
    pub carried: Vec<(TaskId, KnowledgeId)>,
    /// The items that are left out on purpose.
    pub held_out: Vec<(TaskId, KnowledgeId)>,
}

/// Decides for each planned use whether it is held out, and writes all of them down. A use that a former revision of
/// the specification wrote down stays as it was decided. A task is told again what it taught itself, which is no use.
pub async fn inject(
    store: &Store,
    spec: SpecId,
    plan: &[PlannedInjection],
    may_hold_out: bool,
    now: DateTime<Utc>,
) -> Result<InjectionResult, ReadError> {
    let former = of_spec(store, spec).await?;
    let mut uses: BTreeMap<KnowledgeId, u64> = BTreeMap::new();
    let mut taught = BTreeSet::new();
    for planned in plan {
        if taught_by(store, spec, planned).await? {
            taught.insert((planned.task.clone(), planned.item.record.id));
        }
        if let Entry::Vacant(count) = uses.entry(planned.item.record.id) {
            let query = Query::new().equal("item", planned.item.record.id.to_string());
            count.insert(store.count::<Injection>(query).await?);
        }
    }
    let decided = decide_uses(plan, (&former, &taught), uses, may_hold_out);
    Ok(injected(plan, &decided, spec, now))
}

/// Says whether the task of a planned use is one in which the item was learned.
async fn taught_by(
    store: &Store,
    spec: SpecId,
    planned: &PlannedInjection,
) -> Result<bool, ReadError> {
    let evidence = planned.item.record.evidence.iter();
    for attempt in evidence.filter_map(|one| one.strip_prefix("attempt/")) {
        let Some(attempt) = store.get::<Attempt>(attempt).await? else {
            continue;
        };
        if attempt.task != planned.task {
            continue;
        }
        let build = store.get::<Build>(&attempt.build.to_string()).await?;
        if build.is_some_and(|build| build.spec == spec) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Is a use with what was decided about it.
#[derive(Debug, PartialEq, Eq)]
struct Use<'a> {
    task: &'a TaskId,
    item: KnowledgeId,
    held_out: bool,
    /// Whether it is to be written down.
    new: bool,
}

/// Decides in the order of the plan; each item counts its own uses.
fn decide_uses<'a>(
    plan: &'a [PlannedInjection],
    (former, taught): (&[Versioned<Injection>], &BTreeSet<(TaskId, KnowledgeId)>),
    mut uses: BTreeMap<KnowledgeId, u64>,
    may_hold_out: bool,
) -> Vec<Use<'a>> {
    let mut decided: Vec<Use<'a>> = Vec::new();
    for planned in plan {
        let (task, item) = (&planned.task, planned.item.record.id);
        if decided
            .iter()
            .any(|known| known.task == task && known.item == item)
        {
            continue;
        }
        let known = former
            .iter()
            .find(|row| row.record.item == item && row.record.task == *task);
        let is_use = !taught.contains(&(task.clone(), item));
        let held_out = known.map_or_else(
            || {
                if !is_use {
                    return false;
                }
                let count = uses.entry(item).or_default();
                *count += 1;
                decide::holds_out(may_hold_out, *count - 1)
            },
            |row| row.record.held_out,
        );
        decided.push(Use {
            task,
            item,
            held_out,
            new: known.is_none() && is_use,
        });
    }
    decided
}

fn injected(
    plan: &[PlannedInjection],
    decided: &[Use<'_>],
    spec: SpecId,
    now: DateTime<Utc>,
) -> InjectionResult {
    let mut changes = ChangeSet::new();
    let mut carried_anew: BTreeMap<KnowledgeId, u32> = BTreeMap::new();
    for decision in decided.iter().filter(|decision| decision.new) {
        changes.insert(&written_down(decision, spec, now));
        if !decision.held_out {
            *carried_anew.entry(decision.item).or_default() += 1;
        }
    }
    for (id, times) in carried_anew {
        let mut rows = plan.iter().map(|planned| &planned.item);
        if let Some(row) = rows.find(|row| row.record.id == id) {
            let mut after = row.record.clone();
            after.injections = after.injections.saturating_add(times);
            changes.update(row, &after);
        }
    }
    let list = |held_out: bool| {
        decided
            .iter()
            .filter(|decision| decision.held_out == held_out)
            .map(|decision| (decision.task.clone(), decision.item))
            .collect()
    };
    InjectionResult {
        changes,
        carried: list(false),
        held_out: list(true),
    }
}

/// Writes down, once a task has ended, in which build it carried its items; a review says what they did.
pub async fn settle(
    store: &Store,
    spec: SpecId,
    task: &TaskId,
    build: BuildId,
) -> Result<ChangeSet, ReadError> {
    let mut changes = ChangeSet::new();
    for row in of_spec(store, spec).await? {
        if row.record.task == *task && row.record.build.is_none() {
            let after = Injection {
                build: Some(build),
                ..row.record.clone()
            };
            changes.update(&row, &after);
        }
    }
    Ok(changes)
}

async fn of_spec(store: &Store, spec: SpecId) -> Result<Vec<Versioned<Injection>>, ReadError> {
    store
        .list(Query::new().equal("spec", spec.to_string()))
        .await
}

fn written_down(decision: &Use<'_>, spec: SpecId, now: DateTime<Utc>) -> Injection {
    Injection {
        item: decision.item,
        build: None,
        spec,
        task: decision.task.clone(),
        held_out: decision.held_out,
        helped: None,
        at: now,
    }
}
