//! Questions as people see them.

use std::collections::BTreeSet;

use ropewalk_orchestrator::questions;
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_schemas::{QuestionId, Slug};
use ropewalk_store::{Query, ReadError, Store};

use super::{AT_ONCE, records};

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
