//! Reviews ideations and specifications: by counting, without a model.

use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::idea::{Author, Message, Session};
use ropewalk_schemas::payload::{IdeationCompleted, SpecGenerated};
use ropewalk_schemas::review::{Divergence, DivergenceClass, Review, ReviewKind};
use ropewalk_schemas::specification::Revision;
use ropewalk_schemas::{ReviewId, Slug, Subject};
use ropewalk_store::{ChangeSet, Query, Versioned, revision_key};

use super::completed;
use crate::improvement::context::{self, named};

/// Names the revision among the metrics, so that each gets one review.
const REVISION: &str = "revision";

/// Reviews a completed ideation, once.
pub(super) async fn ideation(
    ended: &IdeationCompleted,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    let idea = &ended.idea_slug;
    let earlier = context::reviews(&context.store, ReviewKind::Ideation, idea, None).await?;
    let session = ended.session_id.to_string();
    let Some(session) = context.store.get::<Session>(&session).await? else {
        return Ok(changes);
    };
    if !earlier.is_empty() {
        return Ok(changes);
    }
    let query = Query::new().equal("session", session.id.to_string());
    let messages = context.store.list::<Message>(query).await?;
    let of = |author: Author| count(messages.iter().filter(|row| row.author == author).count());
    let signals = &session.signals;
    let minutes = (session.updated_at - session.created_at).num_seconds();
    let metrics = named([
        ("confidence", ended.confidence),
        ("messages_of_person", of(Author::Person)),
        ("messages_of_agent", of(Author::Agent)),
        ("artifacts", count(signals.artifacts.len())),
        ("decisions", count(signals.decisions.len())),
        ("risks", count(signals.risks.len())),
        (
            "minutes",
            f64::from(i32::try_from(minutes).unwrap_or(i32::MAX)) / 60.0,
        ),
    ]);
    let review = Review {
        metrics,
        ..empty(context, ReviewKind::Ideation, idea)
    };
    completed(&mut changes, context, Subject::idea(idea), &review, 0);
    Ok(changes)
}

/// Reviews a revision of a specification, once.
pub(super) async fn specification(
    made: &SpecGenerated,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    let (idea, spec) = (&made.idea_slug, made.spec_id);
    let kind = ReviewKind::Specification;
    let earlier = context::reviews(&context.store, kind, idea, Some(spec)).await?;
    let number = f64::from(made.revision);
    let known = |review: &Review| {
        let revision = review.metrics.get(REVISION);
        revision.is_some_and(|revision| (revision - number).abs() < 0.5)
    };
    let key = revision_key(spec, made.revision);
    let Some(revision) = context.store.get::<Revision>(&key).await? else {
        return Ok(changes);
    };
    if earlier.iter().any(known) {
        return Ok(changes);
    }
    let metrics = named([
        (REVISION, number),
        ("tasks", count(revision.tasks.len())),
        ("requirements", count(revision.document.requirements.len())),
        ("warnings", count(revision.validation.len())),
        ("gotchas_injected", f64::from(made.gotchas_injected)),
    ]);
    let review = Review {
        spec: Some(spec),
        metrics,
        divergences: uncovered(&revision),
        ..empty(context, kind, idea)
    };
    completed(
        &mut changes,
        context,
        Subject::specification(spec),
        &review,
        0,
    );
    Ok(changes)
}

/// Lists the requirements that no task names.
fn uncovered(revision: &Versioned<Revision>) -> Vec<Divergence> {
    let named: Vec<_> = revision
        .tasks
        .iter()
        .flat_map(|task| task.requirements.iter().filter_map(|line| line.id.as_ref()))
        .collect();
    let requirements = revision.document.requirements.iter();
    requirements
        .filter(|requirement| !named.contains(&&requirement.id))
        .map(|requirement| Divergence {
            class: if requirement.priority == "must" {
                DivergenceClass::MissedRequirement
            } else {
                DivergenceClass::IntentionalSkip
            },
            file: None,
            task: None,
            requirement: Some(requirement.id.clone()),
            planned: requirement.text.clone(),
            actual: "no task names it".to_owned(),
        })
        .collect()
}

fn empty(context: &Context, kind: ReviewKind, idea: &Slug) -> Review {
    Review {
        id: ReviewId(context.ids.next()),
        kind,
        idea: idea.clone(),
        build: None,
        spec: None,
        gotchas: Vec::new(),
        patterns: Vec::new(),
        divergences: Vec::new(),
        metrics: std::collections::BTreeMap::new(),
        notes: Vec::new(),
        ended_at: None,
        head: None,
        at: context.now(),
    }
}

fn count(length: usize) -> f64 {
    f64::from(u32::try_from(length).unwrap_or(u32::MAX))
}
