//! Holds what a model answers: deltas while it speaks, one reply at the end.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::stream::{self, BoxStream, Stream, StreamExt};
use serde::{Deserialize, Serialize};

use crate::error::ModelError;
use crate::message::{Block, ToolUse};

/// Is a whole reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// What the model said, in order.
    pub blocks: Vec<Block>,
    /// Why it stopped.
    pub stop: StopReason,
    /// What it used.
    pub usage: Usage,
    /// The model that answered, as the provider names it.
    pub model: String,
}

impl Reply {
    /// Returns all text of the reply.
    pub fn text(&self) -> String {
        self.blocks
            .iter()
            .filter_map(|block| match block {
                Block::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    /// Returns the tool calls of the reply, in order.
    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUse> {
        self.blocks.iter().filter_map(|block| match block {
            Block::ToolUse(call) => Some(call),
            _ => None,
        })
    }
}

/// Says why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It has said all.
    EndTurn,
    /// It waits for the results of tools.
    ToolUse,
    /// It ran out of output tokens or context: the last block may be cut.
    MaxTokens,
    /// It or its provider declined.
    ContentFilter,
    /// A reason that only this provider knows.
    Other(String),
}

/// Counts tokens; the four kinds do not overlap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Read at full price: neither from nor into the provider's cache.
    pub input_tokens: u64,
    /// Written by the model.
    pub output_tokens: u64,
    /// Read from the provider's cache.
    pub cache_read_tokens: u64,
    /// Read and put into the provider's cache.
    pub cache_write_tokens: u64,
}

impl Usage {
    /// Returns all tokens that the model read.
    pub fn total_input_tokens(&self) -> u64 {
        self.input_tokens
            .saturating_add(self.cache_read_tokens)
            .saturating_add(self.cache_write_tokens)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cache_read_tokens = self
            .cache_read_tokens
            .saturating_add(other.cache_read_tokens);
        self.cache_write_tokens = self
            .cache_write_tokens
            .saturating_add(other.cache_write_tokens);
    }
}

/// Is one step of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delta {
    /// More text.
    Text(String),
    /// A tool call has begun; its arguments are still being written.
    ToolUseStarted {
        /// The id of the call.
        id: String,
        /// The tool.
        name: String,
    },
    /// A tool call is whole; it may be run before the reply ends.
    ToolUse(ToolUse),
    /// The counts so far; a later one replaces an earlier one.
    Usage(Usage),
    /// The reply has ended; nothing follows.
    Done(Reply),
}

/// Yields deltas and then exactly one terminal item: [`Delta::Done`] or an error.
pub struct ReplyStream {
    deltas: BoxStream<'static, Result<Delta, ModelError>>,
    ended: bool,
}

impl ReplyStream {
    /// Wraps a stream of deltas; what follows its terminal item is dropped, and a missing one is
    /// [`ModelError::Truncated`].
    pub fn new(deltas: impl Stream<Item = Result<Delta, ModelError>> + Send + 'static) -> Self {
        Self {
            deltas: deltas.boxed(),
            ended: false,
        }
    }

    /// Returns the stream of a reply that is already known; text comes line by line.
    pub fn of(reply: Reply) -> Self {
        let mut deltas = Vec::new();
        for block in &reply.blocks {
            match block {
                Block::Text(text) => deltas.extend(
                    text.split_inclusive('\n')
                        .map(|line| Delta::Text(line.to_owned())),
                ),
                Block::ToolUse(call) => {
                    deltas.push(Delta::ToolUseStarted {
                        id: call.id.clone(),
                        name: call.name.clone(),
                    });
                    deltas.push(Delta::ToolUse(call.clone()));
                }
                Block::ToolResult { .. } | Block::Opaque { .. } => {}
            }
        }
        deltas.push(Delta::Usage(reply.usage));
        deltas.push(Delta::Done(reply));
        Self::new(stream::iter(deltas.into_iter().map(Ok)))
    }
}

impl Stream for ReplyStream {
    type Item = Result<Delta, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let item =
            ready!(self.deltas.poll_next_unpin(context)).unwrap_or(Err(ModelError::Truncated));
        self.ended = matches!(item, Err(_) | Ok(Delta::Done(_)));
        Poll::Ready(Some(item))
    }
}

impl std::fmt::Debug for ReplyStream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ReplyStream")
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

/// Reads a stream to its end, showing `on_delta` every step but the last.
pub async fn complete(
    mut stream: ReplyStream,
    mut on_delta: impl FnMut(&Delta) + Send,
) -> Result<Reply, ModelError> {
    while let Some(item) = stream.next().await {
        match item? {
            Delta::Done(reply) => return Ok(reply),
            delta => on_delta(&delta),
        }
    }
    Err(ModelError::Truncated)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply() -> Reply {
        Reply {
            blocks: vec![
                Block::Text("one\ntwo".to_owned()),
                Block::ToolUse(ToolUse::parse("t", "read", "{}")),
            ],
            stop: StopReason::ToolUse,
            usage: Usage::default(),
            model: "m".to_owned(),
        }
    }

    #[tokio::test]
    async fn a_stream_yields_every_delta_and_then_the_reply_once() {
        let mut seen = Vec::new();
        let whole = complete(ReplyStream::of(reply()), |delta| seen.push(delta.clone()))
            .await
            .unwrap();
        assert_eq!(whole, reply());
        assert_eq!(
            seen,
            [
                Delta::Text("one\n".to_owned()),
                Delta::Text("two".to_owned()),
                Delta::ToolUseStarted {
                    id: "t".to_owned(),
                    name: "read".to_owned()
                },
                Delta::ToolUse(ToolUse::parse("t", "read", "{}")),
                Delta::Usage(Usage::default()),
            ]
        );
    }

    #[tokio::test]
    async fn a_stream_without_terminal_item_is_truncated() {
        let cut = ReplyStream::new(stream::iter([Ok(Delta::Text("half".to_owned()))]));
        let items: Vec<_> = cut.collect().await;
        assert_eq!(
            items,
            [
                Ok(Delta::Text("half".to_owned())),
                Err(ModelError::Truncated)
            ]
        );
    }

    #[tokio::test]
    async fn nothing_follows_a_terminal_item() {
        let done = ReplyStream::new(stream::iter([
            Ok(Delta::Done(reply())),
            Ok(Delta::Text("late".to_owned())),
        ]));
        assert_eq!(done.count().await, 1);
        let failed = ReplyStream::new(stream::iter([
            Err(ModelError::Cancelled),
            Ok(Delta::Done(reply())),
        ]));
        assert_eq!(failed.count().await, 1);
    }

    #[test]
    fn a_reply_survives_the_journal() {
        let mut reply = reply();
        for stop in [
            StopReason::EndTurn,
            StopReason::MaxTokens,
            StopReason::Other("pause_turn".to_owned()),
        ] {
            reply.stop = stop;
            let text = serde_json::to_string(&reply).unwrap();
            assert_eq!(serde_json::from_str::<Reply>(&text).unwrap(), reply);
        }
    }
}
