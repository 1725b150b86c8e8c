//! Reads the events of Responses.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::error::ModelError;
use crate::message::{Block, ToolUse};
use crate::reply::{Delta, Reply, StopReason, Usage};
use crate::wire::{Decoder, in_stream, size};

/// Collects one reply.
pub(super) struct Response {
    model: String,
    /// Who writes items that nobody else understands.
    provider: String,
    usage: Usage,
    refused: bool,
    blocks: BTreeMap<u64, Block>,
    content_bytes: u64,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Event {
    #[serde(rename = "response.output_item.added")]
    Added { item: Item },
    #[serde(rename = "response.output_text.delta")]
    Text { output_index: u64, delta: String },
    #[serde(rename = "response.refusal.delta")]
    Refusal { output_index: u64, delta: String },
    #[serde(rename = "response.function_call_arguments.delta")]
    Arguments { delta: String },
    #[serde(rename = "response.output_item.done")]
    Done { output_index: u64, item: Value },
    #[serde(rename = "response.completed", alias = "response.incomplete")]
    Ended { response: Ending },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item {
    FunctionCall {
        call_id: String,
        name: String,
        #[serde(default)]
        arguments: String,
    },
    /// Words, which came as deltas, or a kind that nothing here has a use for, such as reasoning.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Ending {
    model: Option<String>,
    status: Option<String>,
    incomplete_details: Option<IncompleteDetails>,
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct IncompleteDetails {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Counts {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    input_tokens_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
}

impl Response {
    pub(super) fn new(model: String, provider: String) -> Self {
        Self {
            model,
            provider,
            usage: Usage::default(),
            refused: false,
            blocks: BTreeMap::new(),
            content_bytes: 0,
        }
    }

    fn say(&mut self, index: u64, words: String) -> Vec<Delta> {
        if words.is_empty() {
            return Vec::new();
        }
        self.content_bytes += size(&words);
        let block = self.blocks.entry(index);
        if let Block::Text(text) = block.or_insert_with(|| Block::Text(String::new())) {
            text.push_str(&words);
        }
        vec![Delta::Text(words)]
    }

    /// Takes an item that is whole: a call, or what the model thought, which is kept if it can be given back.
    fn close(&mut self, index: u64, item: Value) -> Result<Vec<Delta>, ModelError> {
        if item["type"] == "reasoning" && item["encrypted_content"].is_string() {
            self.content_bytes += size(&item.to_string());
            let provider = self.provider.clone();
            let block = Block::Opaque {
                provider,
                data: item,
            };
            self.blocks.insert(index, block);
            return Ok(Vec::new());
        }
        let item = Item::deserialize(item)
            .map_err(|error| ModelError::malformed(format!("unknown item: {error}")))?;
        let Item::FunctionCall {
            call_id,
            name,
            arguments,
        } = item
        else {
            return Ok(Vec::new());
        };
        let call = ToolUse::parse(call_id, name, &arguments);
        self.blocks.insert(index, Block::ToolUse(call.clone()));
        Ok(vec![Delta::ToolUse(call)])
    }

    fn end(&mut self, response: Ending) -> Vec<Delta> {
        let mut deltas = Vec::new();
        if let Some(model) = response.model.filter(|model| !model.is_empty()) {
            self.model = model;
        }
        if let Some(counts) = response.usage {
            let cached = counts.input_tokens_details;
            let cached = cached.and_then(|details| details.cached_tokens);
            let cache_read_tokens = cached.unwrap_or_default();
            // The format counts cached tokens within the input.
            self.usage = Usage {
                input_tokens: counts.input_tokens.saturating_sub(cache_read_tokens),
                output_tokens: counts.output_tokens,
                cache_read_tokens,
                cache_write_tokens: 0,
            };
            deltas.push(Delta::Usage(self.usage));
        }
        let is_cut = response.status.as_deref() == Some("incomplete");
        let cut = response.incomplete_details.and_then(|cut| cut.reason);
        // Length is the reason that some servers leave unsaid.
        let cut = cut.or_else(|| is_cut.then(|| "max_output_tokens".to_owned()));
        let blocks: Vec<Block> = std::mem::take(&mut self.blocks).into_values().collect();
        let calls = blocks
            .iter()
            .any(|block| matches!(block, Block::ToolUse(_)));
        let stop = match cut.as_deref() {
            None if calls => StopReason::ToolUse,
            None if self.refused => StopReason::ContentFilter,
            None => StopReason::EndTurn,
            Some("max_output_tokens") => StopReason::MaxTokens,
            Some("content_filter") => StopReason::ContentFilter,
            Some(other) => StopReason::Other(other.to_owned()),
        };
        deltas.push(Delta::Done(Reply {
            blocks,
            stop,
            usage: self.usage,
            model: self.model.clone(),
        }));
        deltas
    }
}

impl Decoder for Response {
    fn event(&mut self, data: &str) -> Result<Vec<Delta>, ModelError> {
        // Some servers end every stream so.
        if data.trim() == "[DONE]" {
            return Err(ModelError::Truncated);
        }
        let value: Value = serde_json::from_str(data)
            .map_err(|error| ModelError::malformed(format!("event is no JSON: {error}")))?;
        let failed = value.get("response").and_then(in_stream);
        if let Some(error) = in_stream(&value).or(failed) {
            return Err(error);
        }
        let event = Event::deserialize(value)
            .map_err(|error| ModelError::malformed(format!("unknown event: {error}")))?;
        Ok(match event {
            Event::Added {
                item: Item::FunctionCall { call_id, name, .. },
            } => vec![Delta::ToolUseStarted { id: call_id, name }],
            Event::Text {
                output_index,
                delta,
            } => self.say(output_index, delta),
            Event::Refusal {
                output_index,
                delta,
            } => {
                self.refused = true;
                self.say(output_index, delta)
            }
            Event::Arguments { delta } => {
                self.content_bytes += size(&delta);
                Vec::new()
            }
            Event::Done { output_index, item } => self.close(output_index, item)?,
            Event::Ended { response } => self.end(response),
            Event::Added { .. } | Event::Other => Vec::new(),
        })
    }

    fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    fn settled(&self) -> bool {
        // Only the last event ends a response, and it comes at once.
        false
    }

    fn closed(&mut self) -> Result<Reply, ModelError> {
        Err(ModelError::Truncated)
    }
}

#[cfg(test)]
mod tests;
