//! Questions as people see them.

use std::collections::BTreeSet;

use ropewalk_orchestrator::questions;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::person::Role;
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{QuestionId, Slug};
use ropewalk_store::{Query, ReadError, Store, Versioned};
use schemars::JsonSchema;
use serde::Serialize;

use super::{AT_ONCE, records};

/// A question, with who is asked it first.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QuestionView {
    /// The question.
    #[serde(flatten)]
    pub question: Question,
    /// What those are there for who are asked first.
    pub role: Role,
}

impl From<Question> for QuestionView {
    fn from(question: Question) -> Self {
        Self {
            role: questions::role(&question),
            question,
        }
    }
}

/// Lists the questions, of one idea or of all, the most urgent first; `all` shows closed ones too.
pub async fn list(
    store: &Store,
    idea: Option<&Slug>,
    all: bool,
) -> Result<Vec<QuestionView>, ReadError> {
    let mut query = Query::new();
    if !all {
        query = query.equal("state", QuestionState::Pending.as_str());
    }
    if let Some(idea) = idea {
        query = query.equal("idea", idea.as_str());
    }
    let mut found = records(store.list::<Question>(query).await?);
    found.sort_by_key(questions::rank);
    Ok(found.into_iter().map(QuestionView::from).collect())
}

/// Forgets those of `asked` that are open no more: who was asked about keeps its question when its build ends.
pub(super) async fn forget_closed(
    store: &Store,
    asked: Vec<&mut Option<QuestionId>>,
) -> Result<(), ReadError> {
    let ids: BTreeSet<QuestionId> = asked.iter().filter_map(|asked| **asked).collect();
    let ids: Vec<QuestionId> = ids.into_iter().collect();
    let mut open = BTreeSet::new();
    for part in ids.chunks(AT_ONCE) {
        let pending = Query::new()
            .one_of("key", part)
            .equal("state", QuestionState::Pending.as_str());
        let found = store.list::<Question>(pending).await?;
        open.extend(found.iter().map(|question| question.id));
    }
    for asked in asked {
        *asked = asked.filter(|question| open.contains(question));
    }
    Ok(())
}

/// Lists the open questions that a build or a task of it waits for, the most urgent first.
pub async fn awaited(store: &Store, build: &Build) -> Result<Vec<Question>, ReadError> {
    let of_build = Query::new().equal("build", build.id.to_string());
    let tasks = store.list::<Task>(of_build.clone()).await?;
    let waiting =
        |task: &&Versioned<Task>| matches!(task.state, TaskState::Failed | TaskState::Waiting);
    let by_tasks = tasks
        .iter()
        .filter(waiting)
        .filter_map(|task| task.question);
    let held: BTreeSet<QuestionId> = by_tasks.chain(build.question).collect();
    if held.is_empty() {
        return Ok(Vec::new());
    }
    let open = of_build.equal("state", QuestionState::Pending.as_str());
    let mut found = records(store.list::<Question>(open).await?);
    found.retain(|question| held.contains(&question.id));
    found.sort_by_key(questions::rank);
    Ok(found)
}
