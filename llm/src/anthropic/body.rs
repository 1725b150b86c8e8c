//! Writes a request as the Messages API wants it.

use serde_json::{Map, Value, json};

use crate::image::Image;
use crate::message::{Block, Message, Role};
use crate::request::{ModelRequest, ToolChoice, ToolSpec};

/// Returns the body of a request.
///
/// The ends that a conversation shares with its next turn (tools, system prompt, last block) are marked for the provider's
/// cache, and so is the message before the last: what stands in the last one may be told anew in its place next time.
pub(super) fn of(request: &ModelRequest, provider: &str) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(request.model));
    body.insert("max_tokens".to_owned(), json!(request.max_output_tokens));
    body.insert("stream".to_owned(), json!(true));
    if !request.system.trim().is_empty() {
        let mut system = json!({ "type": "text", "text": request.system });
        mark(&mut system);
        body.insert("system".to_owned(), json!([system]));
    }
    if !request.tools.is_empty() {
        let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
        tools.last_mut().map(mark);
        body.insert("tools".to_owned(), json!(tools));
        body.insert("tool_choice".to_owned(), choice(&request.tool_choice));
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
        body.insert("output_config".to_owned(), Value::Object(output));
    }
    let messages = messages(&request.messages, provider);
    body.insert("messages".to_owned(), messages);
    Value::Object(body)
}

fn messages(messages: &[Message], provider: &str) -> Value {
    let mut messages: Vec<(Role, Vec<Value>)> = messages
        .iter()
        .map(|message| (message.role, content(message, provider)))
        .filter(|(_, content)| !content.is_empty())
        .collect();
    for (_, content) in messages.iter_mut().rev().take(2) {
        // What a model thought may bear no mark.
        content
            .iter_mut()
            .rfind(|block| may_be_marked(block))
            .map(mark);
    }
    messages
        .into_iter()
        .map(|(role, content)| json!({ "role": role, "content": content }))
        .collect()
}

/// Returns the blocks of a message, results first, since the API refuses them behind text; empty text is
/// refused as well.
fn content(message: &Message, provider: &str) -> Vec<Value> {
    let is_result = |block: &&Block| matches!(block, Block::ToolResult { .. });
    let results = message.blocks.iter().filter(is_result);
    let others = message.blocks.iter().filter(|block| !is_result(block));
    results
        .chain(others)
        .filter_map(|one| block(one, provider))
        .collect()
}

fn block(block: &Block, provider: &str) -> Option<Value> {
    Some(match block {
        Block::Text(text) if text.trim().is_empty() => return None,
        Block::Text(text) => json!({ "type": "text", "text": text }),
        Block::ToolUse(call) => json!({
            "type": "tool_use", "id": call.id, "name": call.name, "input": call.input_object(),
        }),
        Block::ToolResult {
            tool_use_id,
            content,
            is_error,
            images,
        } => json!({
            "type": "tool_result", "tool_use_id": tool_use_id, "content": result(content, images),
            "is_error": is_error,
        }),
        Block::Opaque {
            provider: writer,
            data,
        } if writer == provider => data.clone(),
        Block::Opaque { .. } => return None,
    })
}

/// Writes what a tool told and shows.
fn result(content: &str, images: &[Image]) -> Value {
    if images.is_empty() {
        return json!(content);
    }
    let shown = images.iter().map(|image| {
        let source = json!({
            "type": "base64", "media_type": image.kind.media_type(), "data": image.data,
        });
        json!({ "type": "image", "source": source })
    });
    let told = json!({ "type": "text", "text": content });
    std::iter::once(told).chain(shown).collect()
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

fn may_be_marked(block: &Value) -> bool {
    let kind = block.get("type").and_then(Value::as_str);
    !kind.is_some_and(|kind| kind.ends_with("thinking"))
}

/// Marks the end of a prefix that the provider may keep.
fn mark(block: &mut Value) {
    if let Value::Object(fields) = block {
        fields.insert("cache_control".to_owned(), json!({ "type": "ephemeral" }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::tests::picture;
    use crate::message::ToolUse;
    use crate::request::Effort;

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
        let written = of(&ModelRequest::new("claude-x", "", messages), "anthropic");
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
            of(&request, "anthropic"),
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
    fn what_is_not_asked_for_is_not_sent() {
        let body = of(&ModelRequest::new("m", "", vec![Message::user("x")]), "p");
        for field in ["system", "tools", "tool_choice", "output_config"] {
            assert!(body.get(field).is_none(), "{field}");
        }
    }

    #[test]
    fn a_picture_is_in_the_result_of_its_call() {
        let request = ModelRequest::new("m", "", vec![Message::results(vec![picture()])]);
        assert_eq!(
            of(&request, "anthropic")["messages"][0]["content"][0]["content"],
            json!([
                { "type": "text", "text": "a.png" },
                { "type": "image", "source":
                    { "type": "base64", "media_type": "image/png", "data": "iVBOR" } },
            ])
        );
    }
}
