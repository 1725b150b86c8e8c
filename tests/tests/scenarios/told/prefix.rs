//! Two requests in a row begin alike, so that a provider keeps what it has read.

use super::cache::{CacheHit, PromptCache, blocks, unmarked};
use super::{Request, Role, told};
use anyhow::ensure;

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
        let mut told_again = 0;
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
            told_again += shared;
        }
        // Who was asked twice in all was told no message before its last again.
        ensure!(
            told_again > 0 || requests.len() == 2,
            "{role:?}: nothing was compared"
        );
    }
    Ok(())
}

/// Returns how many bytes of each request a provider had read before.
fn cached(requests: &[&Request]) -> Vec<CacheHit> {
    let mut cache = PromptCache::default();
    let read = |request: &&Request| {
        let marked = blocks(&request.body)
            .iter()
            .filter(|(_, marked)| *marked)
            .count();
        assert!((1..=4).contains(&marked), "a provider takes four marks");
        cache.read(&request.body)
    };
    requests.iter().map(read).collect()
}

#[test]
fn a_provider_finds_what_it_has_read_in_every_request_but_the_first_of_a_role() -> anyhow::Result<()>
{
    let told = told()?;
    for role in Role::ALL {
        let requests = told.of(role);
        let found = cached(&requests);
        assert_eq!(found.first().map(|found| found.hit), Some(0), "{role:?}");
        for (CacheHit { hit, all }, pair) in found.iter().skip(1).zip(requests.windows(2)) {
            let frame: usize = blocks(&pair[1].body)
                .iter()
                .take_while(|(block, _)| !block.starts_with("user"))
                .map(|(block, _)| block.len())
                .sum();
            ensure!(
                *hit >= frame && frame > 0,
                "{role:?}: {hit} of {all}, {frame} in tools and system"
            );
            let goes_on = pair[0].messages().len() + 2 == pair[1].messages().len();
            if goes_on && conversation(pair[0]) == conversation(pair[1]) {
                // All that was asked before, to the last block.
                let before: usize = blocks(&pair[0].body)
                    .iter()
                    .map(|(block, _)| block.len())
                    .sum();
                assert_eq!(*hit, before, "{role:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn a_provider_says_what_it_had_read_and_each_role_keeps_count_of_it() -> anyhow::Result<()> {
    let told = told()?;
    for role in Role::ALL {
        let requests = told.of(role);
        ensure!(requests.len() > 1, "{role:?} was asked once");
        let said: Vec<u64> = requests.iter().map(|one| one.read_before as u64).collect();
        let calls = told
            .calls
            .iter()
            .filter(|call| call.role == role.asked_as());
        let written: Vec<u64> = calls.map(|call| call.cache_read_tokens).collect();
        assert_eq!(written, said, "{role:?}");
        ensure!(
            said[0] == 0 && said[1..].iter().all(|count| *count > 0),
            "{role:?}: {said:?}"
        );
    }
    Ok(())
}
