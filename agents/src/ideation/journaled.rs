//! Reads what a model said at earlier calls out of the journal.

use ropewalk_engine::llm::Reply as ModelReply;
use ropewalk_orchestrator::AgentError;
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_store::Store;

use super::context::MessageContext;
use super::{decide, prompt, reply};

/// Says whether the answer before recorded the brief for sure, so that who ends the conversation right after it is owed no other.
pub(super) async fn brief(store: &Store, heard: &MessageContext) -> Result<bool, AgentError> {
    let before = heard.recent.iter().rev().nth(1);
    let Some(asked) = before.and_then(|before| before.answers) else {
        return Ok(false);
    };
    let replies = replies(store, &prompt::journal_key(asked)).await?;
    let submitted = replies.iter().flat_map(ModelReply::tool_uses);
    let submitted = submitted.filter(|call| call.name == prompt::SUBMIT);
    // What was sent back before it holds no more.
    let taken = submitted
        .filter_map(|call| reply::read(&call.input).ok())
        .last();
    Ok(taken.is_some_and(|reply| decide::records_the_brief(&reply)))
}

/// Finds the first words of a model that never managed to submit: an answer is worth more than its form. What it said
/// while it looked around counts only when it said nothing after.
pub(super) async fn plain_words(
    store: &Store,
    journal_key: &str,
) -> Result<Option<String>, AgentError> {
    let mut aside = None;
    for reply in replies(store, journal_key).await? {
        let submitted = reply
            .tool_uses()
            .filter(|call| call.name == prompt::SUBMIT)
            .find_map(|call| call.input["text"].as_str().map(str::to_owned));
        let spoken = Some(reply.text()).filter(|text| !text.trim().is_empty());
        match spoken.or(submitted) {
            Some(words) if goes_on(called(&reply)) => aside = Some(words),
            Some(words) => return Ok(Some(words)),
            None => {}
        }
    }
    Ok(aside)
}

fn called(reply: &ModelReply) -> impl Iterator<Item = &str> {
    reply.tool_uses().map(|call| call.name.as_str())
}

/// Says whether a model that calls these tools looks around before it answers.
pub(super) fn goes_on<'n>(calls: impl Iterator<Item = &'n str>) -> bool {
    let mut calls = calls.peekable();
    calls.peek().is_some() && calls.all(|name| name != prompt::SUBMIT)
}

/// Returns the replies of a job in the order of its turns.
async fn replies(store: &Store, journal_key: &str) -> Result<Vec<ModelReply>, AgentError> {
    let mut replies = Vec::new();
    for turn in 1..=prompt::TURNS {
        let key = format!("{journal_key}/{turn}");
        let Some(call) = store.get::<ModelCall>(&key).await? else {
            break;
        };
        replies.push(serde_json::from_value(call.record.reply).map_err(AgentError::permanent)?);
    }
    Ok(replies)
}
