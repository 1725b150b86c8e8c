//! Remembers something, once.

use chrono::{DateTime, Utc};
use ropewalk_schemas::knowledge::{KnowledgeItem, KnowledgeKind, KnowledgeState};
use ropewalk_schemas::payload::{KnowledgeRecorded, KnowledgeReinforced};
use ropewalk_schemas::{KnowledgeId, Payload};
use ropewalk_store::{ChangeSet, ReadError, Store, Versioned};

use crate::decide::{self, Duplicate, MOST_NAMED, Refusal};
use crate::draft::Draft;

/// So many known items are compared.
const CANDIDATES: u32 = 20;

/// Is what recording comes to.
#[derive(Debug, Clone)]
pub struct RecordResult {
    /// What is to be written; empty when nothing changes.
    pub changes: ChangeSet,
    /// What came of it.
    pub outcome: RecordOutcome,
    /// The events that belong to it.
    pub payloads: Vec<Payload>,
}

/// Says what came of a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordOutcome {
    /// It is a new item.
    Added(KnowledgeId),
    /// It was known, and is now seen once more.
    SeenAgain(KnowledgeId),
    /// It took the place of a weaker item.
    Superseded {
        /// The weaker item.
        old: KnowledgeId,
        /// The new item.
        new: KnowledgeId,
    },
    /// It is not worth remembering.
    Refused(Refusal),
}

impl RecordOutcome {
    /// Returns the item that now holds the lesson, unless it was refused.
    pub fn item(&self) -> Option<KnowledgeId> {
        match self {
            Self::Added(id) | Self::SeenAgain(id) | Self::Superseded { new: id, .. } => Some(*id),
            Self::Refused(_) => None,
        }
    }
}

/// Works out how to remember a draft; `id` is used if it becomes an item of its own.
pub async fn record(
    store: &Store,
    draft: Draft,
    id: KnowledgeId,
    now: DateTime<Utc>,
) -> Result<RecordResult, ReadError> {
    if let Some(refusal) = decide::refusal(&draft) {
        return Ok(RecordResult {
            changes: ChangeSet::new(),
            outcome: RecordOutcome::Refused(refusal),
            payloads: Vec::new(),
        });
    }
    let known = store.search_knowledge(&draft.content, CANDIDATES).await?;
    let new = draft.into_item(id, now);
    let items: Vec<KnowledgeItem> = known.iter().map(|row| row.record.clone()).collect();
    Ok(match decide::duplicate(&new, &items) {
        Duplicate::New => added(&new),
        Duplicate::SeenAgain(index) => seen_again(&known[index], &new, now),
        Duplicate::Supersedes(index) => in_place_of(&known[index], new, now),
    })
}

/// Records a draft beside what is `known` of exactly the same, and nothing that is merely alike: once more where both say
/// one thing, else in its place.
pub fn record_beside(
    known: Option<&Versioned<KnowledgeItem>>,
    draft: Draft,
    id: KnowledgeId,
    now: DateTime<Utc>,
) -> RecordResult {
    let new = draft.into_item(id, now);
    match known {
        None => added(&new),
        Some(known) if known.content == new.content => seen_again(known, &new, now),
        Some(known) => in_place_of(known, new, now),
    }
}

/// Puts a sighting in the place of what is known. What only a review supposes takes the place of nothing that models may be told.
fn in_place_of(
    known: &Versioned<KnowledgeItem>,
    new: KnowledgeItem,
    now: DateTime<Utc>,
) -> RecordResult {
    if known.may_be_told() && !new.may_be_told() {
        seen_again(known, &new, now)
    } else {
        superseding(known, new, now)
    }
}

fn added(new: &KnowledgeItem) -> RecordResult {
    let mut changes = ChangeSet::new();
    changes.insert(new);
    RecordResult {
        changes,
        outcome: RecordOutcome::Added(new.id),
        payloads: vec![announcement(new)],
    }
}

fn seen_again(
    known: &Versioned<KnowledgeItem>,
    new: &KnowledgeItem,
    now: DateTime<Utc>,
) -> RecordResult {
    let before = &known.record;
    let mut after = before.clone();
    learn(&mut after, new);
    if after.state == KnowledgeState::Candidate && confirms(new, &after) {
        after.state = KnowledgeState::Confirmed;
    }
    after.confidence = decide::after_sighting(&after);
    let mut changes = ChangeSet::new();
    let mut payloads = Vec::new();
    if after != *before {
        after.updated_at = now;
        changes.update(known, &after);
    }
    if after.occurrences() > before.occurrences() {
        payloads.push(Payload::KnowledgeReinforced(KnowledgeReinforced {
            item_id: before.id,
            from: before.confidence,
            to: after.confidence,
            reason: format!("seen in {} executions", after.occurrences()),
        }));
    }
    RecordResult {
        changes,
        outcome: RecordOutcome::SeenAgain(before.id),
        payloads,
    }
}

/// Says whether another sighting confirms a candidate: a person says just that, or the reviews of two builds supposed it, which nobody
/// else looks at again.
fn confirms(new: &KnowledgeItem, after: &KnowledgeItem) -> bool {
    let is_said = new.state == KnowledgeState::Confirmed && new.content == after.content;
    let is_lesson = matches!(after.kind, KnowledgeKind::Gotcha | KnowledgeKind::Pattern);
    let is_supposed = is_lesson && !after.may_be_told();
    is_said || is_supposed && after.occurrences() >= 2
}

fn superseding(
    known: &Versioned<KnowledgeItem>,
    mut new: KnowledgeItem,
    now: DateTime<Utc>,
) -> RecordResult {
    let old = &known.record;
    learn(&mut new, old);
    new.injections = old.injections;
    if old.state != KnowledgeState::Candidate {
        new.state = KnowledgeState::Confirmed;
    }
    let mut retired = old.clone();
    retired.state = KnowledgeState::Superseded;
    retired.superseded_by = Some(new.id);
    retired.updated_at = now;
    let mut changes = ChangeSet::new();
    changes.update(known, &retired).insert(&new);
    RecordResult {
        changes,
        outcome: RecordOutcome::Superseded {
            old: old.id,
            new: new.id,
        },
        payloads: vec![announcement(&new)],
    }
}

/// Adds to an item all that another sighting of the same lesson knows.
fn learn(item: &mut KnowledgeItem, other: &KnowledgeItem) {
    item.executions.extend(other.executions.iter().cloned());
    item.ideas.extend(other.ideas.iter().cloned());
    if other.globs.is_empty() {
        item.globs.clear();
    } else if !item.globs.is_empty() {
        extend(&mut item.globs, &other.globs);
    }
    if item.action != other.action {
        // Seen with two actions, it applies to all.
        item.action = None;
    }
    extend(&mut item.topics, &other.topics);
    extend(&mut item.evidence, &other.evidence);
}

fn extend(items: &mut Vec<String>, more: &[String]) {
    for text in more {
        if items.len() < MOST_NAMED && !items.contains(text) {
            items.push(text.clone());
        }
    }
}

fn announcement(item: &KnowledgeItem) -> Payload {
    Payload::KnowledgeRecorded(KnowledgeRecorded {
        item_id: item.id,
        kind: item.kind,
        content: item.content.clone(),
        confidence: item.confidence,
        idea_slug: item.ideas.first().cloned(),
    })
}
