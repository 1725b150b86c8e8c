//! Says when a conversation has grown too long, and how long it is.

use ropewalk_config::Prompts;
use ropewalk_llm::{Block, Image, Message, ModelRequest};

use crate::context::estimate_tokens;

/// What a window has to leave for the reply.
const REPLY_TOKENS: u32 = 16_384;
/// What a message costs beside its words.
const MESSAGE_TOKENS: u64 = 4;

/// Says when room is made in a conversation, and in which words.
#[derive(Debug, Clone)]
pub struct CompactionPolicy {
    /// The most tokens that a conversation may have, as estimated.
    pub threshold_tokens: u64,
    /// The words for those who sum up, and for those who go on from a summary.
    pub prompts: Prompts,
}

impl CompactionPolicy {
    /// Returns the most tokens that a conversation with a model of this window may have. A window that a reply
    /// would nearly fill is shared in halves.
    pub(crate) fn limit(&self, window_tokens: Option<u64>) -> u64 {
        let reply = u64::from(REPLY_TOKENS);
        let room = window_tokens.map(|window| {
            if window < reply + reply / 8 {
                window / 2
            } else {
                window - reply
            }
        });
        room.map_or(self.threshold_tokens, |room| {
            room.min(self.threshold_tokens)
        })
    }
}

/// Returns how many tokens the reply to a request of so many may have: as many as are `wanted` where the window has room
/// for them beside it, else those that a window leaves for a reply at least. A provider refuses what would go beyond the window.
pub(crate) fn reply_tokens(wanted: u32, asked: u64, window_tokens: Option<u64>) -> u32 {
    let fits = |window: u64| asked.saturating_add(u64::from(wanted)) <= window;
    if wanted <= REPLY_TOKENS || window_tokens.is_none_or(fits) {
        wanted
    } else {
        REPLY_TOKENS
    }
}

/// Estimates the tokens of a request, its system prompt and its tools among them.
pub(crate) fn request_tokens(request: &ModelRequest) -> u64 {
    let tools = request.tools.iter().map(|tool| {
        tokens(&tool.name) + tokens(&tool.description) + tokens(&tool.parameters.to_string())
    });
    tokens(&request.system) + tools.sum::<u64>() + message_tokens(&request.messages)
}

/// Estimates the tokens of messages.
pub(crate) fn message_tokens(messages: &[Message]) -> u64 {
    let of_block = |block: &Block| match block {
        Block::Text(text) => tokens(text),
        Block::ToolUse(call) => tokens(&call.name) + tokens(&call.input.to_string()),
        Block::ToolResult {
            content, images, ..
        } => tokens(content) + images.iter().map(Image::tokens).sum::<u64>(),
        Block::Opaque { data, .. } => tokens(&data.to_string()),
    };
    let of_message =
        |message: &Message| MESSAGE_TOKENS + message.blocks.iter().map(of_block).sum::<u64>();
    messages.iter().map(of_message).sum()
}

fn tokens(text: &str) -> u64 {
    u64::try_from(estimate_tokens(text)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_characters_are_a_token_and_every_message_costs_some_more() {
        let mut request = ModelRequest::new("m", "s".repeat(2_000), Vec::new());
        assert_eq!(request_tokens(&request), 500);
        request.messages.push(Message::user("x".repeat(2_000)));
        assert_eq!(request_tokens(&request), 1_000 + MESSAGE_TOKENS);
    }

    #[test]
    fn a_reply_is_as_long_as_it_may_be_where_the_window_has_room_for_it() {
        let rows = [
            (32_000, None, 32_000),
            (32_000, Some(1_000_000), 32_000),
            (32_000, Some(42_000), 32_000),
            (32_000, Some(41_999), 16_384),
            (32_000, Some(8_192), 16_384),
            (4_096, Some(8_192), 4_096),
        ];
        for (wanted, window, expected) in rows {
            assert_eq!(reply_tokens(wanted, 10_000, window), expected, "{window:?}");
        }
    }

    #[test]
    fn the_limit_is_the_configured_one_or_what_the_window_leaves() {
        let policy = CompactionPolicy {
            threshold_tokens: 160_000,
            prompts: Prompts::shipped().unwrap(),
        };
        let rows = [
            (None, 160_000),
            (Some(1_000_000), 160_000),
            (Some(128_000), 111_616),
            (Some(20_000), 3_616),
            (Some(8_192), 4_096),
        ];
        for (window, limit) in rows {
            assert_eq!(policy.limit(window), limit, "{window:?}");
        }
    }
}
