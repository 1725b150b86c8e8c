//! Keeps secrets out of what a model is told, and out of what is done with what it says.
//!
//! A reply is struck before it is journaled, so that a replay acts on the same words.

use ropewalk_llm::{Block, ModelRequest, Reply};
use ropewalk_runtime::secrets;

/// Strikes secrets out of all that a model would read.
pub(super) fn strike_request(request: &mut ModelRequest) {
    secrets::strike_out(&mut request.system);
    for message in &mut request.messages {
        strike_blocks(&mut message.blocks);
    }
}

/// Strikes secrets out of all that a model said.
pub(super) fn strike_reply(reply: &mut Reply) {
    strike_blocks(&mut reply.blocks);
}

/// What may not be changed and holds a secret is left out whole.
fn strike_blocks(blocks: &mut Vec<Block>) {
    blocks.retain(|block| match block {
        Block::Opaque { data, .. } => !secrets::is_in(data.to_string().as_bytes()),
        _ => true,
    });
    blocks.iter_mut().for_each(strike_block);
}

fn strike_block(block: &mut Block) {
    match block {
        Block::Text(text) => secrets::strike_out(text),
        Block::ToolUse(call) => secrets::strike_json(&mut call.input),
        Block::ToolResult {
            content, images, ..
        } => {
            secrets::strike_out(content);
            images.retain(|image| !secrets::is_in(image.data.as_bytes()));
        }
        Block::Opaque { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_llm::{Message, ToolUse};

    use super::*;

    #[test]
    fn a_secret_is_in_no_part_of_a_prompt() {
        let canary = "sk-canary-of-prompts-1";
        secrets::keep([canary]);
        let arguments = format!(r#"{{"path":"a","content":["{canary}"]}}"#);
        let messages = vec![
            Message::user(format!("my key is {canary}")),
            Message::assistant(vec![Block::ToolUse(ToolUse::parse(
                "t", "write", &arguments,
            ))]),
            Message::assistant(vec![Block::ToolUse(ToolUse::parse("u", "write", canary))]),
            Message::assistant(vec![Block::Opaque {
                provider: "p".to_owned(),
                data: serde_json::json!({ "thinking": canary }),
            }]),
            Message::results(vec![Block::ToolResult {
                tool_use_id: "t".to_owned(),
                content: format!("1: {canary}"),
                is_error: false,
                images: Vec::new(),
            }]),
        ];
        let mut request = ModelRequest::new("m", format!("be brief {canary}"), messages);
        strike_request(&mut request);
        let text = request.text();
        assert!(!text.contains(canary), "{text}");
        assert_eq!(text.matches(secrets::STRUCK).count(), 5, "{text}");
    }
}
