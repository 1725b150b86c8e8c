//! Says how a rehearsal went, from the store alone.

use std::collections::BTreeMap;

use ropewalk_desk::views::why;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::idea::{Idea, Session};
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_schemas::review::{Review, ReviewKind};
use ropewalk_schemas::specification::{Revision, SpecState, Specification};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{BuildId, CommitId, ContentHash, ReviewId, Slug, SpecId};
use ropewalk_store::{Query, ReadError, Store, revision_key};
use serde::Serialize;

/// One idea of the rehearsal.
#[derive(Debug, Clone, Serialize)]
pub(super) struct IdeaReport {
    /// Its name.
    pub(super) slug: Slug,
    /// The phases its session went through.
    phases: Vec<String>,
    /// Its specification.
    spec: Option<SpecReport>,
    /// How far its specification has come; not part of the report.
    #[serde(skip)]
    pub(super) spec_state: Option<SpecState>,
    /// Its build.
    pub(super) build: Option<BuildReport>,
    questions: QuestionCounts,
    /// The review of its build.
    pub(super) review: Option<ReviewReport>,
}

#[derive(Debug, Clone, Serialize)]
struct SpecReport {
    id: SpecId,
    revision: u32,
    hash: Option<ContentHash>,
    tasks: usize,
    gotchas_injected: usize,
}

/// A build of the rehearsal.
#[derive(Debug, Clone, Serialize)]
pub(super) struct BuildReport {
    id: BuildId,
    /// The branch it landed on.
    pub(super) branch: String,
    /// How far it has come.
    pub(super) state: BuildState,
    /// Why it does not go on, as it or the first of its tasks says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    tasks: TaskCounts,
    /// The tries of all its tasks.
    pub(super) attempts: u32,
    /// One commit for each landed task, in landing order.
    pub(super) commits: Vec<CommitId>,
}

#[derive(Debug, Clone, Serialize)]
struct TaskCounts {
    complete: usize,
    failed: usize,
    skipped: usize,
}

#[derive(Debug, Clone, Default, Serialize)]
struct QuestionCounts {
    asked: usize,
    answered: usize,
    defaulted: usize,
}

/// A review of the rehearsal.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ReviewReport {
    id: ReviewId,
    gotchas: usize,
    patterns: usize,
    metrics: BTreeMap<String, f64>,
}

/// Reports on one idea; `None` before it has begun.
pub(super) async fn idea(store: &Store, slug: &Slug) -> Result<Option<IdeaReport>, ReadError> {
    let Some(idea) = store.get::<Idea>(slug.as_str()).await? else {
        return Ok(None);
    };
    let (spec, spec_state) = specification(store, slug).await?.unzip();
    let phases = store
        .get::<Session>(&idea.session.to_string())
        .await?
        .map(|session| {
            session
                .phases
                .iter()
                .map(|entry| entry.phase.to_string())
                .collect()
        });
    Ok(Some(IdeaReport {
        slug: slug.clone(),
        phases: phases.unwrap_or_default(),
        spec,
        spec_state,
        build: build(store, slug).await?,
        questions: questions(store, slug).await?,
        review: review(store, slug).await?,
    }))
}

async fn specification(
    store: &Store,
    idea: &Slug,
) -> Result<Option<(SpecReport, SpecState)>, ReadError> {
    let of_idea = Query::new().equal("idea", idea.as_str());
    let Some(spec) = store.list::<Specification>(of_idea).await?.pop() else {
        return Ok(None);
    };
    let revision = store
        .get::<Revision>(&revision_key(spec.id, spec.revision))
        .await?;
    let tasks = revision
        .map(|revision| revision.record.tasks)
        .unwrap_or_default();
    let report = SpecReport {
        id: spec.id,
        revision: spec.revision,
        hash: spec.hash.clone(),
        tasks: tasks.len(),
        gotchas_injected: tasks.iter().map(|task| task.gotchas.len()).sum(),
    };
    Ok(Some((report, spec.state)))
}

async fn build(store: &Store, idea: &Slug) -> Result<Option<BuildReport>, ReadError> {
    let of_idea = Query::new().equal("idea", idea.as_str());
    let Some(build) = store.list::<Build>(of_idea).await?.pop() else {
        return Ok(None);
    };
    let of_build = Query::new().equal("build", build.id.to_string());
    let mut tasks = store.list::<Task>(of_build).await?;
    tasks.sort_by_key(|task| (task.completed_at, task.number));
    let reason = match build.state {
        BuildState::Succeeded => None,
        _ => build.reason.clone().or_else(|| {
            tasks
                .iter()
                .map(|task| why::reason(task))
                .find(|reason| !reason.is_empty())
        }),
    };
    let in_state = |state| tasks.iter().filter(|task| task.state == state).count();
    Ok(Some(BuildReport {
        id: build.id,
        branch: build.branch.clone(),
        state: build.state,
        reason,
        tasks: TaskCounts {
            complete: in_state(TaskState::Complete),
            failed: in_state(TaskState::Failed),
            skipped: in_state(TaskState::Skipped),
        },
        attempts: tasks.iter().map(|task| task.attempts).sum(),
        commits: tasks
            .iter()
            .filter_map(|task| task.commit.clone())
            .collect(),
    }))
}

async fn questions(store: &Store, idea: &Slug) -> Result<QuestionCounts, ReadError> {
    let of_idea = Query::new().equal("idea", idea.as_str());
    let mut counts = QuestionCounts::default();
    for question in store.list::<Question>(of_idea).await? {
        counts.asked += 1;
        counts.answered += usize::from(question.state == QuestionState::Answered);
        counts.defaulted += usize::from(question.state == QuestionState::Defaulted);
    }
    Ok(counts)
}

async fn review(store: &Store, idea: &Slug) -> Result<Option<ReviewReport>, ReadError> {
    let of_idea = Query::new().equal("idea", idea.as_str());
    let reviews = store.list::<Review>(of_idea).await?;
    Ok(reviews
        .into_iter()
        .find(|review| review.kind == ReviewKind::Build)
        .map(|review| ReviewReport {
            id: review.id,
            gotchas: review.gotchas.len(),
            patterns: review.patterns.len(),
            metrics: review.record.metrics,
        }))
}
