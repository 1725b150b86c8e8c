//! Puts lessons into attempts, and takes lessons from them.

use ropewalk_store::ChangeSet;

use super::attempt::Work;
use super::ending::{Report, Rows};
use super::trouble::Trouble;

/// Gathers the lessons for the task's prompt.
pub(crate) async fn gather(work: &Work<'_>, report: &mut Report) -> Result<Vec<String>, Trouble> {
    let block = &work.claim.task.block;
    report.gotchas = block
        .gotchas
        .iter()
        .filter_map(|gotcha| gotcha.id)
        .collect();
    Ok(block
        .gotchas
        .iter()
        .map(|gotcha| gotcha.text.clone())
        .collect())
}

/// Adds what a landing taught to its change set.
pub(crate) async fn learn(
    _work: &Work<'_>,
    _rows: &Rows,
    _report: &Report,
    _changes: &mut ChangeSet,
) -> Result<(), Trouble> {
    Ok(())
}
