//! What people want remembered.

pub use ropewalk_knowledge::decide::{LONGEST, LONGEST_TOPIC, MOST_NAMED};
use ropewalk_knowledge::{Draft, RecordOutcome, Refusal, record};
use ropewalk_orchestrator::Context;
use ropewalk_schemas::knowledge::KnowledgeKind;
use ropewalk_schemas::task::Action;
use ropewalk_schemas::{KnowledgeId, Slug, Subject};
use ropewalk_store::{CommitError, ReadError};

use crate::people::Person;

/// Something that a person knows.
#[derive(Debug, Clone, PartialEq)]
pub struct Remark {
    /// What it says, at most 2,000 characters.
    pub content: String,
    /// What it is.
    pub kind: KnowledgeKind,
    /// The files it applies to; none means all.
    pub globs: Vec<String>,
    /// The action it applies to; none means all.
    pub action: Option<Action>,
    /// What it is about.
    pub topics: Vec<String>,
    /// The idea it comes from.
    pub idea: Option<Slug>,
    /// How sure it is, 0 to 1.
    pub confidence: f64,
}

/// What came of a remark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemarkOutcome {
    /// It is a new item.
    Added(KnowledgeId),
    /// It was known already; counted again only where somebody else said it.
    SeenAgain {
        /// The item.
        item: KnowledgeId,
        /// Whether this counts as one more time.
        counted: bool,
    },
    /// It took the place of a weaker item.
    Superseded(KnowledgeId),
}

/// Says why a remark is not remembered.
#[derive(Debug, thiserror::Error)]
pub enum RemarkError {
    /// It cannot be remembered as it is.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Remembers something on the word of `person`, once.
pub async fn remember(
    context: &Context,
    remark: Remark,
    person: &Person,
) -> Result<RemarkOutcome, RemarkError> {
    let new = KnowledgeId(context.ids.next());
    let draft = draft(context, remark, person);
    let mut recorded = record(&context.store, draft, new, context.now()).await?;
    let remembered = match recorded.outcome {
        RecordOutcome::Refused(refusal) => return Err(refusal.into()),
        RecordOutcome::Added(id) => RemarkOutcome::Added(id),
        RecordOutcome::SeenAgain(item) => RemarkOutcome::SeenAgain {
            item,
            counted: !recorded.payloads.is_empty(),
        },
        RecordOutcome::Superseded { new, .. } => RemarkOutcome::Superseded(new),
    };
    for payload in recorded.payloads {
        let subject = Subject::knowledge(remembered.item());
        recorded.changes.emit(context.event(subject, payload));
    }
    context.store.commit(recorded.changes).await?;
    Ok(remembered)
}

impl RemarkOutcome {
    /// Returns the item that now holds it.
    pub const fn item(self) -> KnowledgeId {
        match self {
            Self::Added(item) | Self::SeenAgain { item, .. } | Self::Superseded(item) => item,
        }
    }
}

fn draft(context: &Context, remark: Remark, person: &Person) -> Draft {
    let by = format!("person/{}", person.name);
    Draft {
        kind: remark.kind,
        content: remark.content,
        globs: remark.globs,
        action: remark.action,
        topics: remark.topics,
        confidence: remark.confidence,
        execution: by.clone(),
        idea: remark.idea,
        evidence: vec![by],
        discovered_by: context.source().clone(),
        from_person: true,
    }
}
