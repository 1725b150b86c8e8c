//! Takes what people answered to a question of what they like: it holds for all work from then on.

use ropewalk_knowledge::record::in_place_of;
use ropewalk_knowledge::{Draft, record};
use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::KnowledgeId;
use ropewalk_schemas::knowledge::{KnowledgeItem, KnowledgeKind, KnowledgeState};
use ropewalk_schemas::payload::QuestionAnswered;
use ropewalk_schemas::question::{Question, QuestionKind};
use ropewalk_store::{ChangeSet, Query, Versioned};

use super::ledger::Ledger;

/// How sure it is: a person said so.
const SAID: f64 = 0.9;
/// The longest that is kept, in letters.
const LETTERS: usize = 2_000;

/// Records the answer, in place of an earlier one to the same question.
pub(super) async fn answered(
    answer: &QuestionAnswered,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    let store = &context.store;
    let question = store
        .get::<Question>(&answer.question_id.to_string())
        .await?;
    let Some(question) = question.filter(|question| question.kind == QuestionKind::Preference)
    else {
        return Ok(changes);
    };
    let asked = in_one_line(&question.text);
    let said = format!("{asked} {}", in_one_line(&answer.answer));
    let draft = Draft {
        kind: KnowledgeKind::Preference,
        content: said.chars().take(LETTERS).collect(),
        globs: Vec::new(),
        action: None,
        topics: Vec::new(),
        confidence: SAID,
        execution: question.id.to_string(),
        idea: answer.idea_slug.clone(),
        evidence: vec![format!("question/{}", question.id)],
        discovered_by: context.source().clone(),
        from_person: true,
    };
    let (id, now) = (KnowledgeId(context.ids.next()), context.now());
    let recorded = match earlier(context, &format!("{asked} ")).await? {
        // Two answers to one question are alike and not the same: the newest holds.
        Some(known) if known.content != draft.content => in_place_of(&known, draft, id, now),
        _ => record(store, draft, id, now).await?,
    };
    let mut ledger = Ledger::open([]);
    ledger.record(recorded);
    ledger.close(&mut changes, context);
    Ok(changes)
}

/// Finds what holds of the answers to the same question.
async fn earlier(
    context: &Context,
    asked: &str,
) -> Result<Option<Versioned<KnowledgeItem>>, AgentError> {
    let query = Query::new()
        .equal("kind", "preference")
        .equal("state", KnowledgeState::Confirmed.as_str());
    let known = context.store.list::<KnowledgeItem>(query).await?;
    let mut same = known.into_iter();
    Ok(same.find(|item| item.content.starts_with(asked)))
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
