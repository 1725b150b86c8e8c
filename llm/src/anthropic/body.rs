//! Writes a request as the Messages API wants it.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::image::Image;
use crate::message::{Block, Message, Role};
use crate::request::{ModelRequest, ToolChoice, ToolSpec};

/// The body of a request. What was said is borrowed: a conversation is long, and written anew at every turn.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    #[serde(flatten)]
    head: Map<String, Value>,
    messages: Vec<Turn<'a>>,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: Role,
    content: Vec<Part<'a>>,
}

#[derive(Serialize)]
struct Part<'a> {
    #[serde(flatten)]
    said: Speech<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Speech<'a> {
    PlainBlock(PlainBlock<'a>),
    /// As the provider wrote it, which is an object.
    Opaque(&'a Map<String, Value>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum PlainBlock<'a> {
    Text {
        text: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: Cow<'a, Value>,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: ToolContent<'a>,
        is_error: bool,
    },
}

/// What a tool told, and shows beside that.
#[derive(Serialize)]
#[serde(untagged)]
enum ToolContent<'a> {
    Text(&'a str),
    Shown(Vec<Value>),
}

/// Marks the end of a prefix that the provider may keep.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheControl {
    Ephemeral,
}

/// Returns the body of a request.
///
/// The ends that a conversation shares with its next turn (tools, system prompt, last block) are marked for the provider's
/// cache, and so is the message before the last: what stands in the last one may be told anew in its place next time.
pub(super) fn of<'a>(request: &'a ModelRequest, provider: &str) -> Body<'a> {
    Body {
        head: head(request),
        messages: messages(&request.messages, provider),
    }
}

/// Writes all but the conversation.
fn head(request: &ModelRequest) -> Map<String, Value> {
    let mut head = Map::new();
    head.insert("model".to_owned(), json!(request.model));
    head.insert("max_tokens".to_owned(), json!(request.max_output_tokens));
    head.insert("stream".to_owned(), json!(true));
    if !request.system.trim().is_empty() {
        let mut system = json!({ "type": "text", "text": request.system });
        mark(&mut system);
        head.insert("system".to_owned(), json!([system]));
    }
    if !request.tools.is_empty() {
        let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
        tools.last_mut().map(mark);
        head.insert("tools".to_owned(), json!(tools));
        head.insert("tool_choice".to_owned(), choice(&request.tool_choice));
    }
    let mut output = Map::new();
    if let Some(schema) = &request.response_schema {
        let format = json!({ "type": "json_schema", "schema": schema });
        output.insert("format".to_owned(), format);
    }
    if let Some(effort) = request.effort {
        output.insert("effort".to_owned(), json!(effort));
    }
    if !output.is_empty() {
        head.insert("output_config".to_owned(), Value::Object(output));
    }
    head
}

fn messages<'a>(messages: &'a [Message], provider: &str) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn<'_>> = messages
        .iter()
        .map(|message| Turn {
            role: message.role,
            content: content(message, provider),
        })
        .filter(|turn| !turn.content.is_empty())
        .collect();
    for message in turns.iter_mut().rev().take(2) {
        let last = message.content.iter_mut().rfind(|part| may_be_marked(part));
        if let Some(last) = last {
            last.cache_control = Some(CacheControl::Ephemeral);
        }
    }
    turns
}

/// Returns the parts of a message, results first, since the API refuses them behind text; empty text is
/// refused as well.
fn content<'a>(message: &'a Message, provider: &str) -> Vec<Part<'a>> {
    let is_result = |block: &&Block| matches!(block, Block::ToolResult { .. });
    let results = message.blocks.iter().filter(is_result);
    let others = message.blocks.iter().filter(|block| !is_result(block));
    let said = results
        .chain(others)
        .filter_map(|block| said(block, provider));
    said.map(|said| Part {
        said,
        cache_control: None,
    })
    .collect()
}

fn said<'a>(block: &'a Block, provider: &str) -> Option<Speech<'a>> {
    Some(Speech::PlainBlock(match block {
        Block::Text(text) if text.trim().is_empty() => return None,
        Block::Text(text) => PlainBlock::Text { text },
        Block::ToolUse(call) => PlainBlock::ToolUse {
            id: &call.id,
            name: &call.name,
            input: call.input_object(),
        },
        Block::ToolResult {
            tool_use_id,
            content,
            is_error,
            images,
        } => PlainBlock::ToolResult {
            tool_use_id,
            content: tool_content(content, images),
            is_error: *is_error,
        },
        Block::Opaque {
            provider: writer,
            data,
        } if writer == provider => return data.as_object().map(Speech::Opaque),
        Block::Opaque { .. } => return None,
    }))
}

fn tool_content<'a>(content: &'a str, images: &[Image]) -> ToolContent<'a> {
    if images.is_empty() {
        return ToolContent::Text(content);
    }
    let shown = images.iter().map(|image| {
        let source = json!({
            "type": "base64", "media_type": image.kind.media_type(), "data": image.data,
        });
        json!({ "type": "image", "source": source })
    });
    let told = json!({ "type": "text", "text": content });
    ToolContent::Shown(std::iter::once(told).chain(shown).collect())
}

fn tool(tool: &ToolSpec) -> Value {
    json!({
        "name": tool.name, "description": tool.description, "input_schema": tool.parameters,
    })
}

fn choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!({ "type": "auto" }),
        ToolChoice::Required => json!({ "type": "any" }),
        ToolChoice::Tool(name) => json!({ "type": "tool", "name": name }),
        ToolChoice::None => json!({ "type": "none" }),
    }
}

/// What a model thought may bear no mark, and nothing bears two.
fn may_be_marked(part: &Part<'_>) -> bool {
    let Speech::Opaque(data) = part.said else {
        return true;
    };
    let kind = data.get("type").and_then(Value::as_str);
    let is_thought = kind.is_some_and(|kind| kind.ends_with("thinking"));
    !is_thought && !data.contains_key("cache_control")
}

fn mark(block: &mut Value) {
    if let Value::Object(fields) = block {
        let mark = json!(CacheControl::Ephemeral);
        fields.insert("cache_control".to_owned(), mark);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::tests::picture;
    use crate::message::ToolUse;
    use crate::request::Effort;

    /// Returns a body as it is sent.
    fn sent(request: &ModelRequest, provider: &str) -> Value {
        serde_json::to_value(of(request, provider)).unwrap()
    }

    fn thought(provider: &str) -> Block {
        Block::Opaque {
            provider: provider.to_owned(),
            data: json!({ "type": "thinking", "thinking": provider, "signature": "s==" }),
        }
    }

    #[test]
    fn what_a_model_thought_bears_no_mark() {
        let messages = vec![
            Message::user("go"),
            Message::assistant(vec![Block::Text("so".to_owned()), thought("anthropic")]),
        ];
        let written = sent(&ModelRequest::new("claude-x", "", messages), "anthropic");
        let said = &written["messages"][1]["content"];
        assert_eq!(said[0]["cache_control"], json!({ "type": "ephemeral" }));
        assert_eq!(said[1]["type"], "thinking");
        assert_eq!(said[1].get("cache_control"), None);
    }

    #[test]
    fn a_whole_request_is_written_with_four_cache_marks() {
        let mut request = ModelRequest::new(
            "claude-x",
            "be brief",
            vec![
                Message::user("go"),
                Message::assistant(vec![
                    thought("anthropic"),
                    thought("another"),
                    Block::Text(" ".to_owned()),
                    Block::ToolUse(ToolUse::parse("t1", "read", r#"{"path":"a"}"#)),
                    Block::ToolUse(ToolUse::parse("t2", "read", r#"{"pa"#)),
                ]),
                Message::results(vec![
                    Block::Text("and hurry".to_owned()),
                    Block::ToolResult {
                        tool_use_id: "t1".to_owned(),
                        content: "found".to_owned(),
                        is_error: false,
                        images: Vec::new(),
                    },
                ]),
                Message::user(""),
            ],
        );
        request.tools = ["read", "ls"]
            .map(|name| ToolSpec {
                name: name.to_owned(),
                description: String::new(),
                parameters: json!({ "type": "object" }),
            })
            .to_vec();
        request.tool_choice = ToolChoice::Required;
        request.response_schema = Some(json!({ "type": "object" }));
        request.effort = Some(Effort::High);
        let kept = json!({ "type": "ephemeral" });
        assert_eq!(
            sent(&request, "anthropic"),
            json!({
                "model": "claude-x", "max_tokens": 16384, "stream": true,
                "system": [{ "type": "text", "text": "be brief", "cache_control": kept }],
                "tools": [
                    { "name": "read", "description": "", "input_schema": { "type": "object" } },
                    { "name": "ls", "description": "", "input_schema": { "type": "object" },
                      "cache_control": kept },
                ],
                "tool_choice": { "type": "any" },
                "output_config": {
                    "format": { "type": "json_schema", "schema": { "type": "object" } },
                    "effort": "high" },
                "messages": [
                    { "role": "user", "content": [{ "type": "text", "text": "go" }] },
                    { "role": "assistant", "content": [
                        { "type": "thinking", "thinking": "anthropic", "signature": "s==" },
                        { "type": "tool_use", "id": "t1", "name": "read",
                          "input": { "path": "a" } },
                        { "type": "tool_use", "id": "t2", "name": "read",
                          "input": { "malformed_arguments": "{\"pa" }, "cache_control": kept },
                    ] },
                    { "role": "user", "content": [
                        { "type": "tool_result", "tool_use_id": "t1", "content": "found",
                          "is_error": false },
                        { "type": "text", "text": "and hurry", "cache_control": kept },
                    ] },
                ],
            })
        );
    }

    #[test]
    fn a_body_is_written_in_the_same_order_every_time() {
        let opaque = |data: Value| Block::Opaque {
            provider: "anthropic".to_owned(),
            data,
        };
        let blocks = vec![
            Block::ToolUse(ToolUse::parse("t", "read", r#"{"path":"a","at":1}"#)),
            opaque(json!({ "type": "seen", "cache_control": { "type": "ephemeral" } })),
            opaque(json!("no object")),
        ];
        let request = ModelRequest::new("m", "", vec![Message::assistant(blocks)]);
        assert_eq!(
            serde_json::to_string(&of(&request, "anthropic")).unwrap(),
            concat!(
                r#"{"model":"m","max_tokens":16384,"stream":true,"messages":[{"role":"assistant","content":["#,
                r#"{"type":"tool_use","id":"t","name":"read","input":{"path":"a","at":1},"#,
                r#""cache_control":{"type":"ephemeral"}},"#,
                r#"{"type":"seen","cache_control":{"type":"ephemeral"}}]}]}"#,
            )
        );
    }

    #[test]
    fn what_is_not_asked_for_is_not_sent() {
        let body = sent(&ModelRequest::new("m", "", vec![Message::user("x")]), "p");
        for field in ["system", "tools", "tool_choice", "output_config"] {
            assert!(body.get(field).is_none(), "{field}");
        }
    }

    #[test]
    fn a_picture_is_in_the_result_of_its_call() {
        let request = ModelRequest::new("m", "", vec![Message::results(vec![picture()])]);
        assert_eq!(
            sent(&request, "anthropic")["messages"][0]["content"][0]["content"],
            json!([
                { "type": "text", "text": "a.png" },
                { "type": "image", "source":
                    { "type": "base64", "media_type": "image/png", "data": "iVBOR" } },
            ])
        );
    }
}
