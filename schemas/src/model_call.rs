//! Defines the journal of model calls, which is also the usage record (design §3 invariant 4, §13).

use chrono::{DateTime, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{BuildId, Slug, TaskId};

/// Ends the key of a call that sums up a conversation.
const SUMMARY: &str = "/summary";

/// What was done to a conversation, before a call, since it had grown too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compaction {
    /// Long results of tools were cut, but for the newest.
    Trimmed,
    /// A summary took the place of all but the newest messages; it is a call of its own.
    Summarised,
    /// All but the newest messages were left out, since nobody could sum them up.
    Cut,
}

/// Says who ended a reply that was not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// Who was asked: it broke off, was too long or said nothing.
    Broken,
    /// Who asked, for a pause or a restart, which says nothing of who was asked.
    Cancelled,
}

/// Names what a model was asked by hashes of its parts. Ids, times and places on a machine leave no trace in it, so that
/// the same work asks the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestPrint {
    /// The system prompt.
    pub system: String,
    /// The tools on offer.
    pub tools: String,
    /// All else that is set: how long the reply may be, whether a tool has to be called, its form.
    pub settings: String,
    /// What was said up to the last reply of the model, that among it.
    pub before: String,
    /// What was said since, piece by piece.
    pub since: Vec<String>,
}

/// One paid call. It is stored before it is acted on, so that a crash does not ask twice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelCall {
    /// Names the call: the work it belongs to and its turn; the key of the row.
    pub key: String,
    /// The model role, for example `build`.
    pub role: String,
    /// The model that answered.
    pub model: String,
    /// The provider that answered; none for a call of before this was written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The idea it was for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idea: Option<Slug>,
    /// The build it was for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<BuildId>,
    /// The task it was for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The reply as the `llm` crate defines it; null for one that was not kept.
    pub reply: Value,
    /// What was done to the conversation before it was asked; a replay does the same there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction: Option<Compaction>,
    /// What was asked; none for a call of before this was written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<RequestPrint>,
    /// Why the reply was not kept. It was paid all the same, so its use counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// Who ended it then; none for a reply that was kept, and for a call of before this was written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal_kind: Option<RefusalKind>,
    /// Tokens in, those of the provider's cache among them.
    pub input_tokens: u64,
    /// Tokens out.
    pub output_tokens: u64,
    /// Tokens in that came from the provider's cache.
    #[serde(default)]
    pub cache_read_tokens: u64,
    /// Tokens in that were put into it.
    #[serde(default)]
    pub cache_write_tokens: u64,
    /// How long the answer took; none where nobody took the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The W3C trace context that it was made with, in the chain of what it was for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// Millionths of a dollar; none when the price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
    /// When.
    pub at: DateTime<Utc>,
}

impl ModelCall {
    /// Names the call that sums up a conversation before the call `key` of it is asked.
    pub fn summary_key(key: &str) -> String {
        format!("{key}{SUMMARY}")
    }

    /// Says whether it sums up a conversation.
    pub fn is_summary(&self) -> bool {
        self.key.ends_with(SUMMARY)
    }
}

/// Says what calls are summed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageBy {
    /// The idea that they were for.
    Idea,
    /// The build that they were for.
    Build,
    /// The model that answered, with its provider.
    Model,
    /// The day, by UTC.
    Day,
}

impl UsageBy {
    /// Returns its name, as the database keeps totals under it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idea => "idea",
            Self::Build => "build",
            Self::Model => "model",
            Self::Day => "day",
        }
    }

    /// Names the day that is so many days after the first of 1970.
    pub fn day(number: i64) -> Option<String> {
        let day = DateTime::UNIX_EPOCH.checked_add_signed(TimeDelta::try_days(number)?)?;
        Some(day.format("%Y-%m-%d").to_string())
    }
}

/// What the calls for one thing used, one row of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// The idea, build, model or day; none for calls that were for no such thing.
    pub key: Option<String>,
    /// How many calls were answered.
    pub calls: u64,
    /// Tokens in, those of the providers' caches among them.
    pub input_tokens: u64,
    /// Tokens out.
    pub output_tokens: u64,
    /// Tokens in that came from a cache.
    pub cache_read_tokens: u64,
    /// Tokens in that were put into one.
    pub cache_write_tokens: u64,
    /// Millionths of a dollar of those calls whose price is known.
    pub known_micro_usd: u64,
    /// Calls whose price is unknown.
    pub unpriced_calls: u64,
}

impl Usage {
    /// Returns what is left of it without `part`, which is among it.
    #[must_use]
    pub fn without(&self, part: &Self) -> Self {
        self.with(part, u64::saturating_sub)
    }

    fn with(&self, other: &Self, join: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            key: None,
            calls: join(self.calls, other.calls),
            input_tokens: join(self.input_tokens, other.input_tokens),
            output_tokens: join(self.output_tokens, other.output_tokens),
            cache_read_tokens: join(self.cache_read_tokens, other.cache_read_tokens),
            cache_write_tokens: join(self.cache_write_tokens, other.cache_write_tokens),
            known_micro_usd: join(self.known_micro_usd, other.known_micro_usd),
            unpriced_calls: join(self.unpriced_calls, other.unpriced_calls),
        }
    }

    /// Returns the same in the words of budgets.
    pub const fn spending(&self) -> Spending {
        Spending {
            calls: self.calls,
            tokens: self.input_tokens.saturating_add(self.output_tokens),
            known_micro_usd: self.known_micro_usd,
            unpriced_calls: self.unpriced_calls,
        }
    }
}

impl<'a> std::iter::Sum<&'a Self> for Usage {
    fn sum<Parts: Iterator<Item = &'a Self>>(parts: Parts) -> Self {
        parts.fold(Self::default(), |whole, part| {
            whole.with(part, u64::saturating_add)
        })
    }
}

/// What several calls used together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spending {
    /// How many calls were answered.
    pub calls: u64,
    /// Tokens, in and out.
    pub tokens: u64,
    /// Millionths of a dollar of those calls whose price is known.
    pub known_micro_usd: u64,
    /// Calls whose price is unknown; as long as there are any, the whole is unknown too.
    pub unpriced_calls: u64,
}

impl Spending {
    /// Returns the price of all calls; none when the price of one is unknown.
    pub const fn micro_usd(&self) -> Option<u64> {
        if self.unpriced_calls == 0 {
            Some(self.known_micro_usd)
        } else {
            None
        }
    }

    /// Tells the price in dollars: what is unknown is said, not counted as nothing.
    pub fn money(&self) -> String {
        let known = self.known_micro_usd;
        let dollars = format!("${}.{:02}", known / 1_000_000, known % 1_000_000 / 10_000);
        match (self.unpriced_calls, known) {
            (0, _) => dollars,
            (_, 0) => "unknown price".to_owned(),
            _ => format!("at least {dollars}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_of_before_providers_and_caches_were_written_down_is_read() {
        let old = serde_json::json!({
            "key": "attempt/b/T-1/1/1", "role": "build", "model": "m", "reply": null,
            "input_tokens": 7, "output_tokens": 3, "at": "2026-03-01T08:00:00Z",
        });
        let call: ModelCall = serde_json::from_value(old).unwrap();
        assert_eq!((call.provider, call.duration_ms), (None, None));
        assert_eq!((call.refusal, call.refusal_kind), (None, None));
        assert_eq!((call.cache_read_tokens, call.input_tokens), (0, 7));
    }

    #[test]
    fn a_day_is_named_by_its_number() {
        let rows = [
            (0, "1970-01-01"),
            (20_000, "2024-10-04"),
            (-1, "1969-12-31"),
        ];
        for (number, name) in rows {
            assert_eq!(UsageBy::day(number).as_deref(), Some(name));
        }
        assert_eq!(UsageBy::day(i64::MAX), None);
    }

    #[test]
    fn one_unknown_price_makes_the_whole_unknown() {
        let rows = [
            (1_234_567, 0, Some(1_234_567), "$1.23"),
            (0, 0, Some(0), "$0.00"),
            (0, 2, None, "unknown price"),
            (5_000_000, 2, None, "at least $5.00"),
        ];
        for (known_micro_usd, unpriced_calls, exact, told) in rows {
            let spending = Spending {
                calls: 3,
                tokens: 9,
                known_micro_usd,
                unpriced_calls,
            };
            assert_eq!(
                (spending.micro_usd(), spending.money()),
                (exact, told.to_owned())
            );
        }
    }
}
