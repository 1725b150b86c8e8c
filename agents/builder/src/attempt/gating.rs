//! Shows candidates of an attempt to the gate, with what was seen and said before.

use ropewalk_gate::candidate::{self, Candidate, GateReport, Precedents};
use ropewalk_schemas::attempt::Evidence;
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{CommitId, RepoPath};
use ropewalk_store::{Query, ReadError, Store, Versioned};

use super::work::Work;
use crate::context::consents;
use crate::error::BuilderError;

/// Checks `commit`, which stands on `parent`, by what it may change and what was kept out of it; none when it was ended
/// from outside.
pub(crate) async fn check(
    work: &Work<'_>,
    commit: &CommitId,
    parent: &CommitId,
    (allowed, withheld): (&[RepoPath], &[String]),
) -> Result<Option<GateReport>, BuilderError> {
    let task = &work.claim.task;
    let precedents = precedents(&work.context.store, task).await?;
    let candidate = Candidate {
        task,
        attempt: work.claim.attempt.id,
        commit,
        parent,
        base: work.claim.build.base.as_ref(),
        allowed,
        withheld,
        precedents: &precedents,
        now: work.context.now(),
    };
    Ok(candidate::check(&work.shared.gate, &candidate, &work.cancel).await?)
}

async fn precedents(store: &Store, task: &Task) -> Result<Precedents, ReadError> {
    let passed = Query::new()
        .equal("build", task.build.to_string())
        .equal("verdict", "passed");
    let passed = store.list::<Evidence>(passed).await?;
    Ok(Precedents {
        passed: passed.into_iter().map(Versioned::into_inner).collect(),
        consents: consents::given(store, task).await?,
    })
}
