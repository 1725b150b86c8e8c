//! Tells people once a week what was learned.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use ropewalk_config::Trigger;
use ropewalk_orchestrator::questions;
use ropewalk_orchestrator::questions::QuestionRequest;
use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::clip;
use ropewalk_schemas::knowledge::{KnowledgeItem, KnowledgeKind, KnowledgeState};
use ropewalk_schemas::question::About;
use ropewalk_store::{ChangeSet, Query};

use crate::improvement::ImprovementOptions;

/// So much of the top lesson is told.
const LESSON_LETTERS: usize = 300;

/// Tells what the week has taught; a week that taught nothing is not worth a message.
pub(super) async fn summary(
    options: &ImprovementOptions,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    let since = context.now() - TimeDelta::days(7);
    let items = context.store.list::<KnowledgeItem>(Query::new()).await?;
    let usable = || items.iter().filter(|row| row.is_usable());
    let new = || usable().filter(|row| row.created_at >= since);
    let of = |kind: KnowledgeKind| new().filter(|row| row.kind == kind).count();
    let promoted = usable()
        .filter(|row| row.state == KnowledgeState::Promoted && row.updated_at >= since)
        .count();
    let Some(top) = new().max_by(|a, b| a.confidence.total_cmp(&b.confidence)) else {
        return Ok(changes);
    };
    let values = BTreeMap::from([
        ("pattern_count", of(KnowledgeKind::Pattern).to_string()),
        ("gotcha_count", of(KnowledgeKind::Gotcha).to_string()),
        ("total_entries", usable().count().to_string()),
        ("conventions_file", "Conventions file".to_owned()),
        ("conventions_updates", promoted.to_string()),
        (
            "top_learning",
            clip::letters(&top.content, LESSON_LETTERS).into_owned(),
        ),
    ]);
    let draft = options.templates.render(Trigger::WeeklySummary, &values);
    let draft = draft.map_err(AgentError::permanent)?;
    let asking = QuestionRequest::of(draft, About::Nothing, None);
    questions::ask(&mut changes, context, &options.deadlines, asking).await?;
    Ok(changes)
}
