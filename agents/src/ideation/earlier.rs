//! Brings back what was looked at for the earlier answers of a conversation: a model that has read a file need not read
//! it again at the next message.

use ropewalk_engine::Engine;
use ropewalk_engine::llm::{Block, Message as ModelMessage};
use ropewalk_orchestrator::AgentError;
use ropewalk_schemas::idea::Author;

use super::context::MessageContext;
use super::prompt::{self, EarlierTurns, Surroundings};
use crate::failure;

/// So many bytes of results are brought back. Beyond it all that came before goes at once: one by one would let each request
/// begin in another way, and a provider keep none of it.
const RESULT_BYTES: usize = 128 * 1024;
/// What the call is answered that ended an earlier answer.
const TAKEN: &str = "said and recorded";

/// Finds the turns of earlier answers in the journal, and makes the results of their calls anew: they show the repository as
/// it is now. What is in no journal any more is left out.
pub(super) async fn turns(
    engine: &Engine,
    heard: &MessageContext,
    around: &Surroundings,
) -> Result<EarlierTurns, AgentError> {
    let (mut earlier, mut bytes) = (EarlierTurns::new(), 0);
    let answered = heard
        .recent
        .iter()
        .filter(|message| message.author == Author::Agent);
    for message in answered.filter_map(|message| message.answers) {
        let job = prompt::exchange(heard, around, message);
        let recalled = engine.recall(&job).await;
        let Some(recalled) = recalled.map_err(|error| failure::of_job(&error))? else {
            continue;
        };
        let turns = recalled.answered(TAKEN);
        bytes += result_bytes(&turns);
        if bytes > RESULT_BYTES {
            earlier.clear();
            bytes = result_bytes(&turns);
        }
        earlier.insert(message, turns);
    }
    Ok(earlier)
}

fn result_bytes(turns: &[ModelMessage]) -> usize {
    let blocks = turns.iter().flat_map(|turn| &turn.blocks);
    blocks
        .map(|block| match block {
            Block::ToolResult { content, .. } => content.len(),
            _ => 0,
        })
        .sum()
}
