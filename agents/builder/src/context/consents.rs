//! Reads what people have answered about changes of what judges a task: what they allowed, and what they refused.

use ropewalk_config::Trigger;
use ropewalk_config::questions::choice::ProtectedFiles;
use ropewalk_schemas::question::{About, Content, FileChange, Question, QuestionState};
use ropewalk_schemas::task::Task;
use ropewalk_store::{Query, ReadError, Store, Versioned};

/// Lists what a person allowed a task to change.
pub(crate) async fn given(store: &Store, task: &Task) -> Result<Vec<Content>, ReadError> {
    let asked = answered(store, task).await?.into_iter();
    let allowed = asked.filter(is_consent);
    Ok(allowed.filter_map(|asked| asked.content).collect())
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

/// Lists what people said of a task, less that they refused a change.
pub(crate) async fn said_beside_refusals(
    store: &Store,
    task: &Task,
) -> Result<Vec<String>, ReadError> {
    let asked = answered(store, task).await?;
    let contents = asked.iter().map(|asked| asked.content.as_ref());
    let refused: Vec<String> = contents.flat_map(refusals).collect();
    let mut said = task.guidance.clone();
    said.retain(|words| !refused.contains(words));
    Ok(said)
}

/// Lists what the next attempt is told where a change of protected files was refused.
pub(crate) fn refusals(asked: Option<&Content>) -> Vec<String> {
    let Some(Content::Files { changes, .. }) = asked else {
        return vec!["A person refused the change that was asked about: the tests, gate and CI files stay as they are.".to_owned()];
    };
    let of = |file: &FileChange| {
        let path = &file.path;
        let left = if file.before.is_some() {
            "leave it as it is"
        } else {
            "do without it"
        };
        format!("A person refused the change of `{path}` that was asked about: {left}.")
    };
    changes.iter().map(of).collect()
}
