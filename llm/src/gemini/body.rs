//! Writes a request as `streamGenerateContent` wants it.

use serde_json::{Map, Value, json};

use super::decode::SIGNATURE;
use crate::message::{Block, Message, Role};
use crate::request::{Effort, ModelRequest, ToolChoice, ToolSpec};

/// Returns the body of a request; the model is named by its address.
pub(super) fn of(request: &ModelRequest, provider: &str) -> Value {
    let mut body = Map::new();
    if !request.system.trim().is_empty() {
        let system = json!({ "parts": [{ "text": request.system }] });
        body.insert("systemInstruction".to_owned(), system);
    }
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request.tools.iter().map(tool).collect();
        let tools = json!([{ "functionDeclarations": tools }]);
        body.insert("tools".to_owned(), tools);
        let choice = json!({ "functionCallingConfig": choice(&request.tool_choice) });
        body.insert("toolConfig".to_owned(), choice);
    }
    let mut settings = Map::new();
    let longest = request.max_output_tokens;
    settings.insert("maxOutputTokens".to_owned(), json!(longest));
    if let Some(schema) = &request.response_schema {
        let json = json!("application/json");
        settings.insert("responseMimeType".to_owned(), json);
        settings.insert("responseJsonSchema".to_owned(), schema.clone());
    }
    if let Some(effort) = request.effort {
        let thinking = json!({ "thinkingBudget": thinking_tokens(effort) });
        settings.insert("thinkingConfig".to_owned(), thinking);
    }
    body.insert("generationConfig".to_owned(), Value::Object(settings));
    let contents: Vec<Value> = request
        .messages
        .iter()
        .filter_map(|message| content(message, request, provider))
        .collect();
    body.insert("contents".to_owned(), json!(contents));
    Value::Object(body)
}

/// Says how many tokens a model may think in; every model that thinks takes these.
const fn thinking_tokens(effort: Effort) -> u32 {
    match effort {
        Effort::Low => 1_024,
        Effort::Medium => 8_192,
        Effort::High => 24_576,
    }
}

/// Writes a message; none where it says nothing. Results come first: they belong to the calls before them.
fn content(message: &Message, request: &ModelRequest, provider: &str) -> Option<Value> {
    let is_result = |block: &&Block| matches!(block, Block::ToolResult { .. });
    let results = message.blocks.iter().filter(is_result);
    let others = message.blocks.iter().filter(|block| !is_result(block));
    let mut parts: Vec<Value> = Vec::new();
    let mut signature: Option<Value> = None;
    for block in results.chain(others) {
        if let Block::Opaque {
            provider: writer,
            data,
        } = block
        {
            if writer != provider {
                continue;
            }
            parts.extend(signature.take().map(signed_nothing));
            match data.get(SIGNATURE) {
                // It belongs to the part that follows.
                Some(mark) if data.get("text").is_none() => signature = Some(mark.clone()),
                _ => parts.push(data.clone()),
            }
            continue;
        }
        let Some(mut part) = part(block, request) else {
            continue;
        };
        if let Some(mark) = signature.take() {
            part[SIGNATURE] = mark;
        }
        parts.push(part);
    }
    parts.extend(signature.map(signed_nothing));
    parts.extend(shown(message));
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "model",
    };
    (!parts.is_empty()).then(|| json!({ "role": role, "parts": parts }))
}

/// Writes the pictures that tools show: only some models take them in a result, and all beside it.
fn shown(message: &Message) -> impl Iterator<Item = Value> {
    let results = message.blocks.iter().filter_map(|block| match block {
        Block::ToolResult { images, .. } => Some(images),
        _ => None,
    });
    results.flatten().map(|image| {
        let data = json!({ "mimeType": image.kind.media_type(), "data": image.data });
        json!({ "inlineData": data })
    })
}

/// Gives a signature back that no words followed.
fn signed_nothing(signature: Value) -> Value {
    let mut part = json!({ "text": "" });
    part[SIGNATURE] = signature;
    part
}

fn part(block: &Block, request: &ModelRequest) -> Option<Value> {
    Some(match block {
        Block::Text(text) if text.is_empty() => return None,
        Block::Text(text) => json!({ "text": text }),
        Block::ToolUse(call) => json!({
            "functionCall": { "id": call.id, "name": call.name, "args": call.input_object() },
        }),
        Block::ToolResult {
            tool_use_id,
            content,
            is_error,
            ..
        } => {
            let key = if *is_error { "error" } else { "output" };
            let mut response = Map::new();
            response.insert(key.to_owned(), json!(content));
            let name = called(tool_use_id, request);
            json!({ "functionResponse": { "id": tool_use_id, "name": name, "response": response } })
        }
        Block::Opaque { .. } => return None,
    })
}

/// Returns the tool of a call, which the format wants beside each result.
fn called<'a>(id: &str, request: &'a ModelRequest) -> &'a str {
    let mut blocks = request.messages.iter().flat_map(|message| &message.blocks);
    let name = blocks.find_map(|block| match block {
        Block::ToolUse(call) if call.id == id => Some(call.name.as_str()),
        _ => None,
    });
    name.unwrap_or_default()
}

fn tool(tool: &ToolSpec) -> Value {
    json!({
        "name": tool.name, "description": tool.description,
        "parametersJsonSchema": tool.parameters,
    })
}

fn choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!({ "mode": "AUTO" }),
        ToolChoice::Required => json!({ "mode": "ANY" }),
        ToolChoice::None => json!({ "mode": "NONE" }),
        ToolChoice::Tool(name) => json!({ "mode": "ANY", "allowedFunctionNames": [name] }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::tests::picture;
    use crate::message::ToolUse;
    use crate::request::tests::begins_as_before;

    fn opaque(provider: &str, data: Value) -> Block {
        Block::Opaque {
            provider: provider.to_owned(),
            data,
        }
    }

    #[test]
    fn a_request_begins_with_all_that_the_one_before_it_told() {
        begins_as_before(|request| of(request, "p"), "contents");
    }

    #[test]
    fn a_whole_request_is_written() {
        let call = |id: &str| Block::ToolUse(ToolUse::parse(id, "read", r#"{"path":"a"}"#));
        let result = Block::ToolResult {
            tool_use_id: "t1".to_owned(),
            content: "gone".to_owned(),
            is_error: true,
            images: Vec::new(),
        };
        let mut request = ModelRequest::new(
            "gemini-x",
            "be brief",
            vec![
                Message::user("go"),
                Message::assistant(vec![
                    opaque(
                        "p",
                        json!({ "thought": true, "text": "hm", SIGNATURE: "s0" }),
                    ),
                    opaque("another", json!({ SIGNATURE: "foreign" })),
                    Block::Text("reading".to_owned()),
                    opaque("p", json!({ SIGNATURE: "s1" })),
                    call("t1"),
                    opaque("p", json!({ SIGNATURE: "s2" })),
                ]),
                Message::results(vec![Block::Text("and hurry".to_owned()), result]),
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
        request.effort = Some(Effort::Low);
        assert_eq!(
            of(&request, "p"),
            json!({
                "systemInstruction": { "parts": [{ "text": "be brief" }] },
                "tools": [{ "functionDeclarations": [{ "name": "read", "description": "reads",
                    "parametersJsonSchema": { "type": "object" } }] }],
                "toolConfig": { "functionCallingConfig":
                    { "mode": "ANY", "allowedFunctionNames": ["read"] } },
                "generationConfig": { "maxOutputTokens": 16384,
                    "responseMimeType": "application/json",
                    "responseJsonSchema": { "type": "object" },
                    "thinkingConfig": { "thinkingBudget": 1024 } },
                "contents": [
                    { "role": "user", "parts": [{ "text": "go" }] },
                    { "role": "model", "parts": [
                        { "thought": true, "text": "hm", "thoughtSignature": "s0" },
                        { "text": "reading" },
                        { "functionCall": { "id": "t1", "name": "read", "args": { "path": "a" } },
                          "thoughtSignature": "s1" },
                        { "text": "", "thoughtSignature": "s2" } ] },
                    { "role": "user", "parts": [
                        { "functionResponse": { "id": "t1", "name": "read",
                            "response": { "error": "gone" } } },
                        { "text": "and hurry" } ] },
                ],
            })
        );
    }

    #[test]
    fn a_picture_is_beside_the_response_of_its_call() {
        let request = ModelRequest::new("m", "", vec![Message::results(vec![picture()])]);
        assert_eq!(
            of(&request, "p")["contents"][0]["parts"],
            json!([
                { "functionResponse":
                    { "id": "t1", "name": "", "response": { "output": "a.png" } } },
                { "inlineData": { "mimeType": "image/png", "data": "iVBOR" } },
            ])
        );
    }
}
