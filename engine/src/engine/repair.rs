//! Pairs every tool call of a conversation with a result, because providers refuse a conversation that does not.

use std::collections::BTreeSet;

use ropewalk_llm::{Block, Message, Role};

/// What the model reads in place of a result that was lost.
const LOST: &str =
    "the call was interrupted before it gave a result; call it again if you still need it";

/// Gives each call without a result an error result, and drops results that no call asked for.
pub(crate) fn repair(messages: &mut Vec<Message>) {
    let mut index = 0;
    let mut open: Vec<String> = Vec::new();
    while index < messages.len() {
        if messages[index].role == Role::Assistant {
            if !open.is_empty() {
                messages.insert(index, Message::results(lost(&open)));
                index += 1;
            }
            open = calls(&messages[index]);
        } else {
            answer(&mut messages[index], &open);
            open.clear();
            if messages[index].blocks.is_empty() {
                messages.remove(index);
                continue;
            }
        }
        index += 1;
    }
    if !open.is_empty() {
        messages.push(Message::results(lost(&open)));
    }
}

/// Makes a user message answer exactly the calls that are open: results first, each once.
fn answer(message: &mut Message, open: &[String]) {
    let mut answered = BTreeSet::new();
    message.blocks.retain(|block| match block {
        Block::ToolResult { tool_use_id, .. } => {
            open.contains(tool_use_id) && answered.insert(tool_use_id.clone())
        }
        _ => true,
    });
    let missing: Vec<String> = open
        .iter()
        .filter(|id| !answered.contains(*id))
        .cloned()
        .collect();
    message.blocks.splice(0..0, lost(&missing));
}

fn calls(message: &Message) -> Vec<String> {
    message
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::ToolUse(call) => Some(call.id.clone()),
            _ => None,
        })
        .collect()
}

fn lost(ids: &[String]) -> Vec<Block> {
    ids.iter()
        .map(|id| Block::ToolResult {
            tool_use_id: id.clone(),
            content: LOST.to_owned(),
            is_error: true,
            images: Vec::new(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use ropewalk_llm::ToolUse;

    use super::*;

    fn call(id: &str) -> Block {
        Block::ToolUse(ToolUse::parse(id, "read", "{}"))
    }

    fn result(id: &str) -> Block {
        Block::ToolResult {
            tool_use_id: id.to_owned(),
            content: "ok".to_owned(),
            is_error: false,
            images: Vec::new(),
        }
    }

    /// Writes a conversation as one line: `u` and `a` messages, `?id` calls, `=id` results, `!id` lost results.
    fn sketch(messages: &[Message]) -> String {
        let words: Vec<String> = messages
            .iter()
            .map(|message| {
                let who = if message.role == Role::User { "u" } else { "a" };
                let blocks: String = message
                    .blocks
                    .iter()
                    .map(|block| match block {
                        Block::Text(text) => format!(" {text}"),
                        Block::ToolUse(call) => format!(" ?{}", call.id),
                        Block::ToolResult {
                            tool_use_id,
                            is_error: false,
                            ..
                        } => format!(" ={tool_use_id}"),
                        Block::ToolResult { tool_use_id, .. } => format!(" !{tool_use_id}"),
                        Block::Opaque { .. } => " *".to_owned(),
                    })
                    .collect();
                format!("{who}{blocks}")
            })
            .collect();
        words.join(" | ")
    }

    #[test]
    fn every_call_gets_exactly_one_result() {
        let assistant = |blocks: Vec<Block>| Message::assistant(blocks);
        let cases = [
            (vec![Message::user("hi")], "u hi"),
            (
                vec![Message::user("hi"), assistant(vec![call("1"), call("2")])],
                "u hi | a ?1 ?2 | u !1 !2",
            ),
            (
                vec![
                    assistant(vec![call("1"), call("2")]),
                    Message::results(vec![result("2")]),
                ],
                "a ?1 ?2 | u !1 =2",
            ),
            (
                vec![assistant(vec![call("1")]), Message::user("go on")],
                "a ?1 | u !1 go on",
            ),
            (
                vec![assistant(vec![call("1")]), assistant(vec![call("2")])],
                "a ?1 | u !1 | a ?2 | u !2",
            ),
            (
                vec![
                    Message::user("hi"),
                    Message::results(vec![result("9")]),
                    assistant(vec![call("1")]),
                    Message::results(vec![result("1"), result("1")]),
                ],
                "u hi | a ?1 | u =1",
            ),
        ];
        for (mut messages, expected) in cases {
            repair(&mut messages);
            assert_eq!(sketch(&messages), expected);
            let once = messages.clone();
            repair(&mut messages);
            assert_eq!(messages, once, "a repaired conversation stays as it is");
        }
    }
}
