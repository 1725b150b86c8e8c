//! Reviews as people see them: what came of a build, and what was learned from it.

use ropewalk_schemas::build::Build;
use ropewalk_schemas::clip;
use ropewalk_schemas::knowledge::KnowledgeItem;
use ropewalk_schemas::review::{Divergence, DivergenceClass, Review};
use ropewalk_schemas::{BuildId, KnowledgeId, RequirementId, ReviewId, Slug, TaskId};
use ropewalk_store::{Query, ReadError, Store};
use schemars::JsonSchema;
use serde::Serialize;

use super::records;

/// How much is told of what was planned, and of what was done of it.
const OBJECTION_LETTERS: usize = 300;

/// What is said of a build of whose end there is no review.
pub const UNREVIEWED: &str = "nobody has reviewed it as it stands";

/// A review with the lessons that it names.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReviewView {
    /// The review.
    #[serde(flatten)]
    pub review: Review,
    /// The gotchas and patterns themselves, as they stand now.
    pub lessons: Vec<KnowledgeItem>,
}

/// What a review holds against a build: what is missed, or was done in a worse way than planned. It stands beside what the
/// gates saw, and refuses nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ObjectionView {
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

impl ObjectionView {
    /// Lists what a review holds against its build.
    pub fn all(review: &Review) -> Vec<Self> {
        let objections = review.objections();
        objections
            .map(|objection| Self::of(review.id, objection))
            .collect()
    }

    fn of(review: ReviewId, objection: &Divergence) -> Self {
        let (planned, done) = (&objection.planned, &objection.actual);
        let [planned, done] = [planned, done].map(|text| clip::line(text, OBJECTION_LETTERS));
        Self {
            review,
            requirement: objection.requirement.clone(),
            task: objection.task.clone(),
            told: format!(
                "the review holds {} for {}: planned {planned}, done {done}",
                objection.place(),
                match objection.class {
                    DivergenceClass::MissedRequirement => "missed",
                    _ => "worse than planned",
                }
            ),
        }
    }
}

/// How far a build was reviewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReviewStanding {
    /// It has no review.
    Missing,
    /// Its newest review is of an earlier end.
    Earlier,
    /// It was reviewed as it stands.
    Current,
}

impl ReviewStanding {
    /// Says how far `build` was reviewed, whose newest review this is.
    pub(super) fn of(build: &Build, newest: Option<&Review>) -> Self {
        match newest {
            None => Self::Missing,
            Some(review) if is_of_its_end(review, build) => Self::Current,
            Some(_) => Self::Earlier,
        }
    }
}

/// Lists the reviews, of one idea or of all, the newest first.
pub async fn list(store: &Store, idea: Option<&Slug>) -> Result<Vec<Review>, ReadError> {
    let mut newest = Query::new().order_by("at").descending();
    if let Some(idea) = idea {
        newest = newest.equal("idea", idea.as_str());
    }
    Ok(records(store.list::<Review>(newest).await?))
}

/// Lists what the review of the end to which a build came holds against it; nothing while there is none.
pub async fn objections(store: &Store, build: &Build) -> Result<Vec<ObjectionView>, ReadError> {
    let newest = of_build(store, build.id).await?;
    Ok(objections_to(build, newest.as_ref()))
}

/// Lists what the newest review of a build holds against the end to which that came.
pub(super) fn objections_to(build: &Build, newest: Option<&Review>) -> Vec<ObjectionView> {
    let review = newest.filter(|review| is_of_its_end(review, build));
    review.map(ObjectionView::all).unwrap_or_default()
}

/// Says whether nobody has reviewed a build as it stands: its review is under way, nobody reviews at all, or it came to another
/// end since.
pub async fn is_unreviewed(store: &Store, build: &Build) -> Result<bool, ReadError> {
    let newest = of_build(store, build.id).await?;
    Ok(ReviewStanding::of(build, newest.as_ref()) != ReviewStanding::Current)
}

/// Says whether a review is of the end to which a build came: one that went on since has come to none yet, or to another.
fn is_of_its_end(review: &Review, build: &Build) -> bool {
    let saw = review.ended_at.unwrap_or(review.at);
    build.state.has_ended() && build.completed_at.is_none_or(|ended| saw >= ended)
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
