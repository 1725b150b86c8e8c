//! Shows candidates of an attempt to the gate, with what was seen and said before.

use ropewalk_config::Trigger;
use ropewalk_config::questions::choice::ProtectedFiles;
use ropewalk_gate::candidate::{self, Candidate, GateReport, Precedents};
use ropewalk_schemas::attempt::Evidence;
use ropewalk_schemas::question::{About, Content, FileChange, Question, QuestionState};
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{CommitId, RepoPath};
use ropewalk_store::{Query, ReadError, Store, Versioned};

use super::work::Work;
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
    let asked = answered(store, task).await?.into_iter();
    Ok(Precedents {
        passed: passed.into_iter().map(Versioned::into_inner).collect(),
        consents: asked
            .filter(is_consent)
            .filter_map(|question| question.content)
            .collect(),
    })
}

/// Lists the changes of protected files that a person refused a task, and did not allow since.
pub(crate) async fn refused_changes(
    store: &Store,
    task: &Task,
) -> Result<Vec<FileChange>, ReadError> {
    let asked = answered(store, task).await?.into_iter();
    let (allowed, refused): (Vec<_>, Vec<_>) = asked.partition(is_consent);
    let changes = |questions: Vec<Question>| {
        let contents = questions.into_iter().filter_map(|asked| asked.content);
        let files = contents.filter_map(|content| match content {
            Content::Files { changes, .. } => Some(changes),
            _ => None,
        });
        files.flatten().collect::<Vec<FileChange>>()
    };
    let (allowed, mut refused) = (changes(allowed), changes(refused));
    refused.retain(|change| !allowed.contains(change));
    Ok(refused)
}

/// Lists what people have answered about protected files of a task.
async fn answered(store: &Store, task: &Task) -> Result<Vec<Question>, ReadError> {
    let asked = Query::new()
        .equal("build", task.build.to_string())
        .equal("state", QuestionState::Answered.as_str())
        .equal("trigger", Trigger::ProtectedFiles.as_str());
    let asked = store.list::<Question>(asked).await?.into_iter();
    let mut asked: Vec<Question> = asked.map(Versioned::into_inner).collect();
    asked.retain(
        |asked| matches!(&asked.about, About::Task { task: about, .. } if *about == task.id),
    );
    Ok(asked)
}

fn is_consent(question: &Question) -> bool {
    question.answer.as_ref().is_some_and(|answer| {
        ProtectedFiles::of(answer.choice.as_ref()) == Some(ProtectedFiles::Allow)
    })
}
