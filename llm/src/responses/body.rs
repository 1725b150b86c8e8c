//! Writes a request as Responses wants it.

use serde_json::{Map, Value, json};

use crate::image::Image;
use crate::message::{Block, Message, Role};
use crate::request::{ModelRequest, ToolChoice, ToolSpec};

/// Returns the body of a request. The conversation goes along whole, and the provider is asked to keep nothing of it.
pub(super) fn of(request: &ModelRequest, provider: &str) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(request.model));
    let longest = request.max_output_tokens;
    body.insert("max_output_tokens".to_owned(), json!(longest));
    body.insert("stream".to_owned(), json!(true));
    body.insert("store".to_owned(), json!(false));
    if !request.system.trim().is_empty() {
        body.insert("instructions".to_owned(), json!(request.system));
    }
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request.tools.iter().map(tool).collect();
        body.insert("tools".to_owned(), json!(tools));
        body.insert("tool_choice".to_owned(), choice(&request.tool_choice));
    }
    if let Some(schema) = &request.response_schema {
        let format =
            json!({ "type": "json_schema", "name": "reply", "strict": false, "schema": schema });
        body.insert("text".to_owned(), json!({ "format": format }));
    }
    if let Some(effort) = request.effort {
        body.insert("reasoning".to_owned(), json!({ "effort": effort }));
        // Nothing is left with the provider, so what the model thought comes along, unreadable, and is given back.
        let thought = json!(["reasoning.encrypted_content"]);
        body.insert("include".to_owned(), thought);
    }
    let messages = request.messages.iter();
    let input: Vec<Value> = messages
        .flat_map(|message| items(message, provider))
        .collect();
    body.insert("input".to_owned(), json!(input));
    Value::Object(body)
}

/// Writes a message as the items that it is made of. Results come first: they belong to the calls before them.
fn items(message: &Message, provider: &str) -> Vec<Value> {
    let is_result = |block: &&Block| matches!(block, Block::ToolResult { .. });
    let results = message.blocks.iter().filter(is_result);
    let others = message.blocks.iter().filter(|block| !is_result(block));
    results
        .chain(others)
        .filter_map(|block| item(message.role, block, provider))
        .collect()
}

fn item(role: Role, block: &Block, provider: &str) -> Option<Value> {
    Some(match block {
        Block::Text(text) if text.is_empty() => return None,
        Block::Text(text) => {
            let kind = match role {
                Role::User => "input_text",
                Role::Assistant => "output_text",
            };
            json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] })
        }
        Block::ToolUse(call) => json!({
            "type": "function_call", "call_id": call.id, "name": call.name,
            "arguments": call.input_object().to_string(),
        }),
        Block::ToolResult {
            tool_use_id,
            content,
            is_error,
            images,
        } => {
            // The format has no field for failure, so the text says it.
            let told = if *is_error {
                format!("Error: {content}")
            } else {
                content.clone()
            };
            let output = result(&told, images);
            json!({ "type": "function_call_output", "call_id": tool_use_id, "output": output })
        }
        Block::Opaque {
            provider: writer,
            data,
        } if writer == provider => data.clone(),
        Block::Opaque { .. } => return None,
    })
}

/// Writes what a tool told and shows.
fn result(told: &str, images: &[Image]) -> Value {
    if images.is_empty() {
        return json!(told);
    }
    let shown = images
        .iter()
        .map(|image| json!({ "type": "input_image", "image_url": image.data_url() }));
    let told = json!({ "type": "input_text", "text": told });
    std::iter::once(told).chain(shown).collect()
}

fn tool(tool: &ToolSpec) -> Value {
    json!({
        "type": "function", "name": tool.name, "description": tool.description,
        "parameters": tool.parameters, "strict": false,
    })
}

fn choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::Required => json!("required"),
        ToolChoice::None => json!("none"),
        ToolChoice::Tool(name) => json!({ "type": "function", "name": name }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::tests::picture;
    use crate::message::ToolUse;
    use crate::request::Effort;
    use crate::request::tests::begins_as_before;

    fn thought(provider: &str) -> Block {
        Block::Opaque {
            provider: provider.to_owned(),
            data: json!({ "type": "reasoning", "id": provider, "encrypted_content": "x" }),
        }
    }

    #[test]
    fn a_request_begins_with_all_that_the_one_before_it_told() {
        begins_as_before(|request| of(request, "p"), "input");
    }

    #[test]
    fn a_whole_request_is_written() {
        let result = Block::ToolResult {
            tool_use_id: "t1".to_owned(),
            content: "gone".to_owned(),
            is_error: true,
            images: Vec::new(),
        };
        let mut request = ModelRequest::new(
            "gpt-x",
            "be brief",
            vec![
                Message::user("go"),
                Message::assistant(vec![
                    thought("p"),
                    thought("another"),
                    Block::Text("reading".to_owned()),
                    Block::ToolUse(ToolUse::parse("t1", "read", r#"{"path":"a"}"#)),
                ]),
                Message::results(vec![Block::Text("and hurry".to_owned()), result]),
            ],
        );
        request.tools = vec![ToolSpec {
            name: "read".to_owned(),
            description: "reads".to_owned(),
            parameters: json!({ "type": "object" }),
        }];
        request.tool_choice = ToolChoice::Tool("read".to_owned());
        request.effort = Some(Effort::Medium);
        let said = |role: &str, kind: &str, text: &str| {
            json!({ "type": "message", "role": role,
                    "content": [{ "type": kind, "text": text }] })
        };
        assert_eq!(
            of(&request, "p"),
            json!({
                "model": "gpt-x", "max_output_tokens": 16384, "stream": true, "store": false,
                "instructions": "be brief",
                "tools": [{ "type": "function", "name": "read", "description": "reads",
                            "parameters": { "type": "object" }, "strict": false }],
                "tool_choice": { "type": "function", "name": "read" },
                "reasoning": { "effort": "medium" },
                "include": ["reasoning.encrypted_content"],
                "input": [
                    said("user", "input_text", "go"),
                    { "type": "reasoning", "id": "p", "encrypted_content": "x" },
                    said("assistant", "output_text", "reading"),
                    { "type": "function_call", "call_id": "t1", "name": "read",
                      "arguments": "{\"path\":\"a\"}" },
                    { "type": "function_call_output", "call_id": "t1", "output": "Error: gone" },
                    said("user", "input_text", "and hurry"),
                ],
            })
        );
    }

    #[test]
    fn a_picture_is_in_the_output_of_its_call() {
        let request = ModelRequest::new("m", "", vec![Message::results(vec![picture()])]);
        assert_eq!(
            of(&request, "p")["input"][0]["output"],
            json!([
                { "type": "input_text", "text": "a.png" },
                { "type": "input_image", "image_url": "data:image/png;base64,iVBOR" },
            ])
        );
    }
}
