//! Reviews as people see them: what came of a build, and what was learned from it.

use ropewalk_schemas::build::Build;
use ropewalk_schemas::clip;
use ropewalk_schemas::knowledge::KnowledgeItem;
use ropewalk_schemas::review::{Divergence, DivergenceClass, Review};
use ropewalk_schemas::task::Task;
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
    /// How many tasks its build has, of which it counts shares: for eyes alone.
    #[serde(skip)]
    pub tasks: usize,
}

impl ReviewView {
    /// Tells what was measured, a line each.
    pub fn measures(&self) -> Vec<String> {
        let metrics = self.review.metrics.iter();
        let told = metrics.map(|(name, value)| measure(name, *value, self.tasks));
        told.collect()
    }
}

/// Tells a measure in words; one that has none here, by its name.
fn measure(name: &str, value: f64, tasks: usize) -> String {
    let share = || format!("{:.0} %", value * 100.0);
    let minutes = || format!("{} min", figure(value));
    let (words, told) = match name {
        "first_pass_success" => {
            let told = part_of(value, tasks).unwrap_or_else(share);
            ("tasks that passed at the first try", told)
        }
        "gotcha_effectiveness" => (
            "tasks that carried lessons and passed at the first try",
            share(),
        ),
        "gotcha_prevented_failure" => ("failures that lessons prevented", figure(value)),
        "build_duration_minutes" => ("from beginning to end", minutes()),
        "working_minutes" => ("worked", minutes()),
        "failed_attempts" => ("attempts that failed", figure(value)),
        "confidence" => ("confidence", share()),
        "messages_of_person" => ("messages of the person", figure(value)),
        "messages_of_agent" => ("messages of the agent", figure(value)),
        "minutes" => ("talked", minutes()),
        "gotchas_injected" => ("lessons told to tasks", figure(value)),
        name => return format!("{}: {}", name.replace('_', " "), figure(value)),
    };
    format!("{words}: {told}")
}

/// Tells a share of tasks as counts, where it is one.
fn part_of(share: f64, tasks: usize) -> Option<String> {
    let count = share * f64::from(u32::try_from(tasks).ok()?);
    let is_count = tasks > 0 && (count - count.round()).abs() < 1e-6;
    is_count.then(|| format!("{count:.0} of {tasks}"))
}

/// Tells a number as people write it.
fn figure(value: f64) -> String {
    let told = format!("{value:.1}");
    told.strip_suffix(".0").unwrap_or(&told).to_owned()
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
    let tasks = match review.build {
        Some(build) => {
            let of_build = Query::new().equal("build", build.to_string());
            store.list::<Task>(of_build).await?.len()
        }
        None => 0,
    };
    Ok(ReviewView {
        review,
        lessons,
        tasks,
    })
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

#[cfg(test)]
mod tests {
    use super::measure;

    #[test]
    fn what_was_measured_is_told_in_words() {
        let rows = [
            (
                "first_pass_success",
                0.75,
                4,
                "tasks that passed at the first try: 3 of 4",
            ),
            (
                "first_pass_success",
                1.0 / 3.0,
                3,
                "tasks that passed at the first try: 1 of 3",
            ),
            // Its tasks are others than those that were counted.
            (
                "first_pass_success",
                0.5,
                3,
                "tasks that passed at the first try: 50 %",
            ),
            (
                "first_pass_success",
                0.5,
                0,
                "tasks that passed at the first try: 50 %",
            ),
            (
                "gotcha_effectiveness",
                0.5,
                4,
                "tasks that carried lessons and passed at the first try: 50 %",
            ),
            (
                "gotcha_prevented_failure",
                2.0,
                4,
                "failures that lessons prevented: 2",
            ),
            (
                "build_duration_minutes",
                12.52,
                4,
                "from beginning to end: 12.5 min",
            ),
            ("failed_attempts", 10.0, 4, "attempts that failed: 10"),
            ("of_another_day", 1.26, 4, "of another day: 1.3"),
        ];
        for (name, value, tasks, told) in rows {
            assert_eq!(measure(name, value, tasks), told);
        }
    }
}
