//! Reviews as people see them: what came of a build, and what was learned from it.

use ropewalk_schemas::knowledge::KnowledgeItem;
use ropewalk_schemas::review::Review;
use ropewalk_schemas::{BuildId, KnowledgeId};
use ropewalk_store::{Query, ReadError, Store};
use schemars::JsonSchema;
use serde::Serialize;

/// A review with the lessons that it names.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReviewView {
    /// The review.
    #[serde(flatten)]
    pub review: Review,
    /// The gotchas and patterns themselves, as they stand now.
    pub lessons: Vec<KnowledgeItem>,
}

/// Loads a review with its lessons.
pub async fn show(store: &Store, review: Review) -> Result<ReviewView, ReadError> {
    let mut lessons = Vec::new();
    for id in review.gotchas.iter().chain(&review.patterns) {
        lessons.extend(lesson(store, *id).await?);
    }
    Ok(ReviewView { review, lessons })
}

/// Loads the newest review of a build; `None` while there is none.
pub async fn of_build(store: &Store, build: BuildId) -> Result<Option<Review>, ReadError> {
    let of_build = Query::new()
        .equal("build", build.to_string())
        .order_by("at")
        .descending()
        .limit(1);
    let found = store.list::<Review>(of_build).await?.pop();
    Ok(found.map(|row| row.record))
}

async fn lesson(store: &Store, id: KnowledgeId) -> Result<Option<KnowledgeItem>, ReadError> {
    let found = store.get::<KnowledgeItem>(&id.to_string()).await?;
    Ok(found.map(|row| row.record))
}
