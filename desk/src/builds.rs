//! What people want of builds: that they pause, go on or stop, how urgent they are, and what becomes of their tasks and
//! branches.

pub mod again;
pub mod landing;
pub mod named;
pub mod tasks;

use std::collections::BTreeMap;

use ropewalk_orchestrator::Context;
use ropewalk_schemas::attempt::{Attempt, AttemptState};
use ropewalk_schemas::build::{Build, BuildState, StopCause};
use ropewalk_schemas::illegal::{self, IllegalRequest};
use ropewalk_schemas::payload::{BuildPriority, BuildRequest};
use ropewalk_schemas::person::Right;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{BuildId, EventId, Payload, Priority, Slug, Subject, TaskId};
use ropewalk_store::{ChangeSet, CommitError, Query, ReadError, Store, Versioned};
use serde::Serialize;

use crate::length::{self, LengthError};
use crate::people::{PermissionError, Person};

/// Lists the builds that `build` goes on from, the newest first, back to the one whose ground was laid: one that gave way
/// before it began has nothing to go on from.
pub async fn forerunners(store: &Store, build: &Build) -> Result<Vec<Versioned<Build>>, ReadError> {
    let mut found = Vec::new();
    let mut next = build.continues;
    while let Some(id) = next {
        let Some(row) = store.get::<Build>(&id.to_string()).await? else {
            break;
        };
        next = row.continues.filter(|_| row.head.is_none());
        found.push(row);
    }
    Ok(found)
}

/// Selects the attempts of `build` and of those of its specification before it: a later revision keeps what landed in them, and
/// nobody tries that again.
pub async fn attempts_up_to(store: &Store, build: &Build) -> Result<Query, ReadError> {
    let of_spec = Query::new()
        .equal("spec", build.spec.to_string())
        .at_most("created_at", build.created_at);
    let builds = store.list::<Build>(of_spec).await?;
    Ok(Query::new().one_of("build", builds.iter().map(|build| build.id.to_string())))
}

/// Finds the attempts by which tasks landed, in `build` or in one before it as [`attempts_up_to`] selects them: the newest of each task,
/// whether anything was said of it or not.
pub async fn landed_up_to(
    store: &Store,
    build: &Build,
) -> Result<BTreeMap<TaskId, Attempt>, ReadError> {
    let landed = attempts_up_to(store, build)
        .await?
        .equal("state", AttemptState::Landed.as_str())
        .order_by("key");
    let landed = store.list::<Attempt>(landed).await?.into_iter();
    let landed = landed.map(|row| (row.task.clone(), row.into_inner()));
    Ok(landed.collect())
}

/// A wish about a whole build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Running tasks end, and no others begin.
    Pause,
    /// A paused, stopped or failed build goes on.
    Resume,
    /// It ends; what landed stays.
    Stop,
}

/// Says why a wish was refused.
#[derive(Debug, thiserror::Error)]
pub enum SteerError {
    /// The person may not do this.
    #[error(transparent)]
    Forbidden(#[from] PermissionError),
    /// Another build goes on with its work.
    #[error("build `{build}` was amended")]
    Continued {
        /// The build.
        build: BuildId,
        /// The one that goes on.
        next: BuildId,
    },
    /// Its idea was given up.
    #[error("build `{build}` has ended for good: the idea `{idea}` was abandoned")]
    Abandoned {
        /// The build.
        build: BuildId,
        /// The idea.
        idea: Slug,
    },
    /// The wish makes no sense in its state.
    #[error("build `{build}` is {state}: {why}")]
    State {
        /// The build.
        build: BuildId,
        /// Its state.
        state: BuildState,
        /// Why it makes no sense.
        why: &'static str,
    },
    /// It has no use for a priority.
    #[error("{}", .0.what())]
    Illegal(IllegalRequest),
    /// The reason is too long.
    #[error(transparent)]
    TooLong(#[from] LengthError),
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// No source of it: it says all of that itself, and how it is mended apart.
impl From<IllegalRequest> for SteerError {
    fn from(refused: IllegalRequest) -> Self {
        Self::Illegal(refused)
    }
}

/// What stopping a build comes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StopPreview {
    /// The build.
    pub build: BuildId,
    /// Its idea.
    pub idea: Slug,
    /// The tasks that are worked on, whose attempts end.
    pub interrupts: Vec<TaskId>,
    /// The tasks whose work has landed on its branch, and stays.
    pub landed: Vec<TaskId>,
}

impl Wish {
    /// Says why the wish makes no sense, if so.
    pub fn refusal(self, state: BuildState) -> Option<&'static str> {
        use BuildState::{Failed, Paused, Priming, Queued, Running, Stopped, Succeeded, Verifying};
        match (self, state) {
            (Self::Pause, Queued | Priming | Running | Verifying)
            | (Self::Resume, Paused | Stopped | Failed | Running)
            | (Self::Stop, Queued | Priming | Running | Paused | Verifying) => None,
            (Self::Pause, Paused) => Some("it stands still already"),
            (Self::Pause | Self::Stop, Succeeded | Failed | Stopped) => Some("it has ended"),
            (Self::Resume, Queued | Priming | Verifying) => Some("it goes on by itself"),
            (Self::Resume, Succeeded) => Some("it has reached its goal"),
        }
    }

    /// Returns whether the build has done what was wished.
    pub fn is_fulfilled(self, build: &Build) -> bool {
        match self {
            Self::Pause => build.pause_requested || build.state == BuildState::Paused,
            Self::Resume => build.state == BuildState::Running && !build.pause_requested,
            Self::Stop => build.state == BuildState::Stopped && !build.gives_way(),
        }
    }

    fn payload(self, request: BuildRequest) -> Payload {
        match self {
            Self::Pause => Payload::BuildPause(request),
            Self::Resume => Payload::BuildResume(request),
            Self::Stop => Payload::BuildStop(request),
        }
    }
}

/// Records what `person` wants of a build, for the build agent to do; returns the event that tells it so.
pub async fn steer(
    context: &Context,
    build: &Build,
    wish: Wish,
    person: &Person,
    reason: Option<String>,
) -> Result<EventId, SteerError> {
    admits(build, wish, person)?;
    length::said("the reason", reason.as_deref())?;
    let request = BuildRequest {
        build_id: build.id,
        requested_by: person.name.to_string(),
        reason,
    };
    let context = context.for_claim(build.correlation_id, Priority::URGENT);
    let mut changes = ChangeSet::new();
    let event = context.event(Subject::build(build.id), wish.payload(request));
    let id = event.id;
    changes.emit(event);
    context.store.commit(changes).await?;
    Ok(id)
}

/// Says what stopping `build` would come to, for somebody who may stop it, and changes nothing.
pub async fn preview_stop(
    store: &Store,
    build: &Build,
    person: &Person,
) -> Result<StopPreview, SteerError> {
    admits(build, Wish::Stop, person)?;
    let tasks = store.list::<Task>(Query::new().equal("build", build.id));
    let tasks = tasks.await?;
    let of = |wanted: fn(TaskState) -> bool| {
        let tasks = tasks.iter().filter(move |task| wanted(task.state));
        tasks.map(|task| task.id.clone()).collect()
    };
    Ok(StopPreview {
        build: build.id,
        idea: build.idea.clone(),
        interrupts: of(TaskState::is_active),
        landed: of(|state| state == TaskState::Complete),
    })
}

/// Refuses what makes no sense of a build, or what the person may not wish of it.
pub fn admits(build: &Build, wish: Wish, person: &Person) -> Result<(), SteerError> {
    person.demand(Right::Stop)?;
    // What still runs of a build that gives way can be stopped; the rest of it is another build's.
    let still_runs = wish == Wish::Stop && build.gives_way();
    if let Some(next) = build.continued_by.filter(|_| !still_runs) {
        return Err(SteerError::Continued {
            build: build.id,
            next,
        });
    }
    if build.stop == Some(StopCause::Abandoned) {
        return Err(SteerError::Abandoned {
            build: build.id,
            idea: build.idea.clone(),
        });
    }
    if let Some(why) = wish.refusal(build.state).filter(|_| !still_runs) {
        return Err(SteerError::State {
            build: build.id,
            state: build.state,
            why,
        });
    }
    Ok(())
}

/// Records how urgent a build is to be; what it waits for is ruled on anew.
pub async fn rank(
    context: &Context,
    build: &Build,
    priority: Priority,
    person: &Person,
) -> Result<(), SteerError> {
    illegal::rank(build)?;
    let context = context.for_claim(build.correlation_id, Priority::URGENT);
    let mut changes = ChangeSet::new();
    changes.emit(context.event(
        Subject::build(build.id),
        Payload::BuildPriority(BuildPriority {
            build_id: build.id,
            priority,
            requested_by: person.name.to_string(),
        }),
    ));
    context.store.commit(changes).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_refused_where_it_makes_no_sense() {
        let sensible = |wish: Wish| -> Vec<&str> {
            BuildState::ALL
                .iter()
                .filter(|state| wish.refusal(**state).is_none())
                .map(|state| state.as_str())
                .collect()
        };
        assert_eq!(
            sensible(Wish::Pause),
            ["queued", "priming", "running", "verifying"]
        );
        assert_eq!(
            sensible(Wish::Resume),
            ["running", "paused", "failed", "stopped"]
        );
        assert_eq!(
            sensible(Wish::Stop),
            ["queued", "priming", "running", "paused", "verifying"]
        );
    }
}
