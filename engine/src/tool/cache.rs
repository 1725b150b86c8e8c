//! Gives the result of a look around again to the same call, as long as what was looked at is as it was (GRD-2 to GRD-5
//! of the capability list).
//!
//! A cache belongs to the tools of one job, which work in one directory. A read holds as long as its file was not written,
//! a search for a while. Who writes files ends what tells of them, who runs a command everything. Errors are never kept.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use ropewalk_llm::ToolUse;
use ropewalk_schemas::ContentHash;
use serde_json::Value;
use tokio::time::Instant;

use super::ToolOutput;

/// Bounds what is given again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheBounds {
    /// So many results are kept; none where nothing is to be given again.
    pub results: usize,
    /// How long the result of a search holds.
    pub search: Duration,
}

impl Default for CacheBounds {
    fn default() -> Self {
        Self {
            results: 200,
            search: Duration::from_secs(30),
        }
    }
}

/// Says how long the result of a call holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Freshness {
    /// It is never given again.
    Never,
    /// As long as this file has this time and this size in bytes.
    File(String, SystemTime, u64),
    /// For a while, if nothing was written below this directory; empty for the root.
    Search(String),
}

/// Counts what a cache did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CacheStats {
    /// Results that are kept now.
    pub entries: usize,
    /// Calls that were answered from it.
    pub hits: u64,
    /// Calls that might have been.
    pub misses: u64,
    /// Results that were dropped because of a change.
    pub invalidations: u64,
    /// Results that were dropped for newer ones.
    pub evictions: u64,
}

impl fmt::Display for CacheStats {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = (self.hits + self.misses).max(1);
        // In tenths of a per cent, rounded.
        let rate = (self.hits * 1_000 + all / 2) / all;
        write!(
            formatter,
            "{} results kept; {} of {} calls answered by them, {}.{} %; {} dropped by changes, {} for newer ones",
            self.entries,
            self.hits,
            self.hits + self.misses,
            rate / 10,
            rate % 10,
            self.invalidations,
            self.evictions
        )
    }
}

/// Keeps results. Cheap to clone, and shared by its clones.
#[derive(Debug, Clone, Default)]
pub(super) struct Cache {
    bounds: CacheBounds,
    state: Arc<Mutex<CacheState>>,
}

#[derive(Debug, Default)]
struct CacheState {
    results: HashMap<ContentHash, Entry>,
    /// The one used last at the end.
    order: VecDeque<ContentHash>,
    stats: CacheStats,
}

#[derive(Debug)]
struct Entry {
    freshness: Freshness,
    at: Instant,
    output: ToolOutput,
}

impl Cache {
    /// Keeps results within `bounds`.
    pub(super) fn new(bounds: CacheBounds) -> Self {
        Self {
            bounds,
            ..Self::default()
        }
    }

    /// Returns the result of `call`, if it still holds.
    pub(super) fn get(&self, call: &ToolUse, freshness: &Freshness) -> Option<ToolOutput> {
        if *freshness == Freshness::Never {
            return None;
        }
        let key = key(call);
        let mut kept = self.kept();
        let found = kept.results.get(&key);
        let held = found.filter(|entry| entry.holds(freshness, self.bounds.search));
        let output = held.map(|entry| entry.output.clone());
        if output.is_some() {
            kept.stats.hits += 1;
            kept.order.retain(|other| *other != key);
            kept.order.push_back(key);
        } else {
            kept.stats.misses += 1;
        }
        output
    }

    /// Keeps the result of `call`, which was found to be of `freshness` before it ran.
    pub(super) fn keep(&self, call: &ToolUse, freshness: Freshness, output: &ToolOutput) {
        if freshness == Freshness::Never || output.is_error || self.bounds.results == 0 {
            return;
        }
        let key = key(call);
        let mut kept = self.kept();
        let entry = Entry {
            freshness,
            at: Instant::now(),
            output: output.clone(),
        };
        kept.order.retain(|other| *other != key);
        kept.order.push_back(key.clone());
        kept.results.insert(key, entry);
        if kept.order.len() > self.bounds.results
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.results.remove(&oldest);
            kept.stats.evictions += 1;
        }
    }

    /// Drops what tells of `files`.
    pub(super) fn wrote(&self, files: &[String]) {
        self.drop_where(|entry| files.iter().any(|file| entry.tells_of(&plain(file))));
    }

    /// Drops everything.
    pub(super) fn clear(&self) {
        self.drop_where(|_| true);
    }

    /// Says what it did so far.
    pub(super) fn stats(&self) -> CacheStats {
        let kept = self.kept();
        CacheStats {
            entries: kept.results.len(),
            ..kept.stats
        }
    }

    fn drop_where(&self, is_gone: impl Fn(&Entry) -> bool) {
        let mut kept = self.kept();
        let before = kept.results.len();
        kept.results.retain(|_, entry| !is_gone(entry));
        let CacheState {
            results,
            order,
            stats,
        } = &mut *kept;
        order.retain(|key| results.contains_key(key));
        stats.invalidations += u64::try_from(before - results.len()).unwrap_or(u64::MAX);
    }

    fn kept(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn holds(&self, now: &Freshness, search: Duration) -> bool {
        let is_young = match self.freshness {
            Freshness::Search(_) => self.at.elapsed() < search,
            _ => true,
        };
        is_young && self.freshness == *now
    }

    fn tells_of(&self, file: &str) -> bool {
        match &self.freshness {
            Freshness::Never => false,
            Freshness::File(path, ..) => plain(path) == file,
            Freshness::Search(place) => {
                let place = plain(place);
                let below = file.strip_prefix(&place);
                place.is_empty()
                    || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
        }
    }
}

/// Writes a path without what changes nothing about it.
fn plain(path: &str) -> String {
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    parts.collect::<Vec<_>>().join("/")
}

/// Names a call by tool and arguments, without regard to the order of their keys.
fn key(call: &ToolUse) -> ContentHash {
    let mut text = call.name.to_lowercase();
    text.push('\0');
    canonical(&call.input, &mut text);
    ContentHash::of(text.as_bytes())
}

fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(object) => {
            let mut entries: Vec<_> = object.iter().collect();
            entries.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (name, value) in entries {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                canonical(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        other => text.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, raw: &str) -> ToolUse {
        ToolUse::parse("t", name, raw)
    }

    fn search(place: &str) -> Freshness {
        Freshness::Search(place.to_owned())
    }

    fn file(path: &str) -> Freshness {
        Freshness::File(path.to_owned(), SystemTime::UNIX_EPOCH, 1)
    }

    #[test]
    fn the_order_of_arguments_makes_no_other_call() {
        let cache = Cache::default();
        let first = call("read", r#"{"path":"a","limit":{"x":1,"y":[2]}}"#);
        let again = call("READ", r#"{"limit":{"y":[2],"x":1},"path":"a"}"#);
        assert_eq!(cache.get(&first, &file("a")), None);
        cache.keep(&first, file("a"), &ToolOutput::text("x"));
        assert_eq!(cache.get(&again, &file("a")).unwrap().text, "x");
        assert_eq!(
            cache.get(&call("read", r#"{"path":"b"}"#), &file("b")),
            None
        );
        let stats = cache.stats();
        assert_eq!((stats.entries, stats.hits, stats.misses), (1, 1, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_search_holds_for_thirty_seconds_and_a_read_until_its_file_is_written() {
        let cache = Cache::default();
        let (grep, read) = (call("grep", "{}"), call("read", "{}"));
        cache.keep(&grep, search(""), &ToolOutput::text("x"));
        cache.keep(&read, file("a"), &ToolOutput::text("x"));
        tokio::time::advance(Duration::from_secs(29)).await;
        assert!(cache.get(&grep, &search("")).is_some());
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(cache.get(&grep, &search("")).is_none());
        assert!(cache.get(&read, &file("a")).is_some());
        let later = SystemTime::UNIX_EPOCH + Duration::from_millis(1);
        let written = Freshness::File("a".to_owned(), later, 1);
        assert!(cache.get(&read, &written).is_none());
    }

    #[test]
    fn an_error_is_not_kept_and_of_201_results_the_oldest_goes() {
        let cache = Cache::default();
        let missing = call("read", r#"{"path":"missing"}"#);
        cache.keep(&missing, file("missing"), &ToolOutput::error("no"));
        assert_eq!(cache.stats().entries, 0);
        let numbered = |number: usize| call("grep", &format!(r#"{{"n":{number}}}"#));
        let most = CacheBounds::default().results;
        for number in 0..=most {
            cache.keep(&numbered(number), search(""), &ToolOutput::text("x"));
        }
        let stats = cache.stats();
        assert_eq!((stats.entries, stats.evictions), (200, 1));
        assert!(cache.get(&numbered(0), &search("")).is_none());
        assert!(cache.get(&numbered(1), &search("")).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn other_bounds_hold_for_so_many_results_and_so_long() {
        let bounded = |results, seconds| {
            let search = Duration::from_secs(seconds);
            Cache::new(CacheBounds { results, search })
        };
        let (one, two) = (call("grep", r#"{"n":1}"#), call("grep", r#"{"n":2}"#));
        let few = bounded(1, 5);
        few.keep(&one, search(""), &ToolOutput::text("x"));
        few.keep(&two, search(""), &ToolOutput::text("x"));
        assert!(few.get(&one, &search("")).is_none());
        assert!(few.get(&two, &search("")).is_some());
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(few.get(&two, &search("")).is_none());
        let none = bounded(0, 30);
        none.keep(&one, search(""), &ToolOutput::text("x"));
        assert!(none.get(&one, &search("")).is_none());
        assert_eq!(none.stats().entries, 0);
    }

    #[test]
    fn a_change_drops_what_tells_of_it_and_nothing_else() {
        let rows = [
            (file("./src/a"), true),
            (file("src/b"), false),
            (search(""), true),
            (search("./src/"), true),
            (search("src/a"), true),
            (search("sr"), false),
            (search("doc"), false),
        ];
        for (freshness, is_dropped) in rows {
            let cache = Cache::default();
            cache.keep(&call("x", "{}"), freshness.clone(), &ToolOutput::text("x"));
            cache.wrote(&["src/a".to_owned()]);
            let stats = cache.stats();
            assert_eq!(stats.invalidations, u64::from(is_dropped), "{freshness:?}");
            cache.clear();
            assert_eq!(cache.stats().entries, 0);
        }
    }

    #[test]
    fn the_rate_is_told_with_one_decimal() {
        let stats = CacheStats {
            hits: 47,
            misses: 15,
            ..CacheStats::default()
        };
        assert!(
            stats
                .to_string()
                .contains("47 of 62 calls answered by them, 75.8 %")
        );
        let none = CacheStats::default().to_string();
        assert!(
            none.contains("0 of 0 calls answered by them, 0.0 %"),
            "{none}"
        );
    }
}
