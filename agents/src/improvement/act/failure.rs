//! Takes the lesson of a task that failed for good, or passed after it had failed.

use ropewalk_knowledge::{Draft, confirm, generalise, is_of_counts, record, teaches};
use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::knowledge::KnowledgeKind;
use ropewalk_schemas::{BuildId, KnowledgeId, TaskId};
use ropewalk_store::ChangeSet;

use super::ledger::Ledger;
use crate::improvement::context::{self, FailedTask};
use crate::improvement::decide::{self, FailureFacts};

/// The confidence of a lesson that names a fault and no way around it.
const UNSOLVED: f64 = 0.6;

/// Confirms what the build recorded about a correction; records a failure that nobody mended, if it teaches something.
pub(super) async fn ended(
    (build, task): (BuildId, &TaskId),
    will_retry: bool,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    let Some(failed) = context::failed_task(&context.store, build, task).await? else {
        return Ok(changes);
    };
    if !worth_it(&failed, will_retry) {
        return Ok(changes);
    }
    let mut ledger = Ledger::open(failed.candidates());
    if failed.self_corrected() {
        for candidate in failed.candidates() {
            ledger.step(candidate.id, |row| confirm(row, context.now()).ok());
        }
    } else if failed.lessons.is_empty()
        && let Some(draft) = draft(&failed, context)
    {
        let id = KnowledgeId(context.ids.next());
        ledger.record(record(&context.store, draft, id, context.now()).await?);
    }
    ledger.close(&mut changes, context);
    Ok(changes)
}

fn worth_it(failed: &FailedTask, will_retry: bool) -> bool {
    // What was mended may have been followed by what teaches nothing.
    let mended = failed
        .failures()
        .rfind(|failure| failed.self_corrected() && teaches(failure));
    let told = mended.or_else(|| failed.failures().next_back());
    told.is_some_and(|last| {
        let facts = FailureFacts {
            class: last.class,
            self_corrected: failed.self_corrected(),
            will_retry,
            repeated: failed
                .failures()
                .filter(|failure| failure.class == last.class)
                .count(),
            seen_before: failed.seen_before,
        };
        !is_of_counts(&last.error) && decide::should_record_gotcha(&facts)
    })
}

fn draft(failed: &FailedTask, context: &Context) -> Option<Draft> {
    let block = &failed.task.block;
    let last = failed.failures().next_back()?;
    let tries = failed.failures().count();
    Some(Draft {
        kind: KnowledgeKind::Gotcha,
        content: decide::lesson_of(block.action, block.file.as_str(), tries, &last.error)?,
        globs: vec![generalise(&block.file)],
        action: Some(block.action),
        topics: vec![block.phase.clone()],
        confidence: UNSOLVED,
        execution: failed.task.build.to_string(),
        idea: None,
        evidence: failed
            .failed
            .iter()
            .map(|attempt| format!("attempt/{}", attempt.id))
            .collect(),
        discovered_by: context.source().clone(),
        from_person: false,
    })
}
