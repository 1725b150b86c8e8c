//! Reads the events of the Messages API.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::error::ModelError;
use crate::message::{Block, ToolUse};
use crate::reply::{Delta, Reply, StopReason, Usage};
use crate::wire::{Decoder, in_stream, size};

/// Collects one reply.
pub(super) struct Messages {
    model: String,
    /// Who writes blocks that nobody else understands.
    provider: String,
    usage: Usage,
    stop: Option<StopReason>,
    open: BTreeMap<u32, OpenBlock>,
    closed: BTreeMap<u32, Block>,
    content_bytes: u64,
}

/// Is a block that is still being written.
enum OpenBlock {
    Text(String),
    Tool {
        id: String,
        name: String,
        input: Map<String, Value>,
        json: String,
    },
    /// What the model thought, to be given back as it came.
    Thought {
        thinking: String,
        signature: String,
    },
    /// The same, made unreadable.
    Redacted {
        data: String,
    },
    /// A kind that nothing here has a use for.
    Skipped,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Start,
    },
    ContentBlockStart {
        index: u32,
        content_block: BlockStart,
    },
    ContentBlockDelta {
        index: u32,
        delta: Part,
    },
    ContentBlockStop {
        index: u32,
    },
    MessageDelta {
        delta: Ending,
        usage: Option<Counts>,
    },
    MessageStop,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Start {
    model: Option<String>,
    usage: Option<Counts>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockStart {
    Text {
        #[serde(default)]
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
        #[serde(default)]
        input: Map<String, Value>,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
        #[serde(default)]
        signature: String,
    },
    RedactedThinking {
        data: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part {
    TextDelta {
        text: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    ThinkingDelta {
        thinking: String,
    },
    SignatureDelta {
        signature: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Ending {
    stop_reason: Option<String>,
}

#[expect(clippy::struct_field_names, reason = "the names of the wire format")]
#[derive(Deserialize)]
struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

impl Messages {
    pub(super) fn new(model: String, provider: String) -> Self {
        Self {
            model,
            provider,
            usage: Usage::default(),
            stop: None,
            open: BTreeMap::new(),
            closed: BTreeMap::new(),
            content_bytes: 0,
        }
    }

    fn count(&mut self, counts: &Counts) -> Delta {
        let take = |slot: &mut u64, value: Option<u64>| *slot = value.unwrap_or(*slot);
        take(&mut self.usage.input_tokens, counts.input_tokens);
        take(&mut self.usage.output_tokens, counts.output_tokens);
        take(
            &mut self.usage.cache_read_tokens,
            counts.cache_read_input_tokens,
        );
        take(
            &mut self.usage.cache_write_tokens,
            counts.cache_creation_input_tokens,
        );
        Delta::Usage(self.usage)
    }

    fn begin(&mut self, index: u32, start: BlockStart) -> Option<Delta> {
        let (open, delta) = match start {
            BlockStart::Text { text } => {
                self.content_bytes += size(&text);
                let delta = (!text.is_empty()).then(|| Delta::Text(text.clone()));
                (OpenBlock::Text(text), delta)
            }
            BlockStart::ToolUse { id, name, input } => {
                let delta = Delta::ToolUseStarted {
                    id: id.clone(),
                    name: name.clone(),
                };
                let json = String::new();
                let open = OpenBlock::Tool {
                    id,
                    name,
                    input,
                    json,
                };
                (open, Some(delta))
            }
            BlockStart::Thinking {
                thinking,
                signature,
            } => {
                self.content_bytes += size(&thinking) + size(&signature);
                let open = OpenBlock::Thought {
                    thinking,
                    signature,
                };
                (open, None)
            }
            BlockStart::RedactedThinking { data } => {
                self.content_bytes += size(&data);
                (OpenBlock::Redacted { data }, None)
            }
            BlockStart::Other => (OpenBlock::Skipped, None),
        };
        self.open.insert(index, open);
        delta
    }

    fn extend(&mut self, index: u32, part: Part) -> Result<Option<Delta>, ModelError> {
        match (self.open.get_mut(&index), part) {
            (None, _) => Err(ModelError::malformed(format!("block {index} is not open"))),
            (Some(OpenBlock::Text(text)), Part::TextDelta { text: more }) => {
                self.content_bytes += size(&more);
                text.push_str(&more);
                Ok((!more.is_empty()).then_some(Delta::Text(more)))
            }
            (Some(OpenBlock::Tool { json, .. }), Part::InputJsonDelta { partial_json }) => {
                self.content_bytes += size(&partial_json);
                json.push_str(&partial_json);
                Ok(None)
            }
            (Some(OpenBlock::Thought { thinking, .. }), Part::ThinkingDelta { thinking: more }) => {
                self.content_bytes += size(&more);
                thinking.push_str(&more);
                Ok(None)
            }
            (
                Some(OpenBlock::Thought { signature, .. }),
                Part::SignatureDelta { signature: more },
            ) => {
                self.content_bytes += size(&more);
                signature.push_str(&more);
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn keep_opaque(&mut self, index: u32, data: Value) {
        let provider = self.provider.clone();
        self.closed.insert(index, Block::Opaque { provider, data });
    }

    fn end(&mut self, index: u32) -> Result<Option<Delta>, ModelError> {
        match self.open.remove(&index) {
            None => Err(ModelError::malformed(format!("block {index} is not open"))),
            Some(OpenBlock::Skipped) => Ok(None),
            // Unsigned, it would be refused when it is given back.
            Some(OpenBlock::Thought { signature, .. }) if signature.is_empty() => Ok(None),
            Some(OpenBlock::Thought {
                thinking,
                signature,
            }) => {
                let data =
                    json!({ "type": "thinking", "thinking": thinking, "signature": signature });
                self.keep_opaque(index, data);
                Ok(None)
            }
            Some(OpenBlock::Redacted { data }) => {
                self.keep_opaque(index, json!({ "type": "redacted_thinking", "data": data }));
                Ok(None)
            }
            Some(OpenBlock::Text(text)) => {
                if !text.is_empty() {
                    self.closed.insert(index, Block::Text(text));
                }
                Ok(None)
            }
            Some(OpenBlock::Tool {
                id,
                name,
                input,
                json,
            }) => {
                let mut call = ToolUse::parse(id, name, &json);
                if json.trim().is_empty() {
                    call.input = Value::Object(input);
                }
                self.closed.insert(index, Block::ToolUse(call.clone()));
                Ok(Some(Delta::ToolUse(call)))
            }
        }
    }

    fn finish(&mut self) -> Result<Reply, ModelError> {
        if let Some(index) = self.open.keys().next() {
            return Err(ModelError::malformed(format!(
                "the message stops with block {index} open"
            )));
        }
        let stop = self
            .stop
            .take()
            .ok_or_else(|| ModelError::malformed("the message stops without a reason"))?;
        Ok(Reply {
            blocks: std::mem::take(&mut self.closed).into_values().collect(),
            stop,
            usage: self.usage,
            model: self.model.clone(),
        })
    }
}

impl Decoder for Messages {
    fn event(&mut self, data: &str) -> Result<Vec<Delta>, ModelError> {
        let value: Value = serde_json::from_str(data)
            .map_err(|error| ModelError::malformed(format!("event is no JSON: {error}")))?;
        if let Some(error) = in_stream(&value) {
            return Err(error);
        }
        let event = Event::deserialize(value)
            .map_err(|error| ModelError::malformed(format!("unknown event: {error}")))?;
        let delta = match event {
            Event::MessageStart { message } => {
                self.model = message.model.unwrap_or_else(|| self.model.clone());
                message.usage.map(|counts| self.count(&counts))
            }
            Event::ContentBlockStart {
                index,
                content_block,
            } => self.begin(index, content_block),
            Event::ContentBlockDelta { index, delta } => self.extend(index, delta)?,
            Event::ContentBlockStop { index } => self.end(index)?,
            Event::MessageDelta { delta, usage } => {
                self.stop = delta.stop_reason.as_deref().map(stop).or(self.stop.take());
                usage.map(|counts| self.count(&counts))
            }
            Event::MessageStop => Some(Delta::Done(self.finish()?)),
            Event::Other => None,
        };
        Ok(delta.into_iter().collect())
    }

    fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    fn settled(&self) -> bool {
        // Only `message_stop` ends a message, and it comes at once.
        false
    }

    fn closed(&mut self) -> Result<Reply, ModelError> {
        Err(ModelError::Truncated)
    }
}

fn stop(reason: &str) -> StopReason {
    match reason {
        "end_turn" | "stop_sequence" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
        "refusal" => StopReason::ContentFilter,
        other => StopReason::Other(other.to_owned()),
    }
}

#[cfg(test)]
mod tests;
