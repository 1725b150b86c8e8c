//! Reads what the body of a request tells, in whatever format it is.

use ropewalk_llm::{Block, ModelRequest};
use serde_json::{Map, Value};

/// The fields of a body, in all formats, below which the conversation lies.
const TOLD: [&str; 6] = [
    "system",
    "systemInstruction",
    "instructions",
    "messages",
    "contents",
    "input",
];

/// The field of a body below which the tools lie.
const TOOLS: &str = "tools";

/// Returns what `request` has and the body does not tell.
pub(super) fn missing(request: &ModelRequest, body: &Value) -> Vec<String> {
    let (mut told, mut offered) = (Vec::new(), Vec::new());
    for field in TOLD {
        texts(&body[field], &mut told);
    }
    texts(&body[TOOLS], &mut offered);
    let blocks = request.messages.iter().flat_map(|message| &message.blocks);
    let mut missing: Vec<String> = std::iter::once(request.system.clone())
        .chain(blocks.flat_map(pieces))
        // What says nothing need not be sent.
        .filter(|piece| !piece.trim().is_empty())
        .filter(|piece| !told.iter().any(|text| text.contains(piece)))
        .collect();
    for tool in &request.tools {
        for piece in [&tool.name, &tool.description] {
            if !offered.contains(piece) {
                missing.push(piece.clone());
            }
        }
    }
    missing
}

/// Returns the words of a block, and what pairs calls with results.
fn pieces(block: &Block) -> Vec<String> {
    match block {
        Block::Text(text) => vec![text.clone()],
        Block::ToolUse(call) => {
            let mut pieces = vec![call.id.clone(), call.name.clone()];
            texts(&call.input, &mut pieces);
            pieces
        }
        Block::ToolResult {
            tool_use_id,
            content,
            images,
            ..
        } => {
            let mut pieces = vec![tool_use_id.clone(), content.clone()];
            pieces.extend(images.iter().map(|image| image.data.clone()));
            pieces
        }
        // Nobody but who wrote it is told, and this server writes none.
        Block::Opaque { .. } => Vec::new(),
    }
}

/// Collects every text below `value`, and the names of its fields; some formats have arguments as a text, which is read.
fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            found.push(text.clone());
            if let Ok(arguments) = serde_json::from_str::<Map<String, Value>>(text) {
                texts(&Value::Object(arguments), found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| texts(value, found)),
        Value::Object(fields) => {
            for (name, value) in fields {
                found.push(name.clone());
                texts(value, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_llm::{Message, ToolSpec, ToolUse};
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_body_leaves_out_is_found() {
        let mut request = ModelRequest::new(
            "m",
            "be brief",
            vec![
                Message::user("go"),
                Message::assistant(vec![Block::ToolUse(ToolUse::parse(
                    "t1",
                    "read",
                    r#"{"path":"a"}"#,
                ))]),
                Message::results(vec![Block::ToolResult {
                    tool_use_id: "t1".to_owned(),
                    content: "found".to_owned(),
                    is_error: true,
                    images: Vec::new(),
                }]),
            ],
        );
        request.tools = vec![ToolSpec {
            name: "read".to_owned(),
            description: "reads".to_owned(),
            parameters: json!({ "type": "object" }),
        }];
        let call = json!({ "call_id": "t1", "name": "read", "arguments": "{\"path\":\"a\"}" });
        let whole = json!({
            "instructions": "be brief",
            "input": ["go", call, { "call_id": "t1", "output": "Error: found" }],
            "tools": [{ "name": "read", "description": "reads" }],
        });
        assert_eq!(missing(&request, &whole), Vec::<String>::new());
        for (field, left, expected) in [
            ("instructions", json!(""), vec!["be brief"]),
            ("input", json!(["go", call]), vec!["found"]),
            ("tools", json!([{ "name": "read" }]), vec!["reads"]),
        ] {
            let mut cut = whole.clone();
            cut[field] = left;
            assert_eq!(missing(&request, &cut), expected, "{field}");
        }
    }
}
