//! Holds the words of a conversation in no provider's format.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::image::Image;

/// Says who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A person, or the results of tools.
    User,
    /// The model.
    Assistant,
}

/// Is one turn of one speaker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub blocks: Vec<Block>,
}

impl Message {
    /// Returns a user message of one text.
    pub fn user(text: impl Into<String>) -> Self {
        Self {
            role: Role::User,
            blocks: vec![Block::Text(text.into())],
        }
    }

    /// Returns an assistant message of the given blocks.
    pub fn assistant(blocks: Vec<Block>) -> Self {
        Self {
            role: Role::Assistant,
            blocks,
        }
    }

    /// Returns a user message that carries the results of tools.
    pub fn results(blocks: Vec<Block>) -> Self {
        Self {
            role: Role::User,
            blocks,
        }
    }
}

/// Is one piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// Plain text.
    Text(String),
    /// A tool call of the model.
    ToolUse(ToolUse),
    /// What came of a tool call.
    ToolResult {
        /// The id of the call.
        tool_use_id: String,
        /// What the model gets to read.
        content: String,
        /// Whether the call failed.
        #[serde(default)]
        is_error: bool,
        /// The pictures that the model gets to see beside it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
    /// What only its provider understands, such as what a model thought: given back to that one unchanged, and shown to
    /// nobody else.
    Opaque {
        /// The provider that wrote it.
        provider: String,
        /// The block as the provider wrote it.
        data: Value,
    },
}

/// Is a tool call as the model wrote it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolUse {
    /// Pairs the call with its result.
    pub id: String,
    /// The tool, perhaps one that does not exist.
    pub name: String,
    /// A JSON object; or, when `malformed`, a string holding what the model wrote instead of one.
    pub input: Value,
    /// Whether the arguments are no JSON object: the caller answers with an error result, and runs nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub malformed: bool,
}

impl ToolUse {
    /// Parses the raw arguments of a call; no arguments at all are an empty object.
    pub fn parse(id: impl Into<String>, name: impl Into<String>, raw: &str) -> Self {
        let (input, malformed) = if raw.trim().is_empty() {
            (Value::Object(Map::new()), false)
        } else {
            match serde_json::from_str::<Map<String, Value>>(raw) {
                Ok(object) => (Value::Object(object), false),
                Err(_) => (Value::String(raw.to_owned()), true),
            }
        };
        Self {
            id: id.into(),
            name: name.into(),
            input,
            malformed,
        }
    }

    /// Returns the arguments as the object that both wire formats ask for, also when they are malformed.
    pub(crate) fn input_object(&self) -> Cow<'_, Value> {
        match &self.input {
            object @ Value::Object(_) => Cow::Borrowed(object),
            other => Cow::Owned(serde_json::json!({ "malformed_arguments": other })),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_block_survives_the_journal() {
        let message = Message::assistant(vec![
            Block::Text("héllo \u{0} \"quoted\"".to_owned()),
            Block::ToolUse(ToolUse::parse("t1", "read", r#"{"path":"a"}"#)),
            Block::ToolUse(ToolUse::parse("t2", "read", r#"{"path":"#)),
            Block::ToolResult {
                tool_use_id: "t1".to_owned(),
                content: "x".to_owned(),
                is_error: true,
                images: vec![Image {
                    kind: ropewalk_schemas::image::ImageKind::Webp,
                    width: 3,
                    height: 2,
                    data: "UklGR".to_owned(),
                }],
            },
            Block::Opaque {
                provider: "p".to_owned(),
                data: serde_json::json!({ "type": "thinking", "signature": "s==" }),
            },
        ]);
        let text = serde_json::to_string(&message).unwrap();
        assert_eq!(serde_json::from_str::<Message>(&text).unwrap(), message);
    }

    #[test]
    fn arguments_that_are_no_object_stay_visible() {
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        let deep_object = format!(r#"{{"a":{deep}}}"#);
        let cases: [(&str, bool); 9] = [
            ("", false),
            ("  ", false),
            ("{}", false),
            (r#"{"path":"a"}"#, false),
            (r#"{"path":"#, true),
            ("[1]", true),
            ("\"text\"", true),
            (r#"{"n":1e400}"#, true),
            (&deep_object, true),
        ];
        for (raw, malformed) in cases {
            let call = ToolUse::parse("t", "x", raw);
            let shown = &raw[..raw.len().min(20)];
            assert_eq!(call.malformed, malformed, "{shown}");
            if malformed {
                assert_eq!(call.input, json!(raw), "{shown}");
                assert_eq!(*call.input_object(), json!({ "malformed_arguments": raw }));
            } else {
                assert!(call.input.is_object(), "{shown}");
            }
        }
    }
}
