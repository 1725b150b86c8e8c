//! Specifications as people see them.

use ropewalk_coordination::waits::blocking_questions;
use ropewalk_schemas::document::{spec_md, tasks_md};
use ropewalk_schemas::model_call::UsageBy;
use ropewalk_schemas::question::{About, Question};
use ropewalk_schemas::specification::{Revision, Specification};
use ropewalk_schemas::{ContentHash, QuestionId, Slug, SpecId};
use ropewalk_store::{Query, ReadError, Store, revision_key};
use schemars::JsonSchema;
use serde::Serialize;
use similar::TextDiff;

use super::lines::FileLines;
use super::usage::{self, Scope, UsageRow};

/// A specification in the list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SpecificationRow {
    /// The specification.
    #[serde(flatten)]
    pub specification: Specification,
    /// The open questions that it waits for: for eyes alone.
    #[serde(skip)]
    pub waits_for: Vec<QuestionId>,
}

/// A specification with its newest revision.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SpecificationView {
    /// The specification.
    #[serde(flatten)]
    pub specification: Specification,
    /// What its newest revision holds, once there is one.
    pub content: Option<Revision>,
    /// The open questions that it waits for.
    pub waits_for: Vec<QuestionId>,
    /// What models used for its idea until now, the conversation and builds of it among that; none where none was asked.
    pub idea_usage: Option<UsageRow>,
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
    let scope = Scope {
        idea: Some(specification.idea.clone()),
        build: None,
    };
    let idea_usage = usage::list(store, UsageBy::Idea, &scope).await?.pop();
    Ok(SpecificationView {
        specification,
        content,
        waits_for,
        idea_usage,
    })
}

/// What changed between two revisions of a specification.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RevisionDifference {
    /// The specification.
    pub id: SpecId,
    /// The earlier revision.
    pub from: u32,
    /// The later revision.
    pub to: u32,
    /// The lines of spec.md and tasks.md that differ, as a unified difference; empty where none does.
    pub difference: String,
}

/// Says why two revisions were not compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// There is only one.
    #[error("specification {0} has one revision, and there is nothing to compare it with")]
    Alone(SpecId),
    /// There is no such revision.
    #[error("specification {spec} has no revision {number}")]
    Missing {
        /// The specification.
        spec: SpecId,
        /// What was asked for.
        number: u32,
        /// The newest there is.
        newest: u32,
    },
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Compares two revisions: the newest with the one before it, where nothing else is said.
pub async fn compare(
    store: &Store,
    specification: &Specification,
    from: Option<u32>,
    to: Option<u32>,
) -> Result<RevisionDifference, CompareError> {
    let to = to.unwrap_or(specification.revision);
    let from = match from {
        Some(from) => from,
        None if to < 2 => return Err(CompareError::Alone(specification.id)),
        None => to - 1,
    };
    let (before, after) = (
        documents(store, specification, from).await?,
        documents(store, specification, to).await?,
    );
    let mut difference = String::new();
    for ((name, before), (_, after)) in before.iter().zip(&after) {
        let compared = TextDiff::from_lines(before.as_str(), after.as_str());
        let mut unified = compared.unified_diff();
        let header = (
            format!("revision {from}/{name}"),
            format!("revision {to}/{name}"),
        );
        unified.context_radius(3).header(&header.0, &header.1);
        difference.push_str(&unified.to_string());
    }
    Ok(RevisionDifference {
        id: specification.id,
        from,
        to,
        difference,
    })
}

/// Returns the number of the revision with this hash; none where no revision has it.
pub async fn number_of(
    store: &Store,
    specification: &Specification,
    hash: &ContentHash,
) -> Result<Option<u32>, ReadError> {
    let of_spec = Query::new().equal("spec", specification.id.to_string());
    let revisions = store.list::<Revision>(of_spec).await?;
    let found = revisions.iter().find(|revision| revision.hash == *hash);
    Ok(found.map(|revision| revision.number))
}

/// Numbers the lines of the documents of the newest revision.
pub async fn document_lines(
    store: &Store,
    specification: &Specification,
) -> Result<Vec<FileLines>, CompareError> {
    let documents = documents(store, specification, specification.revision).await?;
    let lines = documents.map(|(name, text)| FileLines::of_document(name, &text));
    Ok(lines.into())
}

/// Renders both documents of a revision; what is no part of its content is the same for all.
async fn documents(
    store: &Store,
    specification: &Specification,
    number: u32,
) -> Result<[(&'static str, String); 2], CompareError> {
    let key = revision_key(specification.id, number);
    let revision = store.get::<Revision>(&key).await?;
    let revision = revision.ok_or(CompareError::Missing {
        spec: specification.id,
        number,
        newest: specification.revision,
    })?;
    let tasks = tasks_md::render(&tasks_md::TasksPlan {
        id: specification.id,
        title: &revision.document.title,
        spec_version: specification.revision,
        context: &revision.document.context_read,
        tasks: &revision.tasks,
    });
    let header = spec_md::SpecHeader::from(specification);
    Ok([
        ("spec.md", spec_md::render(&header, &revision.document)),
        ("tasks.md", tasks),
    ])
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
