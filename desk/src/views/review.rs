//! Reviews as people see them: what came of a build, and what was learned from it.

use ropewalk_schemas::clip;
use ropewalk_schemas::knowledge::KnowledgeItem;
use ropewalk_schemas::review::{Divergence, Review};
use ropewalk_schemas::{BuildId, KnowledgeId, RequirementId, ReviewId, TaskId};
use ropewalk_store::{Query, ReadError, Store};
use schemars::JsonSchema;
use serde::Serialize;

/// How much is told of what was planned, and of what was done of it.
const MISSED_LETTERS: usize = 300;

/// A review with the lessons that it names.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReviewView {
    /// The review.
    #[serde(flatten)]
    pub review: Review,
    /// The gotchas and patterns themselves, as they stand now.
    pub lessons: Vec<KnowledgeItem>,
}

/// What a review holds for missed. It stands beside what the gates saw of the build, and refuses nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MissedView {
    /// The review that says so.
    pub review: ReviewId,
    /// The requirement, where the review names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requirement: Option<RequirementId>,
    /// The task that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// All of it in a line.
    pub told: String,
}

impl MissedView {
    fn of(review: ReviewId, missed: &Divergence) -> Self {
        let (planned, done) = (&missed.planned, &missed.actual);
        let [planned, done] = [planned, done].map(|text| clip::line(text, MISSED_LETTERS));
        Self {
            review,
            requirement: missed.requirement.clone(),
            task: missed.task.clone(),
            told: format!(
                "the review holds {} for missed: planned {planned}, done {done}",
                missed.place()
            ),
        }
    }
}

/// Lists what the newest review of a build holds for missed; nothing while there is none.
pub async fn missed(store: &Store, build: BuildId) -> Result<Vec<MissedView>, ReadError> {
    let review = of_build(store, build).await?;
    let missed = review.iter().flat_map(|review| {
        let all = review.missed();
        all.map(|missed| MissedView::of(review.id, missed))
    });
    Ok(missed.collect())
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
