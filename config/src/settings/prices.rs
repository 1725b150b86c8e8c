//! Defines what the models of a provider cost, by the word of whoever uses it.

use serde::{Deserialize, Serialize};

/// What a model costs, in US dollars per million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceSettings {
    /// The model, or the beginning of its name followed by `*`.
    pub model: String,
    /// Of what it reads.
    pub input: f64,
    /// Of what it writes.
    pub output: f64,
    /// Of what it reads from the cache of its provider; `input` where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Of what is put into that cache; `input` where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

/// When and where prices were read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceSourceSettings {
    /// The day, such as `2026-11-20`.
    pub date: String,
    /// The page, the contract or whatever else says so.
    pub source: String,
}
