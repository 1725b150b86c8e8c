//! Reads the chunks of chat completions, with the liberties that compatible servers take.

use serde::Deserialize;
use serde_json::Value;

use crate::error::ModelError;
use crate::message::{Block, ToolUse};
use crate::reply::{Delta, Reply, StopReason, Usage};
use crate::wire::{Decoder, in_stream, size};

/// Collects one reply.
pub(super) struct Completion {
    id: String,
    model: String,
    usage: Usage,
    text: String,
    refused: bool,
    open: Option<Call>,
    calls: Vec<ToolUse>,
    finish: Option<String>,
    content_bytes: u64,
}

/// Is a tool call whose arguments are still being written.
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct Chunk {
    id: Option<String>,
    model: Option<String>,
    choices: Option<Vec<Choice>>,
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: u64,
    delta: Option<Part>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Part {
    content: Option<String>,
    refusal: Option<String>,
    tool_calls: Option<Vec<CallPart>>,
}

#[derive(Deserialize)]
struct CallPart {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionPart>,
}

#[derive(Deserialize)]
struct FunctionPart {
    name: Option<String>,
    arguments: Option<Value>,
}

#[derive(Deserialize)]
struct Counts {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
}

impl Completion {
    pub(super) fn new(model: String) -> Self {
        Self {
            id: String::new(),
            model,
            usage: Usage::default(),
            text: String::new(),
            refused: false,
            open: None,
            calls: Vec::new(),
            finish: None,
            content_bytes: 0,
        }
    }

    fn chunk(&mut self, chunk: Chunk) -> Vec<Delta> {
        let mut deltas = Vec::new();
        self.id = chunk.id.unwrap_or_else(|| std::mem::take(&mut self.id));
        if let Some(model) = chunk.model.filter(|model| !model.is_empty()) {
            self.model = model;
        }
        for choice in chunk.choices.unwrap_or_default() {
            // Only one choice is asked for.
            if choice.index == 0 {
                self.choice(choice, &mut deltas);
            }
        }
        if let Some(counts) = chunk.usage {
            self.count(&counts);
            deltas.push(Delta::Usage(self.usage));
        }
        deltas
    }

    fn choice(&mut self, choice: Choice, deltas: &mut Vec<Delta>) {
        if let Some(part) = choice.delta {
            self.refused |= part
                .refusal
                .as_ref()
                .is_some_and(|refusal| !refusal.is_empty());
            for text in [part.content, part.refusal].into_iter().flatten() {
                if !text.is_empty() {
                    self.content_bytes += size(&text);
                    self.text.push_str(&text);
                    deltas.push(Delta::Text(text));
                }
            }
            for call in part.tool_calls.into_iter().flatten() {
                self.call(call, deltas);
            }
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            deltas.extend(self.close_call());
            self.finish = Some(reason);
        }
    }

    fn call(&mut self, part: CallPart, deltas: &mut Vec<Delta>) {
        let (name, arguments) = part
            .function
            .map_or((None, None), |function| (function.name, function.arguments));
        let id = part.id.filter(|id| !id.is_empty());
        if self.begins(part.index, id.as_deref(), name.as_deref()) {
            deltas.extend(self.close_call());
            let call = Call {
                index: part.index,
                // Ids pair results with calls over a whole conversation, so they must differ between replies.
                id: id.unwrap_or_else(|| format!("call_{}_{}", self.id, self.calls.len())),
                name: name.unwrap_or_default(),
                arguments: String::new(),
            };
            deltas.push(Delta::ToolUseStarted {
                id: call.id.clone(),
                name: call.name.clone(),
            });
            self.open = Some(call);
        }
        if let Some(open) = &mut self.open {
            let more = match arguments {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(text)) => text,
                // Some servers send the object instead of its text.
                Some(other) => other.to_string(),
            };
            self.content_bytes += size(&more);
            open.arguments.push_str(&more);
        }
    }

    /// Tells whether a part belongs to another call than the open one. The index alone does not say it: some
    /// servers give 0 to every call, or none at all.
    fn begins(&self, index: Option<u64>, id: Option<&str>, name: Option<&str>) -> bool {
        let Some(open) = &self.open else {
            return true;
        };
        let other_index = index.is_some() && index != open.index;
        let other_id = id.is_some_and(|id| id != open.id);
        let named_again =
            index.is_none() && id.is_none() && name.is_some_and(|name| !name.is_empty());
        other_index || other_id || named_again
    }

    fn close_call(&mut self) -> Option<Delta> {
        let call = self.open.take()?;
        let call = ToolUse::parse(call.id, call.name, &call.arguments);
        self.calls.push(call.clone());
        Some(Delta::ToolUse(call))
    }

    fn count(&mut self, counts: &Counts) {
        let cached = counts
            .prompt_tokens_details
            .as_ref()
            .and_then(|details| details.cached_tokens)
            .unwrap_or(0);
        // The format counts cached tokens within the prompt.
        self.usage = Usage {
            input_tokens: counts.prompt_tokens.unwrap_or(0).saturating_sub(cached),
            output_tokens: counts.completion_tokens.unwrap_or(0),
            cache_read_tokens: cached,
            cache_write_tokens: 0,
        };
    }

    fn finish(&mut self) -> Result<Reply, ModelError> {
        let reason = self.finish.take().ok_or(ModelError::Truncated)?;
        let mut blocks = Vec::new();
        if !self.text.is_empty() {
            blocks.push(Block::Text(std::mem::take(&mut self.text)));
        }
        let stop = stop(&reason, !self.calls.is_empty(), self.refused);
        blocks.extend(self.calls.drain(..).map(Block::ToolUse));
        Ok(Reply {
            blocks,
            stop,
            usage: self.usage,
            model: self.model.clone(),
        })
    }
}

impl Decoder for Completion {
    fn event(&mut self, data: &str) -> Result<Vec<Delta>, ModelError> {
        if data.trim() == "[DONE]" {
            return Ok(vec![Delta::Done(self.finish()?)]);
        }
        let value: Value = serde_json::from_str(data)
            .map_err(|error| ModelError::malformed(format!("chunk is no JSON: {error}")))?;
        if let Some(error) = in_stream(&value) {
            return Err(error);
        }
        let chunk = Chunk::deserialize(value)
            .map_err(|error| ModelError::malformed(format!("unknown chunk: {error}")))?;
        Ok(self.chunk(chunk))
    }

    fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    fn settled(&self) -> bool {
        self.finish.is_some()
    }

    fn closed(&mut self) -> Result<Reply, ModelError> {
        // The reason comes after the last content, so without `[DONE]` only the usage can be lost.
        self.finish()
    }
}

fn stop(reason: &str, calls: bool, refused: bool) -> StopReason {
    match reason {
        // Some servers say `stop` although they call a tool.
        "stop" if calls => StopReason::ToolUse,
        "stop" if refused => StopReason::ContentFilter,
        "stop" => StopReason::EndTurn,
        "tool_calls" | "function_call" => StopReason::ToolUse,
        "length" => StopReason::MaxTokens,
        "content_filter" => StopReason::ContentFilter,
        other => StopReason::Other(other.to_owned()),
    }
}

#[cfg(test)]
mod tests;
