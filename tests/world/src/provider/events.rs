//! Writes what a model says as the events of a wire format, as it says it.

use ropewalk_llm::{Reply, StopReason, ToolUse};
use serde_json::{Value, json};

use super::WireFormat;

/// How many characters of words or arguments an event carries at most.
const PIECE: usize = 400;

/// Writes one reply.
pub(super) struct Writer {
    format: WireFormat,
    /// The model that answers.
    model: String,
    /// How many blocks there are so far.
    blocks: usize,
    /// Whether the last of them is text that goes on.
    is_open: bool,
    written: String,
}

impl Writer {
    pub(super) fn new(format: WireFormat, model: &str) -> Self {
        Self {
            format,
            model: model.to_owned(),
            blocks: 0,
            is_open: false,
            written: String::new(),
        }
    }

    /// Returns what has been written since it was asked last.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.written)
    }

    /// Writes what comes before all else.
    pub(super) fn begin(&mut self) {
        if self.format == WireFormat::Messages {
            self.event(&json!({ "type": "message_start", "message": { "model": self.model } }));
        }
    }

    /// Writes words.
    pub(super) fn text(&mut self, text: &str) {
        if !self.is_open {
            self.is_open = true;
            self.blocks += 1;
            let block = json!({ "type": "text", "text": "" });
            self.begin_block(&block);
        }
        let index = self.blocks - 1;
        for piece in pieces(text) {
            let event = match self.format {
                WireFormat::Messages => json!({ "type": "content_block_delta", "index": index,
                    "delta": { "type": "text_delta", "text": piece } }),
                WireFormat::Completions => self.chunk(&json!({ "content": piece })),
                WireFormat::Responses => json!({ "type": "response.output_text.delta",
                    "output_index": index, "delta": piece }),
                WireFormat::Gemini => self.part(&json!({ "text": piece })),
            };
            self.event(&event);
        }
    }

    /// Writes a call.
    pub(super) fn call(&mut self, call: &ToolUse) {
        self.end_text();
        let index = self.blocks;
        self.blocks += 1;
        let arguments = match &call.input {
            Value::String(raw) if call.malformed => raw.clone(),
            input => input.to_string(),
        };
        match self.format {
            WireFormat::Messages => {
                let block =
                    json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": {} });
                self.begin_block(&block);
                for piece in pieces(&arguments) {
                    let delta = json!({ "type": "input_json_delta", "partial_json": piece });
                    self.event(
                        &json!({ "type": "content_block_delta", "index": index, "delta": delta }),
                    );
                }
                self.event(&json!({ "type": "content_block_stop", "index": index }));
            }
            WireFormat::Completions => {
                let begun = json!({ "index": index, "id": call.id,
                    "function": { "name": call.name, "arguments": "" } });
                let more = pieces(&arguments)
                    .map(|piece| json!({ "index": index, "function": { "arguments": piece } }));
                for part in std::iter::once(begun).chain(more) {
                    let chunk = self.chunk(&json!({ "tool_calls": [part] }));
                    self.event(&chunk);
                }
            }
            WireFormat::Responses => self.function_call(index, call, &arguments),
            WireFormat::Gemini => {
                let call = json!({ "id": call.id, "name": call.name, "args": call.input });
                let part = self.part(&json!({ "functionCall": call }));
                self.event(&part);
            }
        }
    }

    /// Writes the end, with all that only a whole reply tells.
    pub(super) fn end(&mut self, reply: &Reply) {
        self.end_text();
        let (read, written) = (reply.usage.input_tokens, reply.usage.output_tokens);
        let stop = self.stop(&reply.stop);
        match self.format {
            WireFormat::Messages => {
                self.event(
                    &json!({ "type": "message_delta", "delta": { "stop_reason": stop },
                    "usage": { "input_tokens": read, "output_tokens": written } }),
                );
                self.event(&json!({ "type": "message_stop" }));
            }
            WireFormat::Completions => {
                let end = json!({ "index": 0, "delta": {}, "finish_reason": stop });
                self.event(&json!({ "model": self.model, "choices": [end] }));
                self.event(&json!({ "model": self.model, "choices": [],
                    "usage": { "prompt_tokens": read, "completion_tokens": written } }));
                self.written.push_str("data: [DONE]\n\n");
            }
            WireFormat::Responses => {
                let is_whole = stop == "completed";
                let kind = if is_whole {
                    "response.completed"
                } else {
                    "response.incomplete"
                };
                let mut response = json!({ "model": self.model, "status": "completed",
                    "usage": { "input_tokens": read, "output_tokens": written } });
                if !is_whole {
                    response["status"] = json!("incomplete");
                    response["incomplete_details"] = json!({ "reason": stop });
                }
                self.event(&json!({ "type": kind, "response": response }));
            }
            WireFormat::Gemini => {
                let usage = json!({ "promptTokenCount": read, "candidatesTokenCount": written });
                self.event(&json!({ "modelVersion": self.model, "usageMetadata": usage,
                    "candidates": [{ "index": 0, "finishReason": stop }] }));
            }
        }
    }

    /// Writes an event that no format has.
    pub(super) fn nonsense(&mut self) {
        self.written.push_str("data: {no JSON\n\n");
    }

    /// Begins a block where the format has any.
    fn begin_block(&mut self, block: &Value) {
        if self.format == WireFormat::Messages {
            let index = self.blocks - 1;
            self.event(
                &json!({ "type": "content_block_start", "index": index, "content_block": block }),
            );
        }
    }

    fn end_text(&mut self) {
        if std::mem::take(&mut self.is_open) && self.format == WireFormat::Messages {
            self.event(&json!({ "type": "content_block_stop", "index": self.blocks - 1 }));
        }
    }

    fn function_call(&mut self, index: usize, call: &ToolUse, arguments: &str) {
        let item = |arguments: &str| {
            json!({ "type": "function_call", "call_id": call.id, "name": call.name,
                "arguments": arguments })
        };
        let added = item("");
        self.event(&json!({ "type": "response.output_item.added",
            "output_index": index, "item": added }));
        for piece in pieces(arguments) {
            self.event(&json!({ "type": "response.function_call_arguments.delta",
                "output_index": index, "delta": piece }));
        }
        let done = item(arguments);
        self.event(&json!({ "type": "response.output_item.done",
            "output_index": index, "item": done }));
    }

    fn chunk(&self, delta: &Value) -> Value {
        json!({ "model": self.model, "choices": [{ "index": 0, "delta": delta }] })
    }

    fn part(&self, part: &Value) -> Value {
        let content = json!({ "parts": [part] });
        json!({ "modelVersion": self.model, "candidates": [{ "index": 0, "content": content }] })
    }

    /// Returns why a reply ended, in the words of the format.
    fn stop(&self, stop: &StopReason) -> String {
        let words = match (self.format, stop) {
            (_, StopReason::Other(other)) => other,
            (WireFormat::Messages, StopReason::EndTurn) => "end_turn",
            (WireFormat::Messages, StopReason::ToolUse) => "tool_use",
            (WireFormat::Messages, StopReason::MaxTokens) => "max_tokens",
            (WireFormat::Messages, StopReason::ContentFilter) => "refusal",
            (WireFormat::Completions, StopReason::EndTurn) => "stop",
            (WireFormat::Completions, StopReason::ToolUse) => "tool_calls",
            (WireFormat::Completions, StopReason::MaxTokens) => "length",
            (WireFormat::Completions | WireFormat::Responses, StopReason::ContentFilter) => {
                "content_filter"
            }
            (WireFormat::Responses, StopReason::EndTurn | StopReason::ToolUse) => "completed",
            (WireFormat::Responses, StopReason::MaxTokens) => "max_output_tokens",
            (WireFormat::Gemini, StopReason::EndTurn | StopReason::ToolUse) => "STOP",
            (WireFormat::Gemini, StopReason::MaxTokens) => "MAX_TOKENS",
            (WireFormat::Gemini, StopReason::ContentFilter) => "SAFETY",
        };
        words.to_owned()
    }

    fn event(&mut self, event: &Value) {
        self.written.push_str("data: ");
        self.written.push_str(&event.to_string());
        self.written.push_str("\n\n");
    }
}

/// Cuts a text into pieces, two of them at least where it has two characters.
fn pieces(text: &str) -> impl Iterator<Item = String> {
    let characters: Vec<char> = text.chars().collect();
    let length = characters.len().div_ceil(2).clamp(1, PIECE);
    let pieces: Vec<String> = characters
        .chunks(length)
        .map(|piece| piece.iter().collect())
        .collect();
    pieces.into_iter()
}
