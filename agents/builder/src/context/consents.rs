//! Reads what people have answered about changes of what judges a task: what they allowed, and what they refused.

use std::collections::BTreeMap;

use ropewalk_config::Trigger;
use ropewalk_config::questions::choice::ProtectedFiles;
use ropewalk_schemas::CommitId;
use ropewalk_schemas::question::{About, Content, FileChange, Question, QuestionState};
use ropewalk_schemas::task::Task;
use ropewalk_store::{Query, ReadError, Store, Versioned};

/// What is told of a change that was refused before questions showed any.
const REFUSED: &str = "A person refused the change that was asked about: the tests, gate and CI files stay as they are.";
/// What is told of a refused change of a file that was there.
const AS_IT_IS: &str = "leave it as it is";
/// What is told of a refused file that was new.
const WITHOUT: &str = "do without it";
/// What is told of a refused change of a file of which another one was allowed before.
const AS_ALLOWED: &str = "leave it as it was allowed before";

/// Lists what a person allowed a task to change.
pub(crate) async fn given(store: &Store, task: &Task) -> Result<Vec<Content>, ReadError> {
    let asked = answered(store, task).await?.into_iter();
    let allowed = asked.filter(is_consent);
    Ok(allowed.filter_map(|asked| asked.content).collect())
}

/// Lists what people have answered about protected files of a task, as it was asked.
async fn answered(store: &Store, task: &Task) -> Result<Vec<Question>, ReadError> {
    let asked = Query::new()
        .equal("build", task.build.to_string())
        .equal("state", QuestionState::Answered.as_str())
        .equal("trigger", Trigger::ProtectedFiles.as_str())
        .order_by("asked_at");
    let asked = store.list::<Question>(asked).await?.into_iter();
    let mut asked: Vec<Question> = asked.map(Versioned::into_inner).collect();
    asked.retain(
        |asked| matches!(&asked.about, About::Task { task: about, .. } if *about == task.id),
    );
    Ok(asked)
}

fn is_consent(question: &Question) -> bool {
    question.answer.as_ref().is_some_and(|answer| {
        matches!(
            ProtectedFiles::of(answer.choice.as_ref()),
            Some(ProtectedFiles::Allow | ProtectedFiles::AllowAnd)
        )
    })
}

/// Lists what the model of a task is told of what people allowed it: whoever does not know of a yes would take the change back.
pub(crate) async fn permissions(store: &Store, task: &Task) -> Result<Vec<String>, ReadError> {
    let files = answers(store, task).await?.files.into_values();
    // Where another change of the same file was refused since, the refusal tells of this one.
    let allowed = files.filter(|file| !file.is_refused);
    let allowed = allowed.filter_map(|file| file.allowed);
    Ok(allowed
        .map(|allowed| {
            let path = &allowed.change.path;
            format!(
                "A person allowed the change of `{path}` that was asked about: keep that change as it is."
            )
        })
        .collect())
}

/// A change that a person allowed, and a commit that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AllowedChange {
    pub(crate) change: FileChange,
    pub(crate) candidate: CommitId,
}

/// What people answered about changes of protected files of a task.
#[derive(Debug)]
pub(crate) struct Answers {
    /// The changes that they refused and never allowed, neither before nor since.
    pub(crate) refused: Vec<FileChange>,
    /// What they answered about each file, by its path.
    files: BTreeMap<String, FileAnswers>,
}

impl Answers {
    /// Lists what a task may change still though the newest answer about the same file was a no: as it was allowed before that.
    pub(crate) fn allowed_before(&self) -> Vec<AllowedChange> {
        let refused = self.files.values().filter(|file| file.is_refused);
        refused.filter_map(|file| file.allowed.clone()).collect()
    }
}

/// What people answered about one file.
#[derive(Debug, Default)]
struct FileAnswers {
    /// The newest change that they allowed.
    allowed: Option<AllowedChange>,
    /// Whether the newest answer was a no.
    is_refused: bool,
}

/// Reads what people answered about each change of a task, and about each file in the end.
pub(crate) async fn answers(store: &Store, task: &Task) -> Result<Answers, ReadError> {
    let mut files: BTreeMap<String, FileAnswers> = BTreeMap::new();
    let (mut allowed, mut refused) = (Vec::new(), Vec::new());
    for asked in answered(store, task).await? {
        let is_refused = !is_consent(&asked);
        let Some(Content::Files { candidate, changes }) = asked.content else {
            continue;
        };
        for change in changes {
            let answers = files.entry(change.path.clone()).or_default();
            answers.is_refused = is_refused;
            if is_refused {
                refused.push(change);
            } else {
                allowed.push(change.clone());
                let candidate = candidate.clone();
                answers.allowed = Some(AllowedChange { change, candidate });
            }
        }
    }
    refused.retain(|change| !allowed.contains(change));
    Ok(Answers { refused, files })
}

/// Lists what people said of a task, less that they refused a change.
pub(crate) async fn said_beside_refusals(
    store: &Store,
    task: &Task,
) -> Result<Vec<String>, ReadError> {
    let asked = answered(store, task).await?;
    let contents = asked.iter().map(|asked| asked.content.as_ref());
    let refused: Vec<String> = contents.flat_map(all_refusals).collect();
    let mut said = task.guidance.clone();
    said.retain(|words| !refused.contains(words));
    Ok(said)
}

/// Lists what may have been told of earlier answers about the same files; the newest one holds in place of them.
pub(crate) fn all_refusals(asked: Option<&Content>) -> Vec<String> {
    let Some(changes) = changes_of(asked) else {
        return vec![REFUSED.to_owned()];
    };
    let of = |file: &FileChange| [AS_IT_IS, WITHOUT, AS_ALLOWED].map(|left| refusal(file, left));
    changes.iter().flat_map(of).collect()
}

/// Lists what the next attempt is told where a change of protected files was refused that may be as it was `allowed` before.
pub(crate) fn refusals(asked: Option<&Content>, allowed: &[AllowedChange]) -> Vec<String> {
    let Some(changes) = changes_of(asked) else {
        return vec![REFUSED.to_owned()];
    };
    let of = |file: &FileChange| {
        let is_allowed = allowed.iter().any(|one| one.change.path == file.path);
        let left = match &file.before {
            _ if is_allowed => AS_ALLOWED,
            Some(_) => AS_IT_IS,
            None => WITHOUT,
        };
        refusal(file, left)
    };
    changes.iter().map(of).collect()
}

fn refusal(file: &FileChange, left: &str) -> String {
    let path = &file.path;
    format!("A person refused the change of `{path}` that was asked about: {left}.")
}

/// Tells what a person said beside a yes or a no, which a later answer does not take back; none where they said nothing.
pub(crate) fn said_of(asked: Option<&Content>, words: &str) -> Option<String> {
    if words.is_empty() {
        return None;
    }
    let about = match changes_of(asked) {
        None => "a change of tests, gate or CI files".to_owned(),
        Some(changes) => {
            let files = changes.iter().map(|file| format!("`{}`", file.path));
            let files: Vec<String> = files.collect();
            format!("the change of {}", files.join(", "))
        }
    };
    Some(format!("Asked about {about}, a person said: {words}"))
}

/// Returns the changes that were asked about; a question of before it showed any names none.
fn changes_of(asked: Option<&Content>) -> Option<&[FileChange]> {
    match asked {
        Some(Content::Files { changes, .. }) => Some(changes),
        _ => None,
    }
}
