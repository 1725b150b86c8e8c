//! Knows the builds beside a reviewed one: that which a later revision goes on with, and what the review before found.

use std::collections::BTreeSet;

use ropewalk_schemas::build::{Build, StopCause};
use ropewalk_schemas::review::{Divergence, DivergenceClass, Review};
use ropewalk_schemas::specification::Revision;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{BuildId, RequirementId, TaskId};
use ropewalk_store::{Query, ReadError, Store, revision_key};

use super::{records, reviews_of};

/// The build that goes on from one which its revision ended early.
pub(in crate::improvement) struct Successor {
    pub(in crate::improvement) build: BuildId,
    pub(in crate::improvement) revision: u32,
    /// What its revision asks for.
    tasks: BTreeSet<TaskId>,
}

impl Successor {
    /// Loads the build for which `build` was ended; nothing where none ended it.
    pub(super) async fn load(store: &Store, build: &Build) -> Result<Option<Self>, ReadError> {
        if build.stop != Some(StopCause::Amended) {
            return Ok(None);
        }
        let of_spec = Query::new()
            .equal("spec", build.spec.to_string())
            .order_by("created_at")
            .descending();
        let builds = records(store.list::<Build>(of_spec).await?);
        let Some(next) = builds
            .into_iter()
            .find(|next| next.continues == Some(build.id))
        else {
            return Ok(None);
        };
        let key = revision_key(next.spec, next.revision);
        let revision = store.get::<Revision>(&key).await?;
        let tasks = revision.iter().flat_map(|revision| &revision.tasks);
        Ok(Some(Self {
            build: next.id,
            revision: next.revision,
            tasks: tasks.map(|task| task.id.clone()).collect(),
        }))
    }

    /// Says whether it goes on with a task of the build before.
    pub(in crate::improvement) fn goes_on_with(&self, task: &Task) -> bool {
        task.state != TaskState::Complete && self.tasks.contains(&task.id)
    }

    /// Says whether a difference is about what a build that was ended early had no time to do.
    pub(in crate::improvement) fn excuses(found: &Divergence, tasks: &[Task]) -> bool {
        let mut unfinished = tasks
            .iter()
            .filter(|task| task.state != TaskState::Complete);
        let is_about = |task: &Task| {
            let lines = task.block.requirements.iter();
            let mut wanted = lines.filter_map(|line| line.id.as_ref());
            let asks = |id: &RequirementId| wanted.any(|one| one == id);
            let of_task = found.task.as_ref() == Some(&task.id);
            of_task || (found.task.is_none() && found.requirement.as_ref().is_some_and(asks))
        };
        found.class == DivergenceClass::MissedRequirement && unfinished.any(is_about)
    }
}

/// Loads the review before the one of `build`, whose own are `before`: of an earlier end of it, else of the build that it goes on
/// from.
pub(super) async fn former(
    store: &Store,
    build: &Build,
    before: &[Review],
) -> Result<Option<Review>, ReadError> {
    let newest = |reviews: &[Review]| reviews.iter().max_by_key(|review| review.at).cloned();
    match (newest(before), build.continues) {
        (Some(own), _) => Ok(Some(own)),
        (None, Some(continued)) => Ok(newest(&reviews_of(store, continued).await?)),
        (None, None) => Ok(None),
    }
}
