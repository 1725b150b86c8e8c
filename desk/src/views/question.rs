//! Questions as people see them.

use ropewalk_orchestrator::questions;
use ropewalk_schemas::Slug;
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_store::{Query, ReadError, Store};

use super::records;

/// Lists the questions, of one idea or of all, the most urgent first; `all` shows closed ones too.
pub async fn list(
    store: &Store,
    idea: Option<&Slug>,
    all: bool,
) -> Result<Vec<Question>, ReadError> {
    let mut query = Query::new();
    if !all {
        query = query.equal("state", QuestionState::Pending.as_str());
    }
    if let Some(idea) = idea {
        query = query.equal("idea", idea.as_str());
    }
    let mut found = records(store.list::<Question>(query).await?);
    found.sort_by_key(questions::rank);
    Ok(found)
}
