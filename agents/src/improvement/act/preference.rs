//! Takes what people answered to a question of what they like: it holds for all work from then on.

use ropewalk_knowledge::Draft;
use ropewalk_knowledge::record::record_beside;
use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::KnowledgeId;
use ropewalk_schemas::clip;
use ropewalk_schemas::knowledge::{KnowledgeItem, KnowledgeKind, KnowledgeState};
use ropewalk_schemas::payload::QuestionAnswered;
use ropewalk_schemas::question::{Question, QuestionKind};
use ropewalk_store::{ChangeSet, Query, Versioned};

use super::ledger::Ledger;

/// How sure it is: a person said so.
const SAID: f64 = 0.9;
/// The most that is kept of a question, and of its answer, in letters.
const LETTERS: usize = 1_000;
/// What names a question as the evidence of an item.
const EVIDENCE: &str = "question/";

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
    let said = question
        .answer_in_full()
        .unwrap_or_else(|| answer.answer.clone());
    let said = [question.text.as_str(), &said].map(in_one_line);
    let draft = Draft {
        kind: KnowledgeKind::Preference,
        content: said.map(|text| clip::line(&text, LETTERS)).join(" "),
        globs: Vec::new(),
        action: None,
        topics: Vec::new(),
        confidence: SAID,
        execution: question.id.to_string(),
        idea: answer.idea_slug.clone(),
        evidence: vec![format!("{EVIDENCE}{}", question.id)],
        discovered_by: context.source().clone(),
        from_person: true,
    };
    let (id, now) = (KnowledgeId(context.ids.next()), context.now());
    // Answers to two questions may be alike and say opposite things: only one to the same question is in the way.
    let known = earlier(context, &question).await?;
    let mut ledger = Ledger::open([]);
    ledger.record(record_beside(known.as_ref(), draft, id, now));
    ledger.close(&mut changes, context);
    Ok(changes)
}

/// Finds what holds of the answers to the same question.
async fn earlier(
    context: &Context,
    question: &Question,
) -> Result<Option<Versioned<KnowledgeItem>>, AgentError> {
    let asked = in_one_line(&question.text);
    let begins = clip::line(&asked, LETTERS);
    let query = Query::new()
        .equal("kind", "preference")
        .equal("state", KnowledgeState::Confirmed.as_str());
    for item in context.store.list::<KnowledgeItem>(query).await? {
        if !item.content.starts_with(&begins) {
            continue;
        }
        let of = item.evidence.iter();
        for id in of.filter_map(|evidence| evidence.strip_prefix(EVIDENCE)) {
            let before = context.store.get::<Question>(id).await?;
            if before.is_some_and(|before| in_one_line(&before.text) == asked) {
                return Ok(Some(item));
            }
        }
    }
    Ok(None)
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
