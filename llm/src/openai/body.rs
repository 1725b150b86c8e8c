//! Writes a request as chat completions want it.

use serde_json::{Map, Value, json};

use crate::message::{Block, Message, Role, ToolUse};
use crate::request::{ModelRequest, ToolChoice, ToolSpec};

/// Returns the body of a request; servers disagree on the name of the field that bounds the output.
pub(super) fn of(request: &ModelRequest, max_tokens_field: &str) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(request.model));
    body.insert(
        max_tokens_field.to_owned(),
        json!(request.max_output_tokens),
    );
    body.insert("stream".to_owned(), json!(true));
    body.insert(
        "stream_options".to_owned(),
        json!({ "include_usage": true }),
    );
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request.tools.iter().map(tool).collect();
        body.insert("tools".to_owned(), json!(tools));
        body.insert("tool_choice".to_owned(), choice(&request.tool_choice));
    }
    if let Some(effort) = request.effort {
        body.insert("reasoning_effort".to_owned(), json!(effort));
    }
    if let Some(schema) = &request.response_schema {
        body.insert("response_format".to_owned(), response_format(schema));
    }
    let mut messages = Vec::new();
    if !request.system.trim().is_empty() {
        messages.push(json!({ "role": "system", "content": request.system }));
    }
    for message in &request.messages {
        match message.role {
            Role::User => user(message, &mut messages),
            Role::Assistant => messages.extend(assistant(message)),
        }
    }
    body.insert("messages".to_owned(), json!(messages));
    Value::Object(body)
}

/// Writes the results of tools, which are messages of their own here, and then what was said.
fn user(message: &Message, messages: &mut Vec<Value>) {
    for block in &message.blocks {
        if let Block::ToolResult {
            tool_use_id,
            content,
            is_error,
            ..
        } = block
        {
            // The format has no field for failure, so the text says it.
            let content = if *is_error {
                format!("Error: {content}")
            } else {
                content.clone()
            };
            messages.push(json!({
                "role": "tool", "tool_call_id": tool_use_id, "content": content,
            }));
        }
    }
    let text = text(message);
    let shown = shown(message);
    if !shown.is_empty() {
        let told = (!text.is_empty()).then(|| json!({ "type": "text", "text": text }));
        let parts: Vec<Value> = shown.into_iter().chain(told).collect();
        messages.push(json!({ "role": "user", "content": parts }));
    } else if !text.is_empty() {
        messages.push(json!({ "role": "user", "content": text }));
    }
}

/// Writes the pictures that tools show: the result of a tool can only be text here, so they follow as a user's.
fn shown(message: &Message) -> Vec<Value> {
    let results = message.blocks.iter().filter_map(|block| match block {
        Block::ToolResult { images, .. } => Some(images),
        _ => None,
    });
    let images = results.flatten();
    images
        .map(|image| json!({ "type": "image_url", "image_url": { "url": image.data_url() } }))
        .collect()
}

fn assistant(message: &Message) -> Option<Value> {
    let text = text(message);
    let calls: Vec<Value> = message
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::ToolUse(call) => Some(tool_call(call)),
            _ => None,
        })
        .collect();
    match (text.is_empty(), calls.is_empty()) {
        (true, true) => None,
        (false, true) => Some(json!({ "role": "assistant", "content": text })),
        (true, false) => Some(json!({ "role": "assistant", "content": null, "tool_calls": calls })),
        (false, false) => {
            Some(json!({ "role": "assistant", "content": text, "tool_calls": calls }))
        }
    }
}

fn text(message: &Message) -> String {
    let texts: Vec<&str> = message
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text(text) if !text.is_empty() => Some(text.as_str()),
            _ => None,
        })
        .collect();
    texts.join("\n\n")
}

fn tool_call(call: &ToolUse) -> Value {
    json!({
        "id": call.id,
        "type": "function",
        "function": { "name": call.name, "arguments": call.input_object().to_string() },
    })
}

fn tool(tool: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.name, "description": tool.description, "parameters": tool.parameters,
        },
    })
}

fn choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::Required => json!("required"),
        ToolChoice::None => json!("none"),
        ToolChoice::Tool(name) => json!({ "type": "function", "function": { "name": name } }),
    }
}

fn response_format(schema: &Value) -> Value {
    json!({
        "type": "json_schema",
        "json_schema": { "name": "reply", "strict": is_strict(schema), "schema": schema },
    })
}

/// Tells whether a schema keeps OpenAI's rules for strict ones, which it refuses to bend: every object closed,
/// every property required.
fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            let closed = fields.get("properties").is_none_or(|properties| {
                let named = properties.as_object().map_or(0, Map::len);
                let required = fields.get("required").and_then(Value::as_array);
                fields.get("additionalProperties") == Some(&Value::Bool(false))
                    && required.map_or(0, Vec::len) == named
            });
            closed && fields.values().all(is_strict)
        }
        Value::Array(items) => items.iter().all(is_strict),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::tests::picture;
    use crate::request::tests::begins_as_before;

    #[test]
    fn a_request_begins_with_all_that_the_one_before_it_told() {
        begins_as_before(|request| of(request, "max_tokens"), "messages");
    }

    #[test]
    fn a_whole_request_is_written() {
        let mut request = ModelRequest::new(
            "gpt-x",
            "be brief",
            vec![
                Message::user("go"),
                Message::assistant(vec![
                    Block::Text("reading".to_owned()),
                    Block::ToolUse(ToolUse::parse("t1", "read", r#"{"path":"a"}"#)),
                ]),
                Message::results(vec![
                    Block::Text("and hurry".to_owned()),
                    Block::ToolResult {
                        tool_use_id: "t1".to_owned(),
                        content: "gone".to_owned(),
                        is_error: true,
                        images: Vec::new(),
                    },
                ]),
                Message::assistant(vec![Block::ToolUse(ToolUse::parse("t2", "read", "{"))]),
                Message::assistant(vec![]),
            ],
        );
        request.tools = vec![ToolSpec {
            name: "read".to_owned(),
            description: "reads".to_owned(),
            parameters: json!({ "type": "object" }),
        }];
        request.tool_choice = ToolChoice::Tool("read".to_owned());
        request.response_schema = Some(json!({ "type": "object" }));
        request.effort = Some(crate::request::Effort::Low);
        let function = |id: &str, arguments: &str| {
            json!({ "id": id, "type": "function",
                    "function": { "name": "read", "arguments": arguments } })
        };
        assert_eq!(
            of(&request, "max_tokens"),
            json!({
                "model": "gpt-x", "max_tokens": 16384, "stream": true,
                "stream_options": { "include_usage": true },
                "tools": [{ "type": "function", "function": {
                    "name": "read", "description": "reads",
                    "parameters": { "type": "object" } } }],
                "tool_choice": { "type": "function", "function": { "name": "read" } },
                "response_format": { "type": "json_schema", "json_schema": {
                    "name": "reply", "strict": true, "schema": { "type": "object" } } },
                "reasoning_effort": "low",
                "messages": [
                    { "role": "system", "content": "be brief" },
                    { "role": "user", "content": "go" },
                    { "role": "assistant", "content": "reading",
                      "tool_calls": [function("t1", r#"{"path":"a"}"#)] },
                    { "role": "tool", "tool_call_id": "t1", "content": "Error: gone" },
                    { "role": "user", "content": "and hurry" },
                    { "role": "assistant", "content": null,
                      "tool_calls": [function("t2", r#"{"malformed_arguments":"{"}"#)] },
                ],
            })
        );
    }

    #[test]
    fn only_closed_schemas_are_strict() {
        let closed = json!({ "type": "object", "additionalProperties": false,
            "required": ["a"], "properties": { "a": { "type": "string" } } });
        let open_inside = json!({ "type": "object", "additionalProperties": false,
            "required": ["a"], "properties": { "a": { "type": "object",
                "properties": { "b": { "type": "string" } } } } });
        let optional = json!({ "type": "object", "additionalProperties": false,
            "required": [], "properties": { "a": { "type": "string" } } });
        let cases = [(closed, true), (open_inside, false), (optional, false)];
        for (schema, strict) in cases {
            assert_eq!(is_strict(&schema), strict, "{schema}");
        }
    }

    #[test]
    fn a_picture_follows_the_results_as_a_users() {
        let blocks = vec![Block::Text("and hurry".to_owned()), picture()];
        let request = ModelRequest::new("m", "", vec![Message::results(blocks)]);
        assert_eq!(
            of(&request, "max_tokens")["messages"],
            json!([
                { "role": "tool", "tool_call_id": "t1", "content": "a.png" },
                { "role": "user", "content": [
                    { "type": "image_url", "image_url": { "url": "data:image/png;base64,iVBOR" } },
                    { "type": "text", "text": "and hurry" },
                ] },
            ])
        );
    }
}
