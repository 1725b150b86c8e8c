//! Takes the reason for which a person rejected a specification, as a candidate for what people want here.

use ropewalk_knowledge::{Draft, record};
use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::knowledge::KnowledgeKind;
use ropewalk_schemas::payload::SpecRejected;
use ropewalk_schemas::{ComponentName, KnowledgeId};
use ropewalk_store::ChangeSet;

use super::ledger::Ledger;

/// The confidence of one reason: other specifications have to be rejected for it before it is more than a candidate.
const ONCE: f64 = 0.6;
/// What such lessons are about.
const TOPIC: &str = "specification";

/// Records the reason; what the writer itself gave up on is no word of a person.
pub(super) async fn rejected(
    rejected: &SpecRejected,
    source: &ComponentName,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    let reason = rejected.reason.trim();
    if reason.is_empty() || rejected.rejected_by == source.as_str() {
        return Ok(changes);
    }
    let draft = Draft {
        kind: KnowledgeKind::Preference,
        content: reason.to_owned(),
        globs: Vec::new(),
        action: None,
        topics: vec![TOPIC.to_owned()],
        confidence: ONCE,
        // Seen again in another specification it counts as another time.
        execution: rejected.spec_id.to_string(),
        idea: Some(rejected.idea_slug.clone()),
        evidence: vec![format!("spec/{}", rejected.spec_id)],
        discovered_by: context.source().clone(),
        from_person: false,
    };
    let mut ledger = Ledger::open([]);
    let id = KnowledgeId(context.ids.next());
    ledger.record(record(&context.store, draft, id, context.now()).await?);
    ledger.close(&mut changes, context);
    Ok(changes)
}
