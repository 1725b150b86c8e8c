//! Payloads of knowledge.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{KnowledgeId, Slug};
use crate::knowledge::KnowledgeKind;

/// An item was recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeRecorded {
    /// The item.
    pub item_id: KnowledgeId,
    /// What it is.
    pub kind: KnowledgeKind,
    /// What it says.
    pub content: String,
    /// 0 to 1.
    pub confidence: f64,
    /// Where it was learned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idea_slug: Option<Slug>,
}

/// An item gained or lost confidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeReinforced {
    /// The item.
    pub item_id: KnowledgeId,
    /// The confidence before.
    pub from: f64,
    /// The confidence after.
    pub to: f64,
    /// Why.
    pub reason: String,
}

/// An item was added to the conventions file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgePromoted {
    /// The item.
    pub item_id: KnowledgeId,
    /// The conventions file.
    pub file: String,
    /// Who said yes.
    pub approved_by: String,
}

/// An item was put out of use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeDeprecated {
    /// The item.
    pub item_id: KnowledgeId,
    /// Why.
    pub reason: String,
    /// Who decided.
    pub by: String,
}
