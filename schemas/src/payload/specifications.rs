//! Payloads of specifications.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::Priority;
use crate::ids::{ContentHash, QuestionId, Slug, SpecId, UserSlug};
use crate::specification::{Complexity, Price};

/// Somebody asked for a specification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpecRequested {
    /// The specification to make.
    pub spec_id: SpecId,
    /// The idea.
    pub idea_slug: Slug,
    /// Whose idea it is.
    pub user_slug: UserSlug,
    /// Who asked.
    pub requested_by: UserSlug,
    /// How much to plan.
    pub complexity: Complexity,
}

/// Somebody asked for changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpecRevisionRequested {
    /// The specification.
    pub spec_id: SpecId,
    /// The idea.
    pub idea_slug: Slug,
    /// Who asked.
    pub requested_by: UserSlug,
    /// What to change.
    pub feedback: String,
}

/// Somebody asked for changes by an answer, and they cannot be made now: nothing follows from that answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpecRevisionRefused {
    /// The specification.
    pub spec_id: SpecId,
    /// The idea.
    pub idea_slug: Slug,
    /// Who asked.
    pub requested_by: UserSlug,
    /// The question that was answered.
    pub question_id: QuestionId,
    /// Why, and what to do.
    pub reason: String,
}

/// A revision is ready to be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpecGenerated {
    /// The specification.
    pub spec_id: SpecId,
    /// The idea.
    pub idea_slug: Slug,
    /// Whose idea it is; events from before this was told have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_slug: Option<UserSlug>,
    /// The revision, from 1.
    pub revision: u32,
    /// The hash an approval binds to.
    pub hash: ContentHash,
    /// The number of task blocks.
    pub task_count: u32,
    /// The size of the plan.
    pub estimated_complexity: Complexity,
    /// How many gotchas the tasks carry.
    pub gotchas_injected: u32,
}

/// A specification was refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpecRejected {
    /// The specification.
    pub spec_id: SpecId,
    /// The idea.
    pub idea_slug: Slug,
    /// The person, or the component that could not make it.
    pub rejected_by: String,
    /// Why.
    pub reason: String,
}

/// A person approved one revision by its hash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpecApproved {
    /// The specification.
    pub spec_id: SpecId,
    /// The idea.
    pub idea_slug: Slug,
    /// Whose idea it is.
    pub user_slug: UserSlug,
    /// The revision.
    pub revision: u32,
    /// The hash that was shown.
    pub hash: ContentHash,
    /// Who approved.
    pub approved_by: UserSlug,
    /// How urgent its build is.
    #[serde(default)]
    pub priority: Priority,
    /// The price that was shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}
