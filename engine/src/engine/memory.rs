//! Keeps what a conversation must not forget when its older messages make room.

use std::collections::{BTreeMap, BTreeSet};

use ropewalk_llm::{Block, Message, Role, ToolUse};
use ropewalk_schemas::job_event::Todo;
use serde_json::{Value, json};

use super::SAYS;
use crate::tool::{Effect, ToolOutput, Toolbox};

/// A result that is longer is cut once it is old.
const LONG_RESULT_BYTES: usize = 10 * 1024;
/// So many of the newest results are never cut.
const NEWEST_RESULTS: usize = 3;

/// Is what stays of messages that are gone.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// What took their place; none before any was gone.
    recalled: Option<String>,
    summary: Option<String>,
    /// What people said and answered, word for word.
    said: Vec<String>,
    /// What the last result was sent back with.
    verdict: Option<String>,
    read: BTreeSet<String>,
    changed: BTreeSet<String>,
    /// The list of what is to be done.
    todos: Vec<Todo>,
    /// The files that a result tells of, by its call.
    told: BTreeMap<String, Vec<MentionedFile>>,
}

/// A file of which a result tells.
#[derive(Debug, Clone)]
struct MentionedFile {
    path: String,
    /// Whether its text is shown there.
    shown: bool,
}

impl Memory {
    /// Takes note of the files that the result of a call tells of, and of what it plans.
    pub(super) fn note(&mut self, call: &str, output: &ToolOutput) {
        let mut told = Vec::new();
        if let Effect::Showed { path, .. } = &output.effect {
            self.read.insert(path.clone());
            told.push(MentionedFile {
                path: path.clone(),
                shown: true,
            });
        }
        if let Effect::Planned(todos) = &output.effect {
            self.todos.clone_from(todos);
        }
        for change in &output.changes {
            let path = change.path.to_string();
            self.changed.insert(path.clone());
            told.push(MentionedFile { path, shown: false });
        }
        if !told.is_empty() {
            self.told.insert(call.to_owned(), told);
        }
    }

    /// Takes note of what a result was sent back with.
    pub(super) fn judged(&mut self, told: &str) {
        self.verdict = Some(told.to_owned());
    }

    /// Keeps the words of the message that a talk comes to.
    pub(super) fn asked(&mut self, question: &Message) {
        let texts = question.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.clone()),
            _ => None,
        });
        self.said.extend(texts);
    }

    /// Cuts long results among `messages`, but for the newest; returns how many, and the files whose text is gone.
    pub(super) fn trim(&mut self, messages: &mut [Message]) -> (usize, Vec<String>) {
        let results = messages.iter_mut().flat_map(|message| &mut message.blocks);
        let results = results.rev().filter_map(|block| match block {
            Block::ToolResult {
                tool_use_id,
                content,
                images,
                ..
            } => Some((tool_use_id, content, images)),
            _ => None,
        });
        let mut cut = Vec::new();
        for (call, content, images) in results.skip(NEWEST_RESULTS) {
            if content.len() > LONG_RESULT_BYTES || !images.is_empty() {
                images.clear();
                *content = format!("[content truncated — {} chars]", content.chars().count());
                cut.push(call.clone());
            }
        }
        let gone = self.lose(&cut);
        (cut.len(), gone)
    }

    /// Takes over what must outlast `dropped`; returns the files whose text is gone with them.
    pub(super) fn outlast(
        &mut self,
        dropped: &[Message],
        summary: Option<String>,
        tools: &Toolbox,
    ) -> Vec<String> {
        self.summary = summary.or_else(|| self.summary.take());
        let results = results_of(dropped);
        for block in dropped.iter().flat_map(|message| &message.blocks) {
            match block {
                Block::Text(text) if text.starts_with(SAYS) => self.said.push(text.clone()),
                Block::ToolUse(call) if tools.outlasts(call) => {
                    let result = results.get(call.id.as_str()).copied().unwrap_or_default();
                    self.said.push(answered(call, result));
                }
                _ => {}
            }
        }
        let ids: Vec<String> = results.into_keys().map(str::to_owned).collect();
        self.lose(&ids)
    }

    /// Forgets the results of `calls`; returns the files whose text no other result shows.
    fn lose(&mut self, calls: &[String]) -> Vec<String> {
        let lost: Vec<MentionedFile> = calls
            .iter()
            .filter_map(|call| self.told.remove(call))
            .flatten()
            .collect();
        let still = |path: &str| {
            let mut told = self.told.values().flatten();
            told.any(|told| told.shown && told.path == path)
        };
        let gone: BTreeSet<&str> = lost
            .iter()
            .map(|told| told.path.as_str())
            .filter(|path| !still(path))
            .collect();
        gone.into_iter().map(str::to_owned).collect()
    }

    /// Returns the summary that is told now.
    pub(super) fn summary(&self) -> Option<&str> {
        self.summary.as_deref()
    }

    /// Returns what is told in place of messages that are gone, where `kept` are those that are not.
    pub(super) fn values(&self, kept: &[Message]) -> Value {
        let verdict = self.verdict.as_deref();
        let is_kept = |verdict: &&str| {
            let results = results_of(kept);
            results.into_values().any(|content| content == *verdict)
        };
        json!({
            "summary": self.summary,
            "read": self.read,
            "changed": self.changed,
            "todos": self.todos.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "said": self.said,
            "verdict": verdict.filter(|verdict| !is_kept(verdict)),
        })
    }

    /// Puts `text` behind the last of the messages that came `first`, in place of what was put there before.
    pub(super) fn recall(&mut self, first: &mut Vec<Message>, text: String) {
        let before = self.recalled.take();
        for message in first.iter_mut() {
            message.blocks.retain(
                |block| !matches!(block, Block::Text(text) if Some(text) == before.as_ref()),
            );
        }
        self.recalled = Some(text.clone());
        match first.last_mut() {
            Some(last) if last.role == Role::User => last.blocks.push(Block::Text(text)),
            _ => first.push(Message::user(text)),
        }
    }
}

fn results_of(messages: &[Message]) -> BTreeMap<&str, &str> {
    let blocks = messages.iter().flat_map(|message| &message.blocks);
    let results = blocks.filter_map(|block| match block {
        Block::ToolResult {
            tool_use_id,
            content,
            ..
        } => Some((tool_use_id.as_str(), content.as_str())),
        _ => None,
    });
    results.collect()
}

fn answered(call: &ToolUse, result: &str) -> String {
    format!(
        "You called `{}` with {}\nIt answered: {result}",
        call.name, call.input
    )
}

/// Finds where the newest messages begin, at least `keep` of them and none before `first`: with a message of the model, so
/// that no call is parted from its result.
pub(super) fn newest(messages: &[Message], first: usize, keep: usize) -> usize {
    let latest = messages.len().saturating_sub(keep);
    let begins = |index: &usize| messages[*index].role == Role::Assistant;
    (first..=latest)
        .rev()
        .filter(|index| *index < messages.len())
        .find(begins)
        .unwrap_or(first)
}
