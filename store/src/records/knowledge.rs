//! Rows of knowledge items, their uses, and reviews.

use ropewalk_schemas::knowledge::{Injection, KnowledgeItem, KnowledgeKind};
use ropewalk_schemas::review::{Review, ReviewKind};
use ropewalk_schemas::{KnowledgeId, SpecId, TaskId};

use super::record;

/// Returns the key of the use of an item in a task.
pub fn injection_key(item: KnowledgeId, spec: SpecId, task: &TaskId) -> String {
    format!("{item}/{spec}/{task}")
}

const fn kind(kind: KnowledgeKind) -> &'static str {
    match kind {
        KnowledgeKind::Gotcha => "gotcha",
        KnowledgeKind::Pattern => "pattern",
        KnowledgeKind::Decision => "decision",
        KnowledgeKind::Convention => "convention",
        KnowledgeKind::Preference => "preference",
        KnowledgeKind::Fact => "fact",
    }
}

const fn review_kind(kind: ReviewKind) -> &'static str {
    match kind {
        ReviewKind::Build => "build",
        ReviewKind::Ideation => "ideation",
        ReviewKind::Specification => "specification",
    }
}

record!(KnowledgeItem, "knowledge", |item| item.id.to_string(), {
    "kind": text = kind(item.kind),
    "state": text = item.state,
    "updated_at": integer = item.updated_at,
});

record!(
    Injection,
    "injections",
    |injection| injection_key(injection.item, injection.spec, &injection.task),
    {
        "item": text = injection.item,
        "build": text = injection.build,
        "spec": text = injection.spec,
        "task": text = &injection.task,
        "at": integer = injection.at,
    }
);

record!(Review, "reviews", |review| review.id.to_string(), {
    "kind": text = review_kind(review.kind),
    "idea": text = &review.idea,
    "build": text = review.build,
    "spec": text = review.spec,
    "at": integer = review.at,
});
