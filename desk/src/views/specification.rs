//! Specifications as people see them.

use ropewalk_coordination::waits::blocking_questions;
use ropewalk_schemas::question::{About, Question};
use ropewalk_schemas::specification::{Revision, Specification};
use ropewalk_schemas::{QuestionId, Slug};
use ropewalk_store::{Query, ReadError, Store, revision_key};
use serde::Serialize;

/// A specification in the list.
#[derive(Debug, Serialize)]
pub struct SpecificationRow {
    /// The specification.
    #[serde(flatten)]
    pub specification: Specification,
    /// The open questions that it waits for: for eyes alone.
    #[serde(skip)]
    pub waits_for: Vec<QuestionId>,
}

/// A specification with its newest revision.
#[derive(Debug, Serialize)]
pub struct SpecificationView {
    /// The specification.
    #[serde(flatten)]
    pub specification: Specification,
    /// What its newest revision holds, once there is one.
    pub content: Option<Revision>,
    /// The open questions that it waits for.
    pub waits_for: Vec<QuestionId>,
}

/// Lists the specifications, of one idea or of all, the oldest first.
pub async fn list(store: &Store, idea: Option<&Slug>) -> Result<Vec<SpecificationRow>, ReadError> {
    let mut query = Query::new().order_by("created_at");
    if let Some(idea) = idea {
        query = query.equal("idea", idea.as_str());
    }
    let rows = store.list::<Specification>(query).await?;
    let open = blocking_questions(store).await?;
    let rows = rows.into_iter().map(|row| SpecificationRow {
        waits_for: waits_for(&row.record, &open),
        specification: row.record,
    });
    Ok(rows.collect())
}

/// Loads what belongs to a specification.
pub async fn show(
    store: &Store,
    specification: Specification,
) -> Result<SpecificationView, ReadError> {
    let key = revision_key(specification.id, specification.revision);
    let content = store.get::<Revision>(&key).await?.map(|row| row.record);
    let waits_for = waits_for(&specification, &blocking_questions(store).await?);
    Ok(SpecificationView {
        specification,
        content,
        waits_for,
    })
}

/// Returns the open questions that hold a specification up.
fn waits_for(specification: &Specification, open: &[Question]) -> Vec<QuestionId> {
    let about = About::Specification {
        spec: specification.id,
    };
    open.iter()
        .filter(|question| question.about == about)
        .map(|question| question.id)
        .collect()
}
