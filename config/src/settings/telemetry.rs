//! Defines where spans are sent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use url::Url;

/// Spans.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TelemetrySettings {
    /// The receiver; none for no spans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Url>,
    /// The environment variables with the values of headers, by header.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Of how many traces in a hundred something is sent.
    pub sample_percent: u32,
}
