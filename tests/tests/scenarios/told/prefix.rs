//! Two requests in a row begin alike, so that a provider keeps what it has read.

use std::collections::HashSet;

use anyhow::ensure;
use serde_json::Value;

use super::{Request, Role, told};

/// Takes the marks of the cache out of a body: where they stand changes from request to request.
fn unmarked(value: &Value) -> Value {
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

/// Says which conversation a request belongs to: tasks have one each.
fn conversation(request: &Request) -> String {
    let first = request
        .messages()
        .first()
        .map(Request::said)
        .unwrap_or_default();
    let task = first.lines().find(|line| line.starts_with("# BUILD TASK:"));
    task.unwrap_or_default().to_owned()
}

#[test]
fn two_requests_of_a_role_are_equal_up_to_the_last_message() -> anyhow::Result<()> {
    let told = told()?;
    for role in Role::ALL {
        let requests = told.of(role);
        ensure!(!requests.is_empty(), "{role:?} was asked nothing");
        for pair in requests.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            assert_eq!(before.system(), after.system(), "{role:?}");
            for part in ["tools", "model", "tool_choice"] {
                let both = [before, after].map(|request| unmarked(&request.body[part]));
                assert_eq!(both[0], both[1], "{role:?}: {part}");
            }
            if conversation(before) != conversation(after) {
                continue;
            }
            let shared = before.messages().len() - 1;
            let [one, other] = [before, after].map(|request| {
                let messages = request.messages().iter().take(shared);
                messages.map(unmarked).collect::<Vec<_>>()
            });
            assert_eq!(one, other, "{role:?}, messages before {shared}");
        }
    }
    Ok(())
}

/// Lists what a request consists of in the order in which a provider reads it: each block, and whether it is marked to be kept.
fn blocks(request: &Request) -> Vec<(String, bool)> {
    let mut blocks = Vec::new();
    let mut add = |prefix: &str, block: &Value| {
        let is_marked = block.get("cache_control").is_some();
        blocks.push((format!("{prefix}{}", unmarked(block)), is_marked));
    };
    let all = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for part in ["tools", "system"] {
        for block in all(&request.body[part]) {
            add(part, &block);
        }
    }
    for message in request.messages() {
        let role = message["role"].as_str().unwrap_or_default();
        for block in all(&message["content"]) {
            add(role, &block);
        }
    }
    blocks
}

/// Plays the cache of a provider, which keeps every prefix that ends with a mark and looks for one at each block: returns
/// how many bytes of each request it had read before, and of how many.
fn cached(requests: &[&Request]) -> Vec<(usize, usize)> {
    let mut kept: HashSet<String> = HashSet::new();
    let play = |request: &&Request| {
        let (mut prefix, mut hit, mut marked) = (String::new(), 0, Vec::new());
        for (block, is_marked) in blocks(request) {
            prefix.push_str(&block);
            if kept.contains(&prefix) {
                hit = prefix.len();
            }
            if is_marked {
                marked.push(prefix.clone());
            }
        }
        assert!(marked.len() <= 4, "a provider takes four marks");
        kept.extend(marked);
        (hit, prefix.len())
    };
    requests.iter().map(play).collect()
}

#[test]
fn a_provider_finds_what_it_has_read_in_every_request_but_the_first_of_a_role() -> anyhow::Result<()>
{
    let told = told()?;
    for role in Role::ALL {
        let requests = told.of(role);
        let found = cached(&requests);
        assert_eq!(found.first().map(|(hit, _)| *hit), Some(0), "{role:?}");
        for ((hit, all), pair) in found.iter().skip(1).zip(requests.windows(2)) {
            let frame: usize = blocks(pair[1])
                .iter()
                .take_while(|(block, _)| !block.starts_with("user"))
                .map(|(block, _)| block.len())
                .sum();
            ensure!(
                *hit >= frame && frame > 0,
                "{role:?}: {hit} of {all}, {frame} in tools and system"
            );
            let goes_on = pair[0].messages().len() + 2 == pair[1].messages().len();
            if role != Role::Ideation && goes_on && conversation(pair[0]) == conversation(pair[1]) {
                // All that was asked before, to the last block.
                let before: usize = blocks(pair[0]).iter().map(|(block, _)| block.len()).sum();
                assert_eq!(*hit, before, "{role:?}");
            }
        }
    }
    Ok(())
}
