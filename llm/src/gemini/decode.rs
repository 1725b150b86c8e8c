//! Reads the chunks of `streamGenerateContent`.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::ModelError;
use crate::message::{Block, ToolUse};
use crate::reply::{Delta, Reply, StopReason, Usage};
use crate::wire::{Decoder, in_stream, size};

/// The field by which a part is told to come of what the model thought; it has to be given back with that part.
pub(super) const SIGNATURE: &str = "thoughtSignature";

/// Collects one reply.
pub(super) struct Response {
    id: String,
    model: String,
    /// Who writes what nobody else understands.
    provider: String,
    usage: Usage,
    blocks: Vec<Block>,
    /// Whether the last block is text that goes on.
    is_open: bool,
    calls: usize,
    finish: Option<String>,
    content_bytes: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk {
    #[serde(default)]
    candidates: Vec<Candidate>,
    usage_metadata: Option<Counts>,
    model_version: Option<String>,
    response_id: Option<String>,
    prompt_feedback: Option<Feedback>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    #[serde(default)]
    index: u64,
    content: Option<Content>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    parts: Vec<Value>,
}

#[derive(Deserialize)]
struct Call {
    id: Option<String>,
    name: String,
    args: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

/// Tokens.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Counts {
    #[serde(rename = "promptTokenCount")]
    prompt: u64,
    #[serde(rename = "toolUsePromptTokenCount")]
    tool_use_prompt: u64,
    #[serde(rename = "candidatesTokenCount")]
    candidates: u64,
    #[serde(rename = "thoughtsTokenCount")]
    thoughts: u64,
    #[serde(rename = "cachedContentTokenCount")]
    cached_content: u64,
}

impl Response {
    pub(super) fn new(model: String, provider: String) -> Self {
        Self {
            id: String::new(),
            model,
            provider,
            usage: Usage::default(),
            blocks: Vec::new(),
            is_open: false,
            calls: 0,
            finish: None,
            content_bytes: 0,
        }
    }

    fn chunk(&mut self, chunk: Chunk) -> Result<Vec<Delta>, ModelError> {
        let mut deltas = Vec::new();
        self.id = chunk
            .response_id
            .unwrap_or_else(|| std::mem::take(&mut self.id));
        if let Some(model) = chunk.model_version.filter(|model| !model.is_empty()) {
            self.model = model;
        }
        for candidate in chunk.candidates {
            // Only one candidate is asked for.
            if candidate.index != 0 {
                continue;
            }
            for part in candidate.content.into_iter().flat_map(|one| one.parts) {
                deltas.extend(self.part(part)?);
            }
            if let Some(reason) = candidate.finish_reason.filter(|reason| !reason.is_empty()) {
                self.finish = Some(reason);
            }
        }
        let blocked = chunk.prompt_feedback.and_then(|told| told.block_reason);
        if blocked.is_some() {
            // A prompt that is refused has no candidate at all.
            self.finish = Some("PROHIBITED_CONTENT".to_owned());
        }
        if let Some(counts) = chunk.usage_metadata {
            self.count(&counts);
            deltas.push(Delta::Usage(self.usage));
        }
        Ok(deltas)
    }

    fn part(&mut self, mut part: Value) -> Result<Vec<Delta>, ModelError> {
        let signature = part.get(SIGNATURE).cloned().filter(Value::is_string);
        if part["thought"] == true {
            // What it says of its thoughts is for nobody; where it is signed, it belongs to the conversation.
            if signature.is_some() {
                self.keep(part);
            }
            return Ok(Vec::new());
        }
        let is_signed = signature.is_some();
        if let Some(signature) = signature {
            self.keep(json!({ SIGNATURE: signature }));
        }
        if let Some(call) = part.get_mut("functionCall").map(Value::take) {
            return self.call(call);
        }
        Ok(match part["text"].as_str() {
            Some(text) if !text.is_empty() => {
                let delta = self.say(text);
                // The words after it come of something else.
                self.is_open &= !is_signed;
                vec![delta]
            }
            _ => Vec::new(),
        })
    }

    fn keep(&mut self, data: Value) {
        self.content_bytes += size(&data.to_string());
        self.is_open = false;
        let provider = self.provider.clone();
        self.blocks.push(Block::Opaque { provider, data });
    }

    fn say(&mut self, words: &str) -> Delta {
        self.content_bytes += size(words);
        match self.blocks.last_mut() {
            Some(Block::Text(text)) if self.is_open => text.push_str(words),
            _ => self.blocks.push(Block::Text(words.to_owned())),
        }
        self.is_open = true;
        Delta::Text(words.to_owned())
    }

    fn call(&mut self, call: Value) -> Result<Vec<Delta>, ModelError> {
        let call = Call::deserialize(call)
            .map_err(|error| ModelError::malformed(format!("unknown call: {error}")))?;
        let arguments = match call.args {
            None | Some(Value::Null) => String::new(),
            Some(arguments) => arguments.to_string(),
        };
        self.content_bytes += size(&arguments);
        self.is_open = false;
        // Ids pair results with calls over a whole conversation, so they must differ between replies.
        let id = call.id.filter(|id| !id.is_empty());
        let id = id.unwrap_or_else(|| format!("call_{}_{}", self.id, self.calls));
        self.calls += 1;
        let call = ToolUse::parse(id, call.name, &arguments);
        self.blocks.push(Block::ToolUse(call.clone()));
        let started = Delta::ToolUseStarted {
            id: call.id.clone(),
            name: call.name.clone(),
        };
        Ok(vec![started, Delta::ToolUse(call)])
    }

    fn count(&mut self, counts: &Counts) {
        let cached = counts.cached_content;
        let read = counts.prompt + counts.tool_use_prompt;
        // The format counts cached tokens within the prompt, and thoughts beside the words.
        self.usage = Usage {
            input_tokens: read.saturating_sub(cached),
            output_tokens: counts.candidates + counts.thoughts,
            cache_read_tokens: cached,
            cache_write_tokens: 0,
        };
    }

    fn finish(&mut self) -> Result<Reply, ModelError> {
        let reason = self.finish.take().ok_or(ModelError::Truncated)?;
        Ok(Reply {
            blocks: std::mem::take(&mut self.blocks),
            stop: stop(&reason, self.calls > 0),
            usage: self.usage,
            model: self.model.clone(),
        })
    }
}

impl Decoder for Response {
    fn event(&mut self, data: &str) -> Result<Vec<Delta>, ModelError> {
        let value: Value = serde_json::from_str(data)
            .map_err(|error| ModelError::malformed(format!("chunk is no JSON: {error}")))?;
        if let Some(error) = in_stream(&value) {
            return Err(error);
        }
        let chunk = Chunk::deserialize(value)
            .map_err(|error| ModelError::malformed(format!("unknown chunk: {error}")))?;
        self.chunk(chunk)
    }

    fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    fn settled(&self) -> bool {
        self.finish.is_some()
    }

    fn closed(&mut self) -> Result<Reply, ModelError> {
        // The format ends with the connection; the reason comes with the last content.
        self.finish()
    }
}

fn stop(reason: &str, calls: bool) -> StopReason {
    match reason {
        // The format has no reason of its own for calls.
        "STOP" | "FUNCTION_CALL" if calls => StopReason::ToolUse,
        "STOP" => StopReason::EndTurn,
        "MAX_TOKENS" => StopReason::MaxTokens,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => {
            StopReason::ContentFilter
        }
        other => StopReason::Other(other.to_owned()),
    }
}

#[cfg(test)]
mod tests;
