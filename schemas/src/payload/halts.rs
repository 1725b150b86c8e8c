//! Events about everything at once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::UserSlug;

/// Somebody stopped everything: no model is asked and no command begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HaltBegun {
    /// Who.
    pub by: UserSlug,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Somebody let everything go on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HaltLifted {
    /// Who.
    pub by: UserSlug,
}
