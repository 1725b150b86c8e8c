//! Payloads of reviews.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{ReviewId, Slug};
use crate::review::ReviewKind;

/// A review is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewCompleted {
    /// The review.
    pub review_id: ReviewId,
    /// What was reviewed.
    pub kind: ReviewKind,
    /// The idea.
    pub idea_slug: Slug,
    /// How many patterns were found.
    pub patterns_found: u32,
    /// How many gotchas were found or confirmed.
    pub gotchas_found: u32,
    /// How many knowledge items changed.
    pub improvements_made: u32,
    /// How many requirements it holds for missed.
    #[serde(default)]
    pub requirements_missed: u32,
    /// How many things it holds for done in a worse way than planned.
    #[serde(default)]
    pub deviations: u32,
}
