//! Plays the cache of a provider, which the emulator has not: it keeps every prefix that ends with a mark, and looks for one
//! at each block.

use std::collections::HashSet;

use serde_json::Value;

/// A token is about so many bytes.
const TOKEN_BYTES: usize = 4;

/// What was kept of all requests so far.
#[derive(Debug, Default)]
pub(super) struct PromptCache {
    kept: HashSet<String>,
}

/// How much of a request was read before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CacheHit {
    /// Bytes of what was read before.
    pub(super) hit: usize,
    /// Bytes of all.
    pub(super) all: usize,
}

impl CacheHit {
    /// What was read before, in tokens.
    pub(super) const fn tokens(self) -> usize {
        self.hit / TOKEN_BYTES
    }

    /// What was read anew, in tokens.
    pub(super) const fn tokens_anew(self) -> usize {
        (self.all - self.hit) / TOKEN_BYTES
    }
}

impl PromptCache {
    /// Reads a request, and keeps what it says is to be kept.
    pub(super) fn read(&mut self, body: &Value) -> CacheHit {
        let (mut prefix, mut hit, mut marked) = (String::new(), 0, Vec::new());
        for (block, is_marked) in blocks(body) {
            prefix.push_str(&block);
            if self.kept.contains(&prefix) {
                hit = prefix.len();
            }
            if is_marked {
                marked.push(prefix.clone());
            }
        }
        // A provider takes four marks.
        if marked.len() <= 4 {
            self.kept.extend(marked);
        }
        CacheHit {
            hit,
            all: prefix.len(),
        }
    }
}

/// Takes the marks of the cache out of a body: where they stand changes from request to request.
pub(super) fn unmarked(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| *name != "cache_control");
            kept.map(|(name, value)| (name.clone(), unmarked(value)))
                .collect()
        }
        Value::Array(values) => values.iter().map(unmarked).collect(),
        other => other.clone(),
    }
}

/// Lists what a request consists of in the order in which a provider reads it: each block, and whether it is marked to be kept.
pub(super) fn blocks(body: &Value) -> Vec<(String, bool)> {
    let mut blocks = Vec::new();
    let mut add = |prefix: &str, block: &Value| {
        let is_marked = block.get("cache_control").is_some();
        blocks.push((format!("{prefix}{}", unmarked(block)), is_marked));
    };
    let all = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for part in ["tools", "system"] {
        for block in all(&body[part]) {
            add(part, &block);
        }
    }
    for message in all(&body["messages"]) {
        let role = message["role"].as_str().unwrap_or_default();
        for block in all(&message["content"]) {
            add(role, &block);
        }
    }
    blocks
}

#[test]
fn what_was_marked_is_found_again_and_nothing_else_is() {
    let request = |system: &str, words: &[&str]| {
        let mark = serde_json::json!({ "type": "ephemeral" });
        let said: Vec<Value> = words
            .iter()
            .map(|words| serde_json::json!({ "text": words }))
            .collect();
        serde_json::json!({
            "system": [{ "text": system, "cache_control": mark }],
            "messages": [{ "role": "user", "content": said }],
        })
    };
    let mut cache = PromptCache::default();
    let first = cache.read(&request("be brief", &["hello"]));
    assert_eq!(first.hit, 0);
    let second = cache.read(&request("be brief", &["hello", "again"]));
    assert_eq!(second.hit, "system{\"text\":\"be brief\"}".len());
    assert_eq!(cache.read(&request("be long", &["hello"])).hit, 0);
    assert!(second.all > first.all);
}
