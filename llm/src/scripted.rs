//! Answers from a script, for tests, benchmarks and the rehearsal.
//!
//! A rule is a pure function of the call's [`ScriptKey`] and the request's text. There are no
//! counters, so that a replay after a crash gets the same answers.

mod rule;

use std::time::Duration;

use async_trait::async_trait;
use ropewalk_runtime::Clock;
use tokio_util::sync::CancellationToken;

use crate::error::ModelError;
use crate::message::{Block, ToolUse};
use crate::model::Model;
use crate::reply::{Reply, ReplyStream, StopReason, Usage};
use crate::request::{ModelRequest, ScriptKey};
pub use rule::{Answer, OneOrMany, Rule, ScriptedError, ScriptedErrorKind, ScriptedTool};

/// How often a reply that waits for a file looks for it.
const LOOK: Duration = Duration::from_millis(20);

/// Is a list of rules; the first that matches answers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Script {
    rules: Vec<Rule>,
}

/// Says why a text is no script.
#[derive(Debug, thiserror::Error)]
#[error("the script is not valid: {0}")]
pub struct ScriptError(String);

impl Script {
    /// Reads a script: a YAML list of rules.
    pub fn parse(yaml: &str) -> Result<Self, ScriptError> {
        let rules: Vec<Rule> =
            serde_saphyr::from_str(yaml).map_err(|error| ScriptError(error.to_string()))?;
        for (index, rule) in rules.iter().enumerate() {
            rule.check()
                .map_err(|problem| ScriptError(format!("rule {}: {problem}", index + 1)))?;
        }
        Ok(Self { rules })
    }

    /// Finds the answer to a request; a request without a key has an empty one.
    pub fn answer(&self, request: &ModelRequest) -> Result<&Answer, ModelError> {
        let key = request.script.clone().unwrap_or_default();
        let text = request.text();
        self.rules
            .iter()
            .find(|rule| rule.matches(&key, &text))
            .map(|rule| &rule.reply)
            .ok_or(ModelError::Script { key })
    }
}

/// Is the scripted provider.
pub struct ScriptedModel {
    name: String,
    script: Script,
    clock: Clock,
}

impl ScriptedModel {
    /// Returns a model that plays `script`; delays go by `clock`.
    pub fn new(script: Script, clock: Clock) -> Self {
        Self {
            name: "scripted".to_owned(),
            script,
            clock,
        }
    }

    /// Calls the provider so.
    #[must_use]
    pub fn named(self, name: String) -> Self {
        Self { name, ..self }
    }
}

#[async_trait]
impl Model for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        cancel: &CancellationToken,
    ) -> Result<ReplyStream, ModelError> {
        let answer = self.script.answer(request)?;
        let mut rest = Duration::from_millis(answer.delay_ms);
        while !rest.is_zero() || answer.is_held() {
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(ModelError::Cancelled),
                () = self.clock.sleep(if rest.is_zero() { LOOK } else { rest }) => rest = Duration::ZERO,
            }
        }
        match &answer.error {
            Some(error) => Err(error.to_model_error()),
            None => Ok(ReplyStream::of(reply(answer, request))),
        }
    }
}

fn reply(answer: &Answer, request: &ModelRequest) -> Reply {
    let key = request.script.clone().unwrap_or_default();
    let mut blocks: Vec<Block> = answer.text.iter().cloned().map(Block::Text).collect();
    for (number, tool) in answer.tools.iter().enumerate() {
        let id = tool_use_id(&key, number + 1);
        blocks.push(Block::ToolUse(match &tool.malformed {
            Some(raw) => ToolUse::parse(id, &tool.name, raw),
            None => ToolUse {
                id,
                name: tool.name.clone(),
                input: serde_json::Value::Object(tool.input.clone()),
                malformed: false,
            },
        }));
    }
    let stop = answer.stop.clone().unwrap_or(if answer.tools.is_empty() {
        StopReason::EndTurn
    } else {
        StopReason::ToolUse
    });
    let written: usize = blocks
        .iter()
        .map(|block| match block {
            Block::Text(text) => text.chars().count(),
            Block::ToolUse(call) => call.name.chars().count() + call.input.to_string().len(),
            Block::ToolResult { .. } | Block::Opaque { .. } => 0,
        })
        .sum();
    Reply {
        blocks,
        stop,
        usage: Usage {
            input_tokens: estimate(request.text().chars().count()),
            output_tokens: estimate(written),
            ..Usage::default()
        },
        model: request.model.clone(),
    }
}

/// Estimates the tokens of a text by its characters.
fn estimate(characters: usize) -> u64 {
    u64::try_from(characters.div_ceil(4)).unwrap_or(u64::MAX)
}

/// Names a scripted call: the same at each replay, and different for each call of a conversation.
fn tool_use_id(key: &ScriptKey, number: usize) -> String {
    let safe = |text: &str| -> String {
        text.chars()
            .map(|character| {
                if character.is_ascii_alphanumeric() {
                    character
                } else {
                    '_'
                }
            })
            .collect()
    };
    format!(
        "scripted_{}_{}_{}_{}_{number}",
        safe(&key.agent),
        safe(&key.task),
        key.attempt,
        key.turn
    )
}

#[cfg(test)]
mod tests;
