//! Defines the journal of model calls, which is also the usage record (design §3 invariant 4, §13).

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{BuildId, Slug, TaskId};

/// One paid call. It is stored before it is acted on, so that a crash does not ask twice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelCall {
    /// Names the call: the work it belongs to and its turn; the key of the row.
    pub key: String,
    /// The model role, for example `build`.
    pub role: String,
    /// The model that answered.
    pub model: String,
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
    /// Why the reply was not kept. It was paid all the same, so its use counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// Tokens in.
    pub input_tokens: u64,
    /// Tokens out.
    pub output_tokens: u64,
    /// Millionths of a dollar; none when the price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
    /// When.
    pub at: DateTime<Utc>,
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
