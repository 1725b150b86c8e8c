//! Puts a refused key before people, and has it tried again on their word.

use std::collections::BTreeMap;

use ropewalk_config::Trigger;
use ropewalk_config::questions::choice::ProviderKeyRefused;
use ropewalk_engine::outages;
use ropewalk_orchestrator::questions::QuestionRequest;
use ropewalk_orchestrator::{AgentError, Context, questions};
use ropewalk_schemas::outage::{Outage, OutageClass};
use ropewalk_schemas::payload::{ProviderDown, QuestionAnswered};
use ropewalk_schemas::question::{About, Question};
use ropewalk_store::ChangeSet;

use crate::pm::{PmOptions, context};

/// Asks about a refused key, once; an outage that ends by itself is nobody's to decide.
pub(super) async fn away(
    options: &PmOptions,
    alert: &ProviderDown,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let OutageClass::Key { variable } = &alert.class else {
        return close(
            &alert.provider,
            "the provider does not answer at all",
            context,
        )
        .await;
    };
    let mut changes = ChangeSet::new();
    if outages::standing(&context.store, &alert.provider)
        .await?
        .is_none()
    {
        return Ok(changes);
    }
    let values = BTreeMap::from([
        ("provider", alert.provider.clone()),
        ("variable", variable.clone()),
        ("message", alert.error.clone()),
    ]);
    let draft = options
        .templates
        .render(Trigger::ProviderKeyRefused, &values);
    let asking = QuestionRequest {
        topic: Some(alert.provider.clone()),
        ..QuestionRequest::of(draft.map_err(AgentError::permanent)?, About::Nothing, None)
    };
    questions::ask(&mut changes, context, &options.deadlines, asking).await?;
    Ok(changes)
}

/// Closes the question about a provider that answers again.
pub(super) async fn back(cause: &str, context: &Context) -> Result<ChangeSet, AgentError> {
    match Outage::provider_of(cause) {
        Some(provider) => close(provider, "the provider answers again", context).await,
        None => Ok(ChangeSet::new()),
    }
}

async fn close(provider: &str, why: &str, context: &Context) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    for question in context::open_key_questions(&context.store, provider).await? {
        questions::supersede(&mut changes, context, &question, why);
    }
    Ok(changes)
}

/// Has the provider looked at again.
pub(super) async fn answered(
    answer: &QuestionAnswered,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    if ProviderKeyRefused::of(answer.choice.as_ref()).is_none() {
        return Ok(changes);
    }
    let key = answer.question_id.to_string();
    let question = context.store.get::<Question>(&key).await?;
    if let Some(provider) = question.and_then(|question| question.record.topic) {
        let now = context.now();
        outages::look_again(&mut changes, &context.store, &provider, now).await?;
    }
    Ok(changes)
}
