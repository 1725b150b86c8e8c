//! Holds what a model is asked.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::{Block, Message};

/// Is one question to a model, whole: models keep nothing between two of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRequest {
    /// The model id as the provider knows it.
    pub model: String,
    /// The system prompt; empty for none.
    pub system: String,
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// The tools on offer.
    pub tools: Vec<ToolSpec>,
    /// Whether a tool has to be called. A model may disregard it: expect a reply without a call.
    pub tool_choice: ToolChoice,
    /// How many tokens the reply may have.
    pub max_output_tokens: u32,
    /// The JSON Schema that the text of the reply should follow. The reply may still be cut short.
    pub response_schema: Option<Value>,
    /// Names this call for the scripted provider; the others do not look at it.
    pub script: Option<ScriptKey>,
    /// Whether it is sent once only, whatever comes of it.
    #[serde(default)]
    pub once: bool,
    /// How hard the model is to think; none for what the provider thinks best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// The W3C trace context that goes along with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// Says how hard a model is to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Little: quick and cheap.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
}

impl ModelRequest {
    /// Returns a request without tools for at most 16384 tokens.
    pub fn new(
        model: impl Into<String>,
        system: impl Into<String>,
        messages: Vec<Message>,
    ) -> Self {
        Self {
            model: model.into(),
            system: system.into(),
            messages,
            tools: Vec::new(),
            tool_choice: ToolChoice::Auto,
            max_output_tokens: 16_384,
            response_schema: None,
            script: None,
            once: false,
            effort: None,
            traceparent: None,
        }
    }

    /// Returns all that the model would read of the conversation, for searching and for estimates.
    pub fn text(&self) -> String {
        let mut text = self.system.clone();
        for block in self.messages.iter().flat_map(|message| &message.blocks) {
            text.push('\n');
            match block {
                Block::Text(said) => text.push_str(said),
                Block::ToolUse(call) => {
                    text.push_str(&call.name);
                    text.push(' ');
                    text.push_str(&call.input.to_string());
                }
                Block::ToolResult { content, .. } => text.push_str(content),
                // Read by nobody here; it counts all the same, since it is sent.
                Block::Opaque { data, .. } => text.push_str(&data.to_string()),
            }
        }
        text
    }
}

/// Describes a tool to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolSpec {
    /// The name to call it by.
    pub name: String,
    /// What it does, in words for the model.
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub parameters: Value,
}

/// Says whether the model has to call a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// Any one tool.
    Required,
    /// This tool.
    Tool(String),
    /// No tool.
    None,
}

/// Names a call for the scripted provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptKey {
    /// The role that asks.
    pub agent: String,
    /// The slug of the idea.
    pub idea: String,
    /// The task or step; empty where there is none.
    pub task: String,
    /// The try, from 1.
    pub attempt: u32,
    /// The call within the try, from 1.
    pub turn: u32,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::message::ToolUse;

    /// Holds of what `of` writes that a request begins with all that the one before it told, so that a provider which keeps what
    /// it has read finds it; `list` is the field with the conversation.
    pub(crate) fn begins_as_before(of: impl Fn(&ModelRequest) -> Value, list: &str) {
        let call = |id: &str| Block::ToolUse(ToolUse::parse(id, "read", r#"{"path":"a"}"#));
        let result = |id: &str| Block::ToolResult {
            tool_use_id: id.to_owned(),
            content: format!("found {id}"),
            is_error: id == "t2",
            images: Vec::new(),
        };
        let said = |text: &str| Block::Text(text.to_owned());
        let messages = [
            Message::user("go"),
            Message::assistant(vec![said("reading"), call("t1"), call("t2")]),
            Message::results(vec![result("t1"), result("t2"), said("and hurry")]),
            Message::assistant(vec![call("t3")]),
            Message::results(vec![result("t3")]),
        ];
        let body = |count: usize| {
            let mut request = ModelRequest::new("model", "be brief", messages[..count].to_vec());
            request.tools = vec![ToolSpec {
                name: "read".to_owned(),
                description: String::new(),
                parameters: serde_json::json!({ "type": "object" }),
            }];
            of(&request)
        };
        for (count, more) in [(1, 3), (3, 5)] {
            let (mut before, mut after) = (body(count), body(more));
            let [told, tells] = [&mut before, &mut after].map(|body| body[list].take());
            assert_eq!(before, after, "all but the conversation");
            let (told, tells) = (told.as_array().unwrap(), tells.as_array().unwrap());
            assert!(!told.is_empty() && told.len() < tells.len(), "{tells:?}");
            assert_eq!(tells[..told.len()], told[..]);
        }
    }

    #[test]
    fn text_holds_the_system_prompt_and_every_block() {
        let messages = vec![
            Message::user("hello"),
            Message::assistant(vec![Block::ToolUse(ToolUse::parse(
                "t",
                "read",
                r#"{"a":1}"#,
            ))]),
            Message::results(vec![Block::ToolResult {
                tool_use_id: "t".to_owned(),
                content: "found".to_owned(),
                is_error: false,
                images: Vec::new(),
            }]),
        ];
        let request = ModelRequest::new("m", "be brief", messages);
        assert_eq!(request.text(), "be brief\nhello\nread {\"a\":1}\nfound");
    }

    #[test]
    fn a_request_survives_the_journal() {
        let mut request = ModelRequest::new("m", "s", vec![Message::user("x")]);
        request.tools.push(ToolSpec {
            name: "read".to_owned(),
            description: "reads".to_owned(),
            parameters: serde_json::json!({ "type": "object" }),
        });
        request.tool_choice = ToolChoice::Tool("read".to_owned());
        request.script = Some(ScriptKey::default());
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(
            serde_json::from_str::<ModelRequest>(&text).unwrap(),
            request
        );
    }
}
