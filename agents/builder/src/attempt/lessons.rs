//! Puts lessons into attempts, and takes lessons from them.

use ropewalk_knowledge::decide::{FAILURE_SEEN, MERELY_TOLD};
use ropewalk_knowledge::{
    Draft, PlannedInjection, generalise, inject, record, retrieve, settle, teaches, telling_line,
};
use ropewalk_orchestrator::Context;
use ropewalk_schemas::attempt::Failure;
use ropewalk_schemas::clip;
use ropewalk_schemas::knowledge::{KnowledgeItem, KnowledgeKind};
use ropewalk_schemas::task::{Action, Task};
use ropewalk_schemas::{ComponentName, KnowledgeId, SpecId, Subject};
use ropewalk_store::{ChangeSet, CommitError};
use tracing::debug;

use super::report::Report;
use super::rows::Rows;
use super::work::Work;
use crate::context::attempts_at;
use crate::error::BuilderError;

/// So many letters of a lesson are kept.
const LESSON_LETTERS: usize = 2_000;

/// Gathers the lessons for the task's prompt: those that match now, then those that its specification carries and that may
/// still be told.
pub(crate) async fn gather(
    work: &Work<'_>,
    report: &mut Report,
) -> Result<Vec<String>, BuilderError> {
    let mut ids = Vec::new();
    let mut texts = Vec::new();
    let planned = planned(work).await?;
    for (id, text) in matching(work).await?.into_iter().chain(planned) {
        if texts.len() < work.shared.options.lessons && !texts.contains(&text) {
            ids.extend(id);
            texts.push(text);
        }
    }
    report.gotchas = ids;
    Ok(texts)
}

/// Lists the lessons that the specification carries, without those that were withdrawn or replaced since.
async fn planned(work: &Work<'_>) -> Result<Vec<(Option<KnowledgeId>, String)>, BuilderError> {
    let store = &work.context.store;
    let mut usable = Vec::new();
    for gotcha in &work.claim.task.block.gotchas {
        let Some(id) = gotcha.id else {
            usable.push((None, gotcha.text.clone()));
            continue;
        };
        let item = store.get::<KnowledgeItem>(&id.to_string()).await?;
        let told = item.filter(|item| item.may_be_told());
        usable.extend(told.map(|item| (Some(id), item.told())));
    }
    Ok(usable)
}

/// Finds the lessons that match the files of the task now, and writes down that it uses them.
async fn matching(work: &Work<'_>) -> Result<Vec<(Option<KnowledgeId>, String)>, BuilderError> {
    let options = &work.shared.options;
    let context = &work.context;
    let task = &work.claim.task;
    let mut plan: Vec<PlannedInjection> = Vec::new();
    for file in task.block.files() {
        let (action, minimum) = (task.block.action, options.knowledge_minimum);
        let found = retrieve(&context.store, file, action, minimum, options.lessons).await?;
        for item in found {
            let seen = plan.iter().any(|one| one.item.id == item.id);
            if !seen && plan.len() < options.lessons {
                plan.push(PlannedInjection {
                    item,
                    task: task.id.clone(),
                });
            }
        }
    }
    if plan.is_empty() {
        return Ok(Vec::new());
    }
    let spec = work.claim.build.spec;
    let injected = inject(&context.store, spec, &plan, options.hold_out, context.now()).await?;
    match context.store.commit(injected.changes).await {
        Ok(_) => {}
        // Another task uses the same lesson at the same time; a use that is not written down is not made.
        Err(CommitError::Conflict { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    }
    Ok(plan
        .into_iter()
        .filter(|one| injected.carried.contains(&(task.id.clone(), one.item.id)))
        .map(|one| (Some(one.item.id), one.item.told()))
        .collect())
}

/// Adds what a landing taught to its change set: that its lessons were used, and what a correction taught.
pub(crate) async fn learn(
    work: &Work<'_>,
    rows: &Rows,
    report: &Report,
    changes: &mut ChangeSet,
) -> Result<(), BuilderError> {
    let task = &rows.task;
    close_uses(&work.context, changes, rows.build.spec, task).await?;
    let mended = task.failures.iter().rev().find(|failure| teaches(failure));
    if task.block.action == Action::Verify || (mended.is_none() && report.lesson.is_none()) {
        return Ok(());
    }
    let draft = draft(&work.context, rows, report, mended).await?;
    let context = &work.context;
    let id = KnowledgeId(context.ids.next());
    let recorded = record(&context.store, draft, id, context.now()).await?;
    debug!(task.id = %task.id, "lesson of `{}`: {:?}", task.id, recorded.outcome);
    changes.merge(recorded.changes);
    for payload in recorded.payloads {
        changes.emit(context.event(Subject::idea(&rows.build.idea), payload));
    }
    Ok(())
}

/// Notes that a task has ended which carried lessons; the review says what they did.
pub(crate) async fn close_uses(
    context: &Context,
    changes: &mut ChangeSet,
    spec: SpecId,
    task: &Task,
) -> Result<(), BuilderError> {
    let settled = settle(&context.store, spec, &task.id, task.build).await?;
    changes.merge(settled);
    Ok(())
}

async fn draft(
    context: &Context,
    rows: &Rows,
    report: &Report,
    mended: Option<&Failure>,
) -> Result<Draft, BuilderError> {
    let block = &rows.task.block;
    let told = report.lesson.clone();
    let said = match (&told, mended) {
        (Some(lesson), _) => lesson.text.clone(),
        (None, failure) => failure.map_or_else(String::new, |failure| telling_line(&failure.error)),
    };
    let globs = told
        .map(|lesson| lesson.globs)
        .filter(|globs| !globs.is_empty())
        .unwrap_or_else(|| vec![generalise(&block.file)]);
    let attempts = attempts_at(&context.store, rows.task.build, &rows.task.id).await?;
    let evidence = attempts
        .iter()
        .filter(|attempt| match mended {
            Some(failure) => attempt.failures().any(|one| one.attempt == failure.attempt),
            None => attempt.id == rows.attempt.id,
        })
        .map(|attempt| format!("attempt/{}", attempt.id))
        .collect();
    Ok(Draft {
        kind: KnowledgeKind::Gotcha,
        content: clip::letters(&said, LESSON_LETTERS).into_owned(),
        globs,
        action: Some(block.action),
        topics: vec![block.phase.clone()],
        confidence: mended.map_or(MERELY_TOLD, |_| FAILURE_SEEN),
        execution: rows.task.build.to_string(),
        idea: Some(rows.build.idea.clone()),
        evidence,
        discovered_by: ComponentName::parse("build")
            .map_err(|error| BuilderError::Missing(error.to_string()))?,
        from_person: false,
    })
}
